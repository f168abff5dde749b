"""Values of a wave: what one register holds in every lane, as far as it is known.

| value | meaning |
|---|---|
| `int` | known, the same in every lane |
| `Unknown` | not known, the same in every lane |
| `numpy` array | known, one element per lane |
| `Spread` | an unknown that all lanes share, plus a known offset per lane |
| `Scattered` | not known, any value in any lane |
| `Slots` | a register used as storage for scalars, lane by lane |

`WaveOps` evaluates instruction semantics over them. `Spread` follows addresses: it assumes that the
lanes of a wave stay within 4 GiB of each other, so that the upper half of `base + offset` is the
same in every lane, and that offsets do not wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from wavecast.isa.semantics.formats import Format
from wavecast.isa.semantics.integers import Integer, IntegerOps, Unknown, trailing_zeros
from wavecast.isa.semantics.lanes import UNSIGNED, LaneOps, constant
from wavecast.isa.semantics.machine import Machine
from wavecast.isa.semantics.ops import Ops


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """`base` plus `offsets[lane]`; offsets are bit patterns as wide as the value."""

    base: Unknown
    offsets: np.ndarray


@dataclass(frozen=True, slots=True)
class Scattered:
    """A value of which nothing is known. `origin` is what made it so (see `Unknown.origin`)."""

    origin: object = None


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Scalars written to single lanes; lanes that were never written hold `rest`."""

    lanes: dict[int, Any]
    rest: Any


Value = Any
"""One of the kinds of the module's table."""

_INTEGERS = IntegerOps()


def origin_of(value: Value) -> object:
    """What made a value unknown; None for a known one."""
    if isinstance(value, (Unknown, Scattered)):
        return value.origin
    if isinstance(value, Spread):
        return value.base.origin
    return None


def is_known(value: Value) -> bool:
    """True for `int` and arrays."""
    return isinstance(value, (int, np.ndarray))


def signed_offsets(value: Spread) -> np.ndarray:
    """The offsets of a spread as int64."""
    kind = np.int32 if value.offsets.dtype == np.uint32 else np.int64
    return value.offsets.view(kind).astype(np.int64)


def join(low: Value, high: Value) -> Value:
    """Two 32-bit registers as one 64-bit value."""
    if type(low) is int and type(high) is int:
        return low | high << 32
    if is_known(low) and is_known(high):
        return LaneOps(1).join(_array(low, 32), _array(high, 32))
    if isinstance(low, Spread):
        return Spread(low.base, signed_offsets(low).view(np.uint64))
    if isinstance(low, Unknown):
        return low
    if isinstance(low, int) and isinstance(high, Unknown):
        return Unknown(trailing_zeros(low, 32), high.origin)
    if isinstance(low, np.ndarray) and isinstance(high, (Unknown, Spread)):
        return Spread(Unknown(32, origin_of(high)), low.astype(np.uint64))
    return Scattered(origin_of(low) if origin_of(low) is not None else origin_of(high))


def split(value: Value) -> tuple[Value, Value]:
    """A 64-bit value as two 32-bit registers."""
    if isinstance(value, int):
        return value & 0xFFFFFFFF, value >> 32
    if isinstance(value, np.ndarray):
        return value.astype(np.uint32), (value >> np.uint64(32)).astype(np.uint32)
    if isinstance(value, Unknown):
        low = 0 if value.zeros >= 32 else value
        return low, Unknown(max(0, value.zeros - 32), value.origin)
    if isinstance(value, Spread):
        low = _truncate(value, 64, 32)
        return low, Unknown(0, value.base.origin)
    return value, value


def _array(value: int | np.ndarray, bits: int) -> np.ndarray:
    return constant(value, bits) if isinstance(value, int) else value


def _parts(value: Value, bits: int) -> tuple[Integer, np.ndarray]:
    """A value as shared base plus offsets."""
    if isinstance(value, Spread):
        return value.base, value.offsets
    if isinstance(value, Unknown):
        return value, constant(0, bits)
    return 0, _array(value, bits)


def _spread(base: Integer, offsets: np.ndarray, bits: int) -> Value:
    if isinstance(base, int):
        return offsets if base == 0 else offsets + constant(base, bits)
    return Spread(base, offsets)


# rules for operations on a spread; None where the result is not a spread


def _add(a: Value, b: Value, bits: int) -> Value | None:
    (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
    return _spread(_INTEGERS.add(base_a, base_b, bits), off_a + off_b, bits)


def _sub(a: Value, b: Value, bits: int) -> Value | None:
    (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
    return _spread(_INTEGERS.sub(base_a, base_b, bits), off_a - off_b, bits)


def _mul(a: Value, b: Value, bits: int) -> Value | None:
    factor, other = (a, b) if isinstance(a, int) else (b, a)
    if not isinstance(factor, int):
        return None
    base, offsets = _parts(other, bits)
    return _spread(_INTEGERS.mul(base, factor, bits), offsets * constant(factor, bits), bits)


def _shl(a: Value, amount: Value, bits: int) -> Value | None:
    if not isinstance(amount, int):
        return None
    base, offsets = _parts(a, bits)
    return _spread(_INTEGERS.shl(base, amount, bits), offsets << constant(amount, bits), bits)


def _lshr(a: Value, amount: Value, bits: int) -> Value | None:
    if not isinstance(amount, int) or not isinstance(a, Spread):
        return None
    if amount <= a.base.zeros:
        shifted = signed_offsets(a) >> amount
        return _spread(
            Unknown(a.base.zeros - amount, a.base.origin), shifted.astype(UNSIGNED[bits]), bits
        )
    return Unknown(0, a.base.origin) if amount >= 31 else None


def _below(base: Integer, offsets: np.ndarray) -> bool:
    """The offsets fit into the low zero bits of the base, so that base and offset do not mix."""
    return isinstance(base, int) or int(offsets.max()) >> base.zeros == 0


def _disjoint(combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """OR and XOR of a spread with known bits that only meet its offsets."""

    def rule(a: Value, b: Value, bits: int) -> Value | None:
        (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
        if isinstance(base_a, Unknown) and isinstance(base_b, Unknown):
            return None
        base = base_a if isinstance(base_a, Unknown) else base_b
        if _below(base, off_a) and _below(base, off_b):
            return _spread(base, combine(off_a, off_b), bits)
        return None

    return rule


def _and(a: Value, b: Value, bits: int) -> Value | None:
    mask, other = (a, b) if isinstance(a, int) else (b, a)
    if not isinstance(mask, int) or not isinstance(other, Spread):
        return None
    if mask >> other.base.zeros == 0:
        return other.offsets & constant(mask, bits)
    high = (1 << bits) - (1 << other.base.zeros)
    if mask & high == high and _below(other.base, other.offsets):
        return Spread(other.base, other.offsets & constant(mask, bits))
    return None


def _widen(a: Value, bits: int, wider: int) -> Value | None:
    if not isinstance(a, Spread) or (bits, wider) != (32, 64):
        return None
    return Spread(a.base, signed_offsets(a).view(np.uint64))


def _truncate(a: Value, bits: int, narrower: int) -> Value | None:
    if not isinstance(a, Spread):
        return None
    if narrower >= 16:
        offsets = a.offsets.astype(UNSIGNED[narrower])
        return _spread(0 if a.base.zeros >= narrower else a.base, offsets, narrower)
    if a.base.zeros:
        return (a.offsets & constant(1, bits)) != 0
    return None


def _select(condition: Value, a: Value, b: Value, bits: int) -> Value | None:
    """A known choice between offsets of one base; of an unknown choice the varying side.

    The latter is how compilers switch lanes off: an address, or a constant that no access reaches.
    Its base is unknown, so that no decision is ever based on it.
    """
    if isinstance(condition, (int, np.ndarray)):
        (base_a, off_a), (base_b, off_b) = _parts(a, bits), _parts(b, bits)
        if base_a is base_b:
            return _spread(base_a, np.where(_array(condition, 1), off_a, off_b), bits)
        return None
    for varying, other in ((a, b), (b, a)):
        if isinstance(other, int) and isinstance(varying, (np.ndarray, Spread)):
            _, offsets = _parts(varying, bits)
            return Spread(Unknown(0, origin_of(condition)), offsets)
    return None


Comparison = tuple[Value, Value, int]
"""The operands of a comparison and their width."""

Rule = Callable[..., Value | None]


def _operation(name: str, values: int, rule: Rule | None = None) -> Any:
    """The method of `WaveOps` for an operation of `values` operands."""
    on_integers: Callable[..., Integer] = getattr(IntegerOps, name)
    on_lanes: Callable[..., np.ndarray] = getattr(LaneOps, name)
    selects = name == "select"

    def method(self: WaveOps, *arguments: Any) -> Value:
        operands = arguments[:values]
        uniform = known = True
        for value in operands:
            kind = type(value)
            if kind is int:
                continue
            if kind is Unknown:
                known = False
            elif kind is np.ndarray:
                uniform = False
            elif kind is Scattered and not selects:
                return value
            else:
                uniform = known = False
        if uniform:
            return on_integers(_INTEGERS, *arguments)
        if selects and isinstance(operands[0], int):
            return operands[1] if operands[0] else operands[2]
        width = arguments[values] if len(arguments) > values else 32
        bits = width.bits if isinstance(width, Format) else width
        if known:
            arrays = [
                constant(v, 1 if selects and not i else bits) if type(v) is int else v
                for i, v in enumerate(operands)
            ]
            return on_lanes(self.on_lanes, *arrays, *arguments[values:])
        found = rule(*arguments) if rule is not None and _ruled(operands, selects) else None
        return found if found is not None else Scattered(_first_origin(operands))

    return _uniform_first(method, on_integers, values)


def _uniform_first(
    general: Callable[..., Value], on_integers: Callable[..., Integer], values: int
) -> Any:
    """An operation that asks no further where its one or two operands are the same in every lane,
    as those of most decisions are."""

    def unary(self: WaveOps, a: Value, *widths: int) -> Value:
        if type(a) is int or type(a) is Unknown:
            return on_integers(_INTEGERS, a, *widths)
        return general(self, a, *widths)

    def binary(self: WaveOps, a: Value, b: Value, *widths: int) -> Value:
        if (type(a) is int or type(a) is Unknown) and (type(b) is int or type(b) is Unknown):
            return on_integers(_INTEGERS, a, b, *widths)
        return general(self, a, b, *widths)

    return {1: unary, 2: binary}.get(values, general)


def _comparison(name: str) -> Any:
    """A comparison: as any operation, but noted where somebody follows decisions."""
    operation = _operation(name, 2)

    def method(self: WaveOps, a: Value, b: Value, bits: int) -> Value:
        if self.noting:
            self.comparisons.append((a, b, bits))
        return operation(self, a, b, bits)

    return method


def _ruled(operands: tuple[Value, ...], selects: bool) -> bool:
    return not any(isinstance(v, (Scattered, Slots)) for v in operands[1 if selects else 0 :])


def _first_origin(operands: tuple[Value, ...]) -> object:
    return next((o for o in map(origin_of, operands) if o is not None), None)


class WaveOps(Ops[Value]):
    """Instruction semantics over the values of a wave of `lanes` lanes on `machine`.

    `exec_mask` is EXEC: set it with `set_exec`.
    """

    def __init__(self, lanes: int, machine: Machine | None = None) -> None:
        self.lanes = lanes
        self._machine = machine or Machine()
        self.full_mask = (1 << lanes) - 1
        self.on_lanes = LaneOps(lanes)
        self.exec_mask: Integer = self.full_mask
        self.comparisons: list[Comparison] = []
        """Comparisons made while `noting`."""
        self.noting = False

    def set_exec(self, mask: Integer) -> None:
        """Change the lanes that are active."""
        self.exec_mask = mask & self.full_mask if isinstance(mask, int) else mask

    @property
    def active(self) -> Value:
        """EXEC as a condition per lane: 0, 1, an array, or `Scattered`."""
        return self.lanes_of_mask(self.exec_mask)

    def const(self, value: int, bits: int) -> Value:
        return value & ((1 << bits) - 1)

    add = _operation("add", 2, _add)
    sub = _operation("sub", 2, _sub)
    mul = _operation("mul", 2, _mul)
    mul_high = _operation("mul_high", 2)
    and_ = _operation("and_", 2, _and)
    or_ = _operation("or_", 2, _disjoint(np.bitwise_or))
    xor = _operation("xor", 2, _disjoint(np.bitwise_xor))
    shl = _operation("shl", 2, _shl)
    lshr = _operation("lshr", 2, _lshr)
    ashr = _operation("ashr", 2, _lshr)
    eq = _comparison("eq")
    less_unsigned = _comparison("less_unsigned")
    less_signed = _comparison("less_signed")
    select = _operation("select", 3, _select)
    zero_extend = _operation("zero_extend", 1, _widen)
    sign_extend = _operation("sign_extend", 1, _widen)
    truncate = _operation("truncate", 1, _truncate)
    popcount = _operation("popcount", 1)
    leading_zeros = _operation("leading_zeros", 1)
    trailing_zeros = _operation("trailing_zeros", 1)
    reverse_bits = _operation("reverse_bits", 1)
    f_add = _operation("f_add", 2)
    f_mul = _operation("f_mul", 2)
    f_fma = _operation("f_fma", 3)
    f_div = _operation("f_div", 2)
    f_sqrt = _operation("f_sqrt", 1)
    f_round = _operation("f_round", 1)
    f_less = _operation("f_less", 2)
    f_equal = _operation("f_equal", 2)
    f_convert = _operation("f_convert", 1)
    f_from_int = _operation("f_from_int", 1)
    f_to_int = _operation("f_to_int", 1)

    def nonzero(self, a: Value, bits: int) -> Value:
        if not isinstance(a, (int, Unknown)):
            return super().nonzero(a, bits)
        if self.noting:
            self.comparisons.append((a, 0, bits))
        return Unknown(0, a.origin) if isinstance(a, Unknown) else int(a != 0)

    def lane(self) -> Value:
        return self.on_lanes.lane()

    def first_active_lane(self, a: Value) -> Value:
        if isinstance(a, (int, Unknown)):
            return a
        if not isinstance(a, np.ndarray):
            return Unknown(0, origin_of(a))
        if a.size == 1 or bool((a == a[0]).all()):
            return int(a[0])
        if isinstance(self.exec_mask, int):
            return int(a[trailing_zeros(self.exec_mask, self.lanes) % self.lanes])
        return Unknown(0, self.exec_mask.origin)

    def read_lane(self, a: Value, lane: Value) -> Value:
        if isinstance(a, (int, Unknown)):
            return a
        if isinstance(lane, int):
            if isinstance(a, np.ndarray):
                return int(a[lane % self.lanes]) if a.size > 1 else int(a[0])
            if isinstance(a, Slots):
                found = a.lanes.get(lane % self.lanes)
                return found if found is not None else self.read_lane(a.rest, lane)
        return Unknown(0, origin_of(a))

    def write_lane(self, old: Value, value: Value, lane: Value) -> Value:
        if not isinstance(lane, int):
            return Scattered(origin_of(lane))
        if isinstance(old, Slots):
            return Slots({**old.lanes, lane % self.lanes: value}, old.rest)
        return Slots({lane % self.lanes: value}, old)

    def gather(self, a: Value, lane: Value) -> Value:
        if isinstance(a, (int, Unknown, Scattered)):
            return a
        if isinstance(lane, (int, np.ndarray)):
            source = np.broadcast_to(_array(lane, 32), (self.lanes,)) % np.uint32(self.lanes)
            if isinstance(a, np.ndarray):
                return np.broadcast_to(a, (self.lanes,))[source]
            if isinstance(a, Spread):
                return Spread(a.base, np.broadcast_to(a.offsets, (self.lanes,))[source])
        return Scattered(_first_origin((a, lane)))

    def shuffle(self, a: Value, lane: Value) -> Value:
        return self.gather(a, lane)

    def lane_active(self, lane: Value) -> Value:
        if isinstance(self.active, int):
            return self.active
        return self.gather(self.active, lane)

    def wave_lanes(self) -> int:
        return self.lanes

    @property
    def machine(self) -> Machine:
        return self._machine

    # lane masks

    def lanes_of_mask(self, mask: Value) -> Value:
        """A mask in scalar registers as a condition per lane."""
        if isinstance(mask, int):
            return mask_lanes(mask, self.lanes)
        return Scattered(origin_of(mask))

    def mask_of_lanes(self, condition: Value) -> Integer:
        """A condition per lane as a mask, inactive lanes 0."""
        if isinstance(condition, int):
            mask: Integer = self.full_mask if condition else 0
        elif isinstance(condition, np.ndarray):
            mask = lanes_mask(np.broadcast_to(condition, (self.lanes,)))
        else:
            mask = Unknown(0, origin_of(condition))
        return _INTEGERS.and_(mask, self.exec_mask, 64)


@lru_cache(maxsize=256)
def mask_lanes(mask: int, lanes: int) -> Value:
    """A known mask as 0, 1, or an array of booleans."""
    full = (1 << lanes) - 1
    mask &= full
    if mask in (0, full):
        return int(mask != 0)
    octets = np.frombuffer(mask.to_bytes(8, "little"), dtype=np.uint8)
    return np.unpackbits(octets, bitorder="little")[:lanes].astype(np.bool_)


def lanes_mask(active: np.ndarray) -> int:
    """Booleans per lane as a mask."""
    return int.from_bytes(np.packbits(active, bitorder="little").tobytes(), "little")
