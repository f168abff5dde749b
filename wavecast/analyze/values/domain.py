"""Instruction semantics over the values of a wave (`kinds`), lane offsets by `lane_offsets`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from wavecast.analyze.values import lane_offsets
from wavecast.analyze.values.kinds import (
    UNWRITTEN,
    LaneOffsets,
    LaneScalars,
    Scattered,
    Value,
    array_of,
    is_known,
    origin_of,
    signed_offsets,
)
from wavecast.isa.semantics.formats import FloatFormat
from wavecast.isa.semantics.integers import Integer, IntegerOps, Unknown, trailing_zeros
from wavecast.isa.semantics.lanes import LaneOps, constant
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.semantics.ops import Ops

_INTEGERS = IntegerOps()


def join(low: Value, high: Value) -> Value:
    """Two 32-bit registers as one 64-bit value. Compilers leave the high one unwritten where only
    the low bits of a result are needed (`v_mad_u64_u32` for 32-bit offsets): it counts as zero."""
    if high is UNWRITTEN:
        high = 0
    if type(low) is int and type(high) is int:
        return low | high << 32
    if is_known(low) and is_known(high):
        return LaneOps(1).join(array_of(low, 32), array_of(high, 32))
    if isinstance(low, LaneOffsets):
        return LaneOffsets(low.base, signed_offsets(low).view(np.uint64))
    if isinstance(low, Unknown):
        return low
    if isinstance(low, int) and isinstance(high, Unknown):
        return Unknown(trailing_zeros(low, 32), high.origin)
    if isinstance(low, np.ndarray) and isinstance(high, (Unknown, LaneOffsets)):
        return LaneOffsets(Unknown(32, origin_of(high)), low.astype(np.uint64))
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
    if isinstance(value, LaneOffsets):
        low = lane_offsets.truncate(value, 64, 32)
        return low, Unknown(0, value.base.origin)
    return value, value


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
        uniform = all_known = True
        for value in operands:
            kind = type(value)
            if kind is int:
                continue
            if kind is Unknown:
                all_known = False
            elif kind is np.ndarray:
                uniform = False
            elif kind is Scattered and not selects:
                return value
            else:
                uniform = all_known = False
        if uniform:
            return on_integers(_INTEGERS, *arguments)
        if selects and isinstance(operands[0], int):
            return operands[1] if operands[0] else operands[2]
        width = arguments[values] if len(arguments) > values else 32
        bits = width.bits if isinstance(width, FloatFormat) else width
        if all_known:
            arrays = [
                constant(v, 1 if selects and not i else bits) if type(v) is int else v
                for i, v in enumerate(operands)
            ]
            return on_lanes(self.on_lanes, *arrays, *arguments[values:])
        result = (
            rule(*arguments) if rule is not None and _is_applicable(operands, selects) else None
        )
        return result if result is not None else Scattered(_first_origin(operands))

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


def _is_applicable(operands: tuple[Value, ...], selects: bool) -> bool:
    return not any(isinstance(v, (Scattered, LaneScalars)) for v in operands[1 if selects else 0 :])


def _first_origin(operands: tuple[Value, ...]) -> object:
    return next((o for o in map(origin_of, operands) if o is not None), None)


class WaveOps(Ops[Value]):
    """Instruction semantics over the values of a wave of `lanes` lanes on `machine`.

    `exec_mask` is EXEC: set it with `set_exec`.
    """

    def __init__(self, lanes: int, machine: FloatMode | None = None) -> None:
        self.lanes = lanes
        self._machine = machine or FloatMode()
        self.full_mask = (1 << lanes) - 1
        self.on_lanes = LaneOps(lanes)
        self.exec_mask: Integer = self.full_mask
        self.comparisons: list[Comparison] = []
        """Comparisons made while `noting`."""
        self.noting = False
        self.takes_numbers = False
        """Whether a test for NaN had unknown operands, which were taken to be numbers."""

    def set_exec(self, mask: Integer) -> None:
        """Change the lanes that are active."""
        self.exec_mask = mask & self.full_mask if isinstance(mask, int) else mask

    @property
    def active(self) -> Value:
        """EXEC as a condition per lane: 0, 1, an array, or `Scattered`."""
        return self.lanes_of_mask(self.exec_mask)

    def const(self, value: int, bits: int) -> Value:
        return value & ((1 << bits) - 1)

    add = _operation("add", 2, lane_offsets.add)
    sub = _operation("sub", 2, lane_offsets.subtract)
    mul = _operation("mul", 2, lane_offsets.multiply)
    mul_high = _operation("mul_high", 2)
    and_ = _operation("and_", 2, lane_offsets.mask)
    or_ = _operation("or_", 2, lane_offsets.disjoint(np.bitwise_or))
    xor = _operation("xor", 2, lane_offsets.disjoint(np.bitwise_xor))
    shl = _operation("shl", 2, lane_offsets.shift_left)
    lshr = _operation("lshr", 2, lane_offsets.shift_right)
    ashr = _operation("ashr", 2, lane_offsets.shift_right)
    eq = _comparison("eq")
    less_unsigned = _comparison("less_unsigned")
    less_signed = _comparison("less_signed")
    select = _operation("select", 3, lane_offsets.select)
    zero_extend = _operation("zero_extend", 1, lane_offsets.widen)
    sign_extend = _operation("sign_extend", 1, lane_offsets.widen)
    truncate = _operation("truncate", 1, lane_offsets.truncate)
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
            if isinstance(a, LaneScalars):
                scalar = a.lanes.get(lane % self.lanes)
                return scalar if scalar is not None else self.read_lane(a.rest, lane)
        return Unknown(0, origin_of(a))

    def write_lane(self, old: Value, value: Value, lane: Value) -> Value:
        if not isinstance(lane, int):
            return Scattered(origin_of(lane))
        if isinstance(old, LaneScalars):
            return LaneScalars({**old.lanes, lane % self.lanes: value}, old.rest)
        return LaneScalars({lane % self.lanes: value}, old)

    def gather(self, a: Value, lane: Value) -> Value:
        if isinstance(a, (int, Unknown, Scattered)):
            return a
        if isinstance(lane, (int, np.ndarray)):
            source = np.broadcast_to(array_of(lane, 32), (self.lanes,)) % np.uint32(self.lanes)
            if isinstance(a, np.ndarray):
                return np.broadcast_to(a, (self.lanes,))[source]
            if isinstance(a, LaneOffsets):
                return LaneOffsets(a.base, np.broadcast_to(a.offsets, (self.lanes,))[source])
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
    def machine(self) -> FloatMode:
        return self._machine

    def in_scalar(self, value: Value) -> Value:
        """What a scalar register holds of a value."""
        if isinstance(value, (int, Unknown)):
            return value
        if isinstance(value, np.ndarray) and value.size == 1:
            return int(value[0])
        return Unknown(0, origin_of(value))

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
