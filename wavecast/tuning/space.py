"""The configurations that a search may try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from wavecast.arch import Capabilities
from wavecast.compile.configuration import Configuration

LARGEST_BLOCK: Final = 1024
SMALLEST_BLOCK: Final = 16
"""Sides of tiles: matrix instructions have no shorter ones (CDNA3 ISA, table 28)."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The autotuner's `own` configurations, and all combinations of `axes` (name -> values)."""

    own: tuple[Configuration, ...]
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of combinations of the axes, 0 without axes."""
        if not self.axes:
            return 0
        total = 1
        for values in self.axes.values():
            total *= len(values)
        return total

    def combinations(self) -> Iterator[Configuration]:
        """Every combination of the axes, the last axis fastest."""
        if self.axes:
            for values in product(*self.axes.values()):
                yield Configuration.of(zip(self.axes, values, strict=True))


def wide(
    seeds: Sequence[Configuration], capabilities: Capabilities, *, matrix: bool
) -> SearchSpace:
    """The neighbours of `seeds`: block sizes that are powers of two from half the smallest to twice
    the largest, the other constants as they appear, and the options of Triton's AMD compiler.
    Options of matrix instructions are axes only for a kernel that has such instructions (`matrix`)
    on a target whose compiler takes them (`capabilities`)."""
    axes: dict[str, tuple[Any, ...]] = {}
    for name in dict(pair for configuration in seeds for pair in configuration.items):
        values: list[Any] = [configuration.settings.get(name) for configuration in seeds]
        axes[name] = _block_sizes(values) if _is_block(values) else _distinct(values)
    options: dict[str, tuple[int, ...]] = {
        "num_warps": (2, 4, 8),
        "num_stages": (1, 2, 3),
        "waves_per_eu": (0, 2),
    }
    if matrix and capabilities.matrix_unit == "mfma":
        options["matrix_instr_nonkdim"] = (16, 32)
        if capabilities.matrix_half_k:
            options["kpack"] = (1, 2)
    for name, usual in options.items():
        axes[name] = _merge_values(axes.get(name, ()), usual)
    return SearchSpace(tuple(seeds), axes)


def _is_block(values: Sequence[Any]) -> bool:
    """Whether all values are powers of two from `SMALLEST_BLOCK` up."""
    return all(
        isinstance(value, int) and value >= SMALLEST_BLOCK and value & (value - 1) == 0
        for value in values
    )


def _block_sizes(values: Sequence[int]) -> tuple[int, ...]:
    size = max(SMALLEST_BLOCK, min(values) // 2)
    last = min(2 * max(values), max(LARGEST_BLOCK, *values))
    sizes = []
    while size <= last:
        sizes.append(size)
        size *= 2
    return tuple(sizes)


def _distinct(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _merge_values(values: Sequence[Any], more: Sequence[int]) -> tuple[Any, ...]:
    numbers = [value for value in values if value is not None]
    return tuple(sorted({*numbers, *more}))


__all__ = ["SearchSpace", "wide"]
