"""Loops that change the state by the same amount every iteration, and how far they keep doing so.

Between two visits of a loop's header every register has changed by a step. When two iterations in a
row took the same path with the same steps, the state n iterations on is known; what must still be
shown is that every decision in between goes the same way. Decisions are comparisons, and the
difference of a comparison's operands is affine in n as well: it is zero for at most one n
(`Trend.meets`), and where it has the same sign at both ends it has it in between. An iteration
executed at the landing point checks that all differences are where the trend says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.analyze.values.domain import Comparison
from wavecast.analyze.values.kinds import Scattered, Value, is_known
from wavecast.isa.semantics.integers import Unknown, to_signed

FAR = 1 << 40
"""More iterations than any loop has."""

_WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state at a loop's header: live registers, counts of blocks, entries of inner loops."""

    values: tuple[Value, ...]
    counts: tuple[float, ...]
    entries: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What one iteration did. `steps` are added to the values modulo 2^32."""

    steps: tuple[Any, ...]
    counts: tuple[float, ...]
    entries: tuple[float, ...]

    def same(self, other: Change) -> bool:
        if self.counts != other.counts or self.entries != other.entries:
            return False
        return all(_alike(a, b) for a, b in zip(self.steps, other.steps, strict=True))

    def room(self, values: tuple[Value, ...]) -> int:
        """How many iterations no counter wraps around for."""
        room = FAR
        for value, step in zip(values, self.steps, strict=True):
            if not isinstance(step, int) or not step:
                continue
            signed = to_signed(step, 32)
            iterations = (_WORD - 1 - value) // signed if signed > 0 else value // -signed
            room = min(room, iterations)
        return room

    def apply(self, value: Value, step: Any, times: int) -> Value:
        """A value after `times` more iterations."""
        if isinstance(step, int):
            return (value + times * step) % _WORD if step else value
        return value + step * np.uint32(times % _WORD)


def change(before: Snapshot, after: Snapshot) -> Change | None:
    """What changed from one header to the next; None when some value did not change evenly."""
    steps: list[Any] = []
    for a, b in zip(before.values, after.values, strict=True):
        if a is b or (type(a) is int and type(b) is int and a == b):
            steps.append(0)
        elif type(a) is int and type(b) is int:
            steps.append((b - a) % _WORD)
        elif type(a) is np.ndarray and type(b) is np.ndarray:
            steps.append(b - a)
        elif isinstance(a, (Unknown, Scattered)) and type(a) is type(b):
            steps.append(0)
        else:
            return None
    return Change(
        tuple(steps),
        tuple([b - a for a, b in zip(before.counts, after.counts, strict=True)]),
        tuple([b - a for a, b in zip(before.entries, after.entries, strict=True)]),
    )


def _alike(a: Any, b: Any) -> bool:
    if type(a) is int and type(b) is int:
        return a == b
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


@dataclass(frozen=True, slots=True)
class Trend:
    """The differences of all comparisons of an iteration, and their step to the next one.

    A difference is an int or an int64 array, None where an operand is not known.
    """

    differences: tuple[Any, ...]
    steps: tuple[Any, ...]

    def after(self, iterations: int) -> tuple[Any, ...]:
        """The differences so many iterations later."""
        return tuple(
            [
                None if difference is None else difference + iterations * step
                for difference, step in zip(self.differences, self.steps, strict=True)
            ]
        )

    def meets(self) -> int:
        """The first iteration from here on in which some operands become equal; else `FAR`."""
        first = FAR
        for difference, step in zip(self.differences, self.steps, strict=True):
            if difference is not None and np.any(step):
                first = min(first, _meeting(np.asarray(difference), np.asarray(step)))
        return first


def trend(
    earlier: list[Comparison], before: list[Comparison], now: list[Comparison]
) -> Trend | None:
    """The trend over three iterations; None where the differences do not follow one."""
    if not len(earlier) == len(before) == len(now):
        return None
    a, b, c = differences(earlier), differences(before), differences(now)
    steps = []
    for x, y, z in zip(a, b, c, strict=True):
        if x is None or y is None or z is None:
            if not (x is None and y is None and z is None):
                return None
            steps.append(None)
            continue
        if not np.array_equal(y - x, z - y):
            return None
        steps.append(z - y)
    return Trend(c, tuple(steps))


def differences(comparisons: list[Comparison]) -> tuple[Any, ...]:
    """First operand minus second, signed, of every comparison."""
    return tuple([_difference(*comparison) for comparison in comparisons])


def agree(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """The same differences, up to what wraps around in 32 bits."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if (x is None) != (y is None):
            return False
        if x is not None and not np.array_equal(np.asarray(x) % _WORD, np.asarray(y) % _WORD):
            return False
    return True


def _difference(a: Value, b: Value, bits: int) -> Any:
    if type(a) is int and type(b) is int:
        return to_signed((a - b) & ((1 << bits) - 1), bits)
    if not is_known(a) or not is_known(b):
        return None
    distance = np.asarray(a, dtype=np.uint64) - np.asarray(b, dtype=np.uint64)
    if bits == 64:
        return distance.view(np.int64)
    return distance.astype(np.uint32).view(np.int32).astype(np.int64)


def _meeting(difference: np.ndarray, step: np.ndarray) -> int:
    """The least n > 0 with difference + n * step = 0 in some lane."""
    difference, step = np.broadcast_arrays(difference, step)
    moving = step != 0
    towards, by = -difference[moving], step[moving]
    n = towards // by
    n = n[(n * by == towards) & (n > 0)]
    return int(n.min()) if n.size else FAR
