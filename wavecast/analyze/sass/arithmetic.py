"""What integer instructions of SASS compute, lane by lane.

Each function takes an operation and the lanes, and writes the results that are known. Names of
opcodes: NVIDIA, CUDA Binary Utilities; `evaluated` has the function of each.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from wavecast.analyze.sass.lanes import Lanes, Value, high, low, to_signed, word
from wavecast.analyze.sass.operands import SassOperand, SassOperation

Array = np.ndarray[Any, Any]

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}
_STRICT: Final = {"GE": operator.gt, "LE": operator.lt, "GT": operator.gt, "LT": operator.lt}
_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
}
_U32: Final = np.uint64(0xFFFFFFFF)


def _carry_in(operation: SassOperation, lanes: Lanes, at: int) -> Value:
    if len(operation.reads) <= at:
        return np.ones((1, 1), bool)
    return lanes.predicate(operation.reads[at])


def move(operation: SassOperation, lanes: Lanes) -> None:
    """MOV."""
    lanes.result(operation, lanes.word(operation.reads[0]))


def add(operation: SassOperation, lanes: Lanes) -> None:
    """IADD3 and VIADD: carries are those of the sum of operands, -x counting as 2^32 - x."""
    wide = "64" in operation.modifiers
    guard = lanes.guard(operation)
    if wide:
        whole: Value = np.zeros((1, 1), np.uint64)
        for operand in operation.reads[:3]:
            pair = lanes.pair(operand, sign=True)
            whole = None if pair is None or whole is None else whole + pair
        lanes.put_pair(operation.writes[0], whole, guard)
        for register in operation.writes[1:]:
            lanes.put(register, None, guard)
        return
    extended = "X" in operation.modifiers
    numbers = [o for o in operation.reads if o.register is None or o.register.file in ("R", "UR")]
    terms = [_term(operand, lanes, extended) for operand in numbers[:3]]
    if extended:
        at = len(terms)
        terms += [_carry(operand, lanes) for operand in operation.reads[at : at + 1]]
    values = [term for term in terms if term is not None]
    total: Value = sum(values[1:], values[0]) if len(values) == len(terms) else None
    lanes.put(operation.writes[0], None if total is None else low(total), guard)
    for nth, register in enumerate(operation.writes[1:], 1):
        over = None if total is None else (total >> np.uint64(32)) >= np.uint64(nth)
        lanes.put(register, over, guard)


def _term(operand: SassOperand, lanes: Lanes, extended: bool) -> Value:
    """A term of a sum with carries."""
    value = lanes.word(operand)
    if value is None:
        return None
    term = value.astype(np.uint64)
    if operand.negative and not extended:
        term = np.where(term == 0, np.uint64(1 << 32), term)
    return term


def _carry(operand: SassOperand, lanes: Lanes) -> Value:
    value = lanes.predicate(operand)
    return None if value is None else value.astype(np.uint64)


def multiply_add(operation: SassOperation, lanes: Lanes) -> None:
    """IMAD: a · b + c, of 32 bits, the upper 32 (`.HI`) or 64 (`.WIDE`)."""
    modifiers = set(operation.modifiers)
    if "WIDE" in modifiers:
        _multiply_wide(operation, lanes)
        return
    if "HI" in modifiers:
        _multiply_high(operation, lanes)
        return
    words = lanes.words(operation, 3)
    if words is None:
        value: Value = None
    else:
        a, b, c = words
        value = a * b + c
        if "X" in modifiers:
            carry = _carry_in(operation, lanes, 3)
            value = None if carry is None else value + carry.astype(np.uint32)
    guard = lanes.guard(operation)
    lanes.put(operation.writes[0], value, guard)
    for register in operation.writes[1:]:
        lanes.put(register, None, guard)


def _product(operation: SassOperation, lanes: Lanes) -> Value:
    """The 64-bit product of the first two operands."""
    words = lanes.words(operation, 2)
    if words is None:
        return None
    a, b = words
    if "U32" in operation.modifiers:
        return a.astype(np.uint64) * b.astype(np.uint64)
    return (to_signed(a) * to_signed(b)).view(np.uint64)


def _multiply_wide(operation: SassOperation, lanes: Lanes) -> None:
    product, addend = _product(operation, lanes), lanes.pair(operation.reads[2])
    guard = lanes.guard(operation)
    total = None if product is None or addend is None else product + addend
    if total is not None and "X" in operation.modifiers:
        carry = _carry_in(operation, lanes, 3)
        total = None if carry is None else total + carry.astype(np.uint64)
    lanes.put_pair(operation.writes[0], total, guard)
    for register in operation.writes[1:]:
        over = None if total is None or product is None else total < product
        lanes.put(register, over, guard)


def _multiply_high(operation: SassOperation, lanes: Lanes) -> None:
    product, addend = _product(operation, lanes), lanes.pair(operation.reads[2])
    value = None if product is None or addend is None else high(product + addend)
    lanes.result(operation, value)


def scaled_add(operation: SassOperation, lanes: Lanes) -> None:
    """LEA: (a << shift) + b; `.HI` adds the upper word of (c:a) << shift instead."""
    modifiers, reads, guard = set(operation.modifiers), operation.reads, lanes.guard(operation)
    is_high, extended = "HI" in modifiers, "X" in modifiers
    own_sign = "SX32" in modifiers
    third = is_high and not own_sign
    shift_at = 3 if third else 2
    a, b = lanes.word(reads[0]), lanes.word(reads[1])
    c = lanes.word(reads[2]) if third else np.zeros((1, 1), np.uint32)
    amount = lanes.word(reads[shift_at]) if len(reads) > shift_at else word(0)
    carry: Value = np.zeros((1, 1), bool)
    if extended:
        carry = _carry_in(operation, lanes, shift_at + 1)
    total: Value = None
    if a is not None and b is not None and c is not None and amount is not None:
        shift = amount.astype(np.uint64) & np.uint64(31)
        if own_sign:
            pairs = to_signed(a).view(np.uint64)
        else:
            pairs = a.astype(np.uint64) | c.astype(np.uint64) << np.uint64(32)
        shift_result = pairs << shift
        part = high(shift_result) if is_high else low(shift_result)
        total = part.astype(np.uint64) + b.astype(np.uint64)
        total = None if carry is None else total + carry.astype(np.uint64)
    lanes.put(operation.writes[0], None if total is None else low(total), guard)
    for register in operation.writes[1:]:
        lanes.put(register, None if total is None else total > _U32, guard)


def logic(operation: SassOperation, lanes: Lanes) -> None:
    """LOP3: bit by bit, the truth table `lut` at position 4a + 2b + c."""
    writes = [register for register in operation.writes if register.file in ("R", "UR")]
    flags = [register for register in operation.writes if register.file in ("P", "UP")]
    lut = operation.reads[3].value or 0
    inputs = [lanes.word(operand) for operand in operation.reads[:3]]
    value = _by_table(inputs, lut)
    guard = lanes.guard(operation)
    for register in writes:
        lanes.put(register, value, guard)
    for register in flags:
        lanes.put(register, None if value is None else value != 0, guard)


def _by_table(inputs: list[Value], lut: int) -> Value:
    """The bitwise function of three inputs. An unknown input does not matter where the table does
    not depend on it."""
    a, b, c = (_matters(lut, shift) for shift in (4, 2, 1))
    values = [
        value if is_relevant else np.zeros((1, 1), np.uint32)
        for value, is_relevant in zip(inputs, (a, b, c), strict=True)
    ]
    if any(value is None for value in values):
        return _absorb_zero(inputs, lut)
    first, second, third = (value for value in values if value is not None)
    bits: Array = np.zeros((1, 1), np.uint32)
    for row in range(8):
        if lut >> row & 1:
            term = first if row & 4 else ~first
            term = term & (second if row & 2 else ~second)
            bits = bits | term & (third if row & 1 else ~third)
    return bits


def _matters(lut: int, shift: int) -> bool:
    return any((lut >> row & 1) != (lut >> (row ^ shift) & 1) for row in range(8))


def _absorb_zero(inputs: list[Value], lut: int) -> Value:
    """0 where a known input of all zeros decides the result (x & 0)."""
    for at, value in enumerate(inputs):
        if value is not None and not value.any():
            rows = [row for row in range(8) if not row & (4 >> at)]
            if not any(lut >> row & 1 for row in rows):
                return np.zeros((1, 1), np.uint32)
    return None


def predicate_logic(operation: SassOperation, lanes: Lanes) -> None:
    """PLOP3: truth tables over three predicates, one per result."""
    operands = [o for o in operation.reads if o.register is not None]
    tables = [o.value for o in operation.reads if o.value is not None]
    inputs = [lanes.predicate(operand) for operand in operands[:3]]
    words = [None if v is None else np.where(v, np.uint32(1), np.uint32(0)) for v in inputs]
    guard = lanes.guard(operation)
    for register, lut in zip(operation.writes, tables, strict=False):
        value = _by_table(words, lut)
        lanes.put(register, None if value is None else value & np.uint32(1) != 0, guard)


def shift(operation: SassOperation, lanes: Lanes) -> None:
    """SHF: the pair (c:a) moved by b; its upper word with `.HI`."""
    modifiers = operation.modifiers
    words = lanes.words(operation, 3)
    if words is None:
        lanes.result(operation, None)
        return
    a, b, c = words
    pairs = a.astype(np.uint64) | c.astype(np.uint64) << np.uint64(32)
    wraps, wide = "W" in modifiers, "U64" in modifiers or "S64" in modifiers
    amount = b & np.uint32(31) if wraps and not wide else np.minimum(b, np.uint32(63))
    shift = amount.astype(np.uint64)
    if "L" in modifiers:
        shift_result = pairs << shift
    elif "S32" in modifiers or "S64" in modifiers:
        shift_result = (pairs.view(np.int64) >> shift.astype(np.int64)).view(np.uint64)
    else:
        shift_result = pairs >> shift
    lanes.result(operation, high(shift_result) if "HI" in modifiers else low(shift_result))


def compare(operation: SassOperation, lanes: Lanes) -> None:
    """ISETP: p = (a cmp b) join c, q = !(a cmp b) join c; `.EX` continues a comparison of the
    lower words."""
    modifiers, guard = operation.modifiers, lanes.guard(operation)
    how = modifiers[0]
    words = lanes.words(operation, 2)
    result: Value = None
    if words is not None and how in _COMPARISONS:
        a, b = words if "U32" in modifiers else (to_signed(words[0]), to_signed(words[1]))
        result = _COMPARISONS[how](a, b)
        if "EX" in modifiers:
            lower = lanes.predicate(operation.reads[3])
            if lower is None:
                result = None
            elif how == "NE":
                result = result | lower
            elif how == "EQ":
                result = result & lower
            else:
                result = _STRICT[how](a, b) | (a == b) & lower
    elif how in ("T", "F"):
        result = np.full((1, 1), how == "T")
    join = next((_JOINS[name] for name in modifiers[1:] if name in _JOINS), operator.and_)
    other = lanes.predicate(operation.reads[2]) if len(operation.reads) > 2 else None
    for nth, register in enumerate(operation.writes):
        flag = result if nth == 0 or result is None else ~result
        lanes.put(register, _join_values(flag, other, join), guard)


def _join_values(flag: Value, other: Value, join: Callable[[Any, Any], Any]) -> Value:
    if join is operator.and_:
        for value in (flag, other):
            if value is not None and not value.any():
                return np.zeros((1, 1), bool)
    if flag is None or other is None:
        return None
    return join(flag, other)


def select(operation: SassOperation, lanes: Lanes) -> None:
    """SEL: the first operand where the predicate is true, else the second."""
    first, second = lanes.word(operation.reads[0]), lanes.word(operation.reads[1])
    predicate = lanes.predicate(operation.reads[2])
    if predicate is not None and first is not None and predicate.all():
        lanes.result(operation, first)
    elif predicate is not None and second is not None and not predicate.any():
        lanes.result(operation, second)
    elif predicate is None or first is None or second is None:
        lanes.result(operation, None)
    else:
        lanes.result(operation, np.where(predicate, first, second))


def absolute(operation: SassOperation, lanes: Lanes) -> None:
    """IABS."""
    value = lanes.word(operation.reads[0])
    lanes.result(operation, None if value is None else np.abs(value.view(np.int32)).view(np.uint32))


def least(operation: SassOperation, lanes: Lanes) -> None:
    """IMNMX: the smaller of two where the predicate is true, else the larger."""
    words = lanes.words(operation, 2)
    smaller = lanes.predicate(operation.reads[2])
    if words is None or smaller is None:
        lanes.result(operation, None)
        return
    a, b = words if "U32" in operation.modifiers else (v.view(np.int32) for v in words)
    value = np.where(smaller, np.minimum(a, b), np.maximum(a, b))
    lanes.result(operation, value.astype(np.int64).astype(np.uint32))


def extend(operation: SassOperation, lanes: Lanes) -> None:
    """SGXT: the lower b bits, extended by their sign or, with `.U32`, by zeros."""
    words = lanes.words(operation, 2)
    if words is None:
        lanes.result(operation, None)
        return
    a, bits = words[0], np.minimum(words[1], np.uint32(32)).astype(np.uint64)
    value = a.astype(np.uint64) & (np.uint64(1) << bits) - np.uint64(1)
    if "U32" not in operation.modifiers:
        shift = np.uint64(64) - np.maximum(bits, np.uint64(1))
        value = ((value << shift).view(np.int64) >> shift.astype(np.int64)).view(np.uint64)
    lanes.result(operation, low(value))


def permute(operation: SassOperation, lanes: Lanes) -> None:
    """PRMT: each byte of the result is one of the eight bytes (c:a), by a nibble of b."""
    words = lanes.words(operation, 3)
    if words is None or operation.modifiers:
        lanes.result(operation, None)
        return
    a, selector, c = words
    pairs = a.astype(np.uint64) | c.astype(np.uint64) << np.uint64(32)
    value: Array = np.zeros((1, 1), np.uint32)
    for byte in range(4):
        nibble = selector >> np.uint32(4 * byte) & np.uint32(15)
        byte_value = low(pairs >> (nibble & np.uint32(7)).astype(np.uint64) * np.uint64(8))
        byte_value = byte_value & np.uint32(255)
        sign = np.where(byte_value > 127, np.uint32(255), np.uint32(0))
        value = value | np.where(nibble > 7, sign, byte_value) << np.uint32(8 * byte)
    lanes.result(operation, value)


def mask_bits(operation: SassOperation, lanes: Lanes) -> None:
    """BMSK: b ones from bit a on."""
    words = lanes.words(operation, 2)
    if words is None:
        lanes.result(operation, None)
        return
    count = np.minimum(words[1], np.uint32(32)).astype(np.uint64)
    ones = (np.uint64(1) << count) - np.uint64(1)
    lanes.result(operation, low(ones << np.minimum(words[0], np.uint32(32)).astype(np.uint64)))


def count_ones(operation: SassOperation, lanes: Lanes) -> None:
    """POPC."""
    value = lanes.word(operation.reads[0])
    if value is not None:
        value = np.bitwise_count(value).astype(np.uint32)
    lanes.result(operation, value)


def leading_one(operation: SassOperation, lanes: Lanes) -> None:
    """FLO: the position of the highest one, -1 without any; `.SH` counts from the top."""
    value = lanes.word(operation.reads[0])
    if value is None or "U32" not in operation.modifiers:
        lanes.result(operation, None)
        return
    position = np.where(value == 0, -1, np.floor(np.log2(np.maximum(value, 1).astype(float))))
    if "SH" in operation.modifiers:
        position = np.where(value == 0, -1, 31 - position)
    lanes.result(operation, position.astype(np.int64).astype(np.uint32))


__all__ = [
    "absolute",
    "add",
    "compare",
    "count_ones",
    "extend",
    "leading_one",
    "least",
    "logic",
    "mask_bits",
    "move",
    "multiply_add",
    "permute",
    "predicate_logic",
    "scaled_add",
    "select",
    "shift",
]
