"""Operations on lane offsets: an unknown base that all lanes share, plus a known offset per lane.

Every rule returns None where the result has no such form and nothing is known of it. They follow
addresses: lanes of a wave are taken to stay within 4 GiB of each other, so that the upper half of
`base + offset` is the same in every lane, and offsets not to wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wavecast.analyze.values.kinds import LaneOffsets, Value, array_of, origin_of, signed_offsets
from wavecast.isa.semantics.integers import Integer, IntegerOps, Unknown
from wavecast.isa.semantics.lanes import UNSIGNED, constant

_INTEGERS = IntegerOps()


def _parts(value: Value, bits: int) -> tuple[Integer, np.ndarray]:
    """A value as shared base plus offsets."""
    if isinstance(value, LaneOffsets):
        return value.base, value.offsets
    if isinstance(value, Unknown):
        return value, constant(0, bits)
    return 0, array_of(value, bits)


def _with_base(base: Integer, offsets: np.ndarray, bits: int) -> Value:
    if isinstance(base, int):
        return offsets if base == 0 else offsets + constant(base, bits)
    return LaneOffsets(base, offsets)


def add(a: Value, b: Value, bits: int) -> Value | None:
    (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
    return _with_base(_INTEGERS.add(base_a, base_b, bits), off_a + off_b, bits)


def subtract(a: Value, b: Value, bits: int) -> Value | None:
    (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
    return _with_base(_INTEGERS.sub(base_a, base_b, bits), off_a - off_b, bits)


def multiply(a: Value, b: Value, bits: int) -> Value | None:
    factor, other = (a, b) if isinstance(a, int) else (b, a)
    if not isinstance(factor, int):
        return None
    base, offsets = _parts(other, bits)
    return _with_base(_INTEGERS.mul(base, factor, bits), offsets * constant(factor, bits), bits)


def shift_left(a: Value, amount: Value, bits: int) -> Value | None:
    if not isinstance(amount, int):
        return None
    base, offsets = _parts(a, bits)
    return _with_base(_INTEGERS.shl(base, amount, bits), offsets << constant(amount, bits), bits)


def shift_right(a: Value, amount: Value, bits: int) -> Value | None:
    if not isinstance(amount, int) or not isinstance(a, LaneOffsets):
        return None
    if amount <= a.base.zeros:
        shifted = signed_offsets(a) >> amount
        return _with_base(
            Unknown(a.base.zeros - amount, a.base.origin), shifted.astype(UNSIGNED[bits]), bits
        )
    return Unknown(0, a.base.origin) if amount >= 31 else None


def _below(base: Integer, offsets: np.ndarray) -> bool:
    """The offsets fit into the low zero bits of the base, so that base and offset do not mix."""
    return isinstance(base, int) or int(offsets.max()) >> base.zeros == 0


def disjoint(combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """OR and XOR of lane offsets with known bits that only meet the offsets."""

    def rule(a: Value, b: Value, bits: int) -> Value | None:
        (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
        if isinstance(base_a, Unknown) and isinstance(base_b, Unknown):
            return None
        base = base_a if isinstance(base_a, Unknown) else base_b
        if _below(base, off_a) and _below(base, off_b):
            return _with_base(base, combine(off_a, off_b), bits)
        return None

    return rule


def mask(a: Value, b: Value, bits: int) -> Value | None:
    mask, other = (a, b) if isinstance(a, int) else (b, a)
    if not isinstance(mask, int) or not isinstance(other, LaneOffsets):
        return None
    if mask >> other.base.zeros == 0:
        return other.offsets & constant(mask, bits)
    high = (1 << bits) - (1 << other.base.zeros)
    if mask & high == high and _below(other.base, other.offsets):
        return LaneOffsets(other.base, other.offsets & constant(mask, bits))
    return None


def widen(a: Value, bits: int, wider: int) -> Value | None:
    if not isinstance(a, LaneOffsets) or (bits, wider) != (32, 64):
        return None
    return LaneOffsets(a.base, signed_offsets(a).view(np.uint64))


def truncate(a: Value, bits: int, narrower: int) -> Value | None:
    if not isinstance(a, LaneOffsets):
        return None
    if narrower >= 16:
        offsets = a.offsets.astype(UNSIGNED[narrower])
        return _with_base(0 if a.base.zeros >= narrower else a.base, offsets, narrower)
    if a.base.zeros:
        return (a.offsets & constant(1, bits)) != 0
    return None


def select(condition: Value, a: Value, b: Value, bits: int) -> Value | None:
    """A known choice between offsets of one base; of an unknown choice the varying side.

    The latter is how compilers switch lanes off: an address, or a constant that no access reaches.
    Its base is unknown, so that no decision is ever based on it.
    """
    if isinstance(condition, (int, np.ndarray)):
        (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
        if base_a is base_b:
            return _with_base(base_a, np.where(array_of(condition, 1), off_a, off_b), bits)
        return None
    for varying, other in ((a, b), (b, a)):
        if isinstance(other, int) and isinstance(varying, (np.ndarray, LaneOffsets)):
            _, offsets = _parts(varying, bits)
            return LaneOffsets(Unknown(0, origin_of(condition)), offsets)
    return None
