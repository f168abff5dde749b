"""A configuration of an autotuned kernel."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
COMPILER_OPTIONS = frozenset({*_OPTIONS, "waves_per_eu", "matrix_instr_nonkdim", "kpack"})
"""Options of Triton's compilers, as HIPOptions and triton.Config name them."""
_USUAL: Mapping[str, Any] = {"num_ctas": 1, "maxnreg": None}


@dataclass(frozen=True, slots=True)
class Configuration:
    """Names and values: the kernel's own constants, then compiler options. Equal whatever the
    order they were given in."""

    items: tuple[tuple[str, Any], ...]

    @staticmethod
    def of(settings: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Configuration:
        """From names and values."""
        values = dict(settings)
        constants = sorted(name for name in values if name not in _OPTIONS)
        order = [*constants, *(name for name in _OPTIONS if name in values)]
        return Configuration(tuple((name, values[name]) for name in order))

    @property
    def settings(self) -> dict[str, Any]:
        """Names and values, as a new dict."""
        return dict(self.items)

    @property
    def tile(self) -> tuple[tuple[str, Any], ...]:
        """The kernel's own constants alone, which say how the work is cut."""
        return tuple(item for item in self.items if item[0] not in COMPILER_OPTIONS)

    def with_(self, name: str, value: Any) -> Configuration:
        """The same with one value changed."""
        return Configuration.of({**self.settings, name: value})

    def shard(self, count: int) -> int:
        """In which of `count` equal parts of all configurations this one is, everywhere."""
        return zlib.crc32(repr(self.items).encode()) % count

    def __str__(self) -> str:
        pairs = [(n, v) for n, v in self.items if n not in _USUAL or v != _USUAL[n]]
        return ", ".join(f"{name}={value}" for name, value in pairs)
