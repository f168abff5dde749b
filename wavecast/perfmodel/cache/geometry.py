"""The caches a request of one die passes: sizes in lines, how they are divided."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.perfmodel.chip import Chip


@dataclass(frozen=True, slots=True)
class Cache:
    """A set-associative cache; `line` in bytes. What is replaced is the line used longest ago, or
    with `arbitrary` any one of the set.

    `sets` is a power of two. The low `plain` bits of a line's number choose among sets directly,
    as channels do; the bits above are folded into the rest.
    """

    line: int
    sets: int
    ways: int
    plain: int
    arbitrary: bool = False

    @property
    def bytes(self) -> int:
        return self.line * self.sets * self.ways


@dataclass(frozen=True, slots=True)
class DieCaches:
    """Caches of a die: vector L1 per compute unit, scalar cache per `scalar_units` of them, L2."""

    vector: Cache
    scalar: Cache
    scalar_units: int
    l2: Cache

    @staticmethod
    def of(chip: Chip) -> DieCaches:
        """The caches of a chip. Raises MissingFact where a size is not known."""
        device = chip.device
        ways = chip.coefficient("cache", "vector_ways")
        return DieCaches(
            vector=replace(
                _cache(_bytes(device, "l1v_size"), _line(device, "l1v_line"), ways),
                arbitrary=chip.coefficient("cache", "vector_arbitrary") > 0,
            ),
            scalar=_cache(
                _bytes(device, "scalar_cache"),
                _line(device, "scalar_cache_line"),
                chip.coefficient("cache", "scalar_ways"),
            ),
            scalar_units=int(chip.coefficient("cache", "scalar_units")),
            l2=_cache(
                chip.l2_slice,
                _line(device, "l2_line"),
                chip.coefficient("cache", "l2_ways"),
                chip.coefficient("cache", "l2_interleave"),
            ),
        )

    def share(self, part: float) -> DieCaches:
        """With the L2 a part of the die's work finds: every set has that part of its ways."""
        ways = max(1, round(self.l2.ways * min(1.0, part)))
        return replace(self, l2=replace(self.l2, ways=ways))


def _cache(size: float, line: int, ways: float, interleave: float = 0.0) -> Cache:
    lines = max(1, int(size) // line)
    ways = min(int(ways), lines)
    sets = 1 << max(0, (lines // ways).bit_length() - 1)
    plain = max(0, (int(interleave) // line).bit_length() - 1)
    return Cache(line, sets, lines // sets, min(plain, sets.bit_length() - 1))


def _bytes(device: Device, name: str) -> float:
    return 1024.0 * _number(device, name)


def _line(device: Device, name: str) -> int:
    return int(_number(device, name))


def _number(device: Device, name: str) -> float:
    value = device.get(name)
    if not isinstance(value, (int, float)):
        raise MissingFact(f"{device.id} has no known {name}: caches cannot be replayed")
    return float(value)


__all__ = ["Cache", "DieCaches"]
