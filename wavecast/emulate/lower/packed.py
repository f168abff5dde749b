"""Rows of two elements per register, and 16-bit rows that choose halves: op_sel and its kin."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from wavecast.emulate.errors import Unsupported
from wavecast.isa.instruction import Decoded, Operand
from wavecast.isa.opcode import OperandAccess
from wavecast.isa.semantics import Semantics
from wavecast.isa.semantics.ops import Ops

_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")


def entries(decoded: Decoded, name: str) -> list[int]:
    """The entries of a list modifier such as `op_sel:[0,1]`; [] when it is absent."""
    return [int(text, 0) for text in _NUMBER.findall(decoded.modifiers.get(name, ""))]


def modifier_value(decoded: Decoded, name: str) -> int:
    """A modifier as its row's function takes it: a number, or a list as bits. Signs printed at the
    operands belong to `neg_lo` and, of absolute values, to `neg_hi`."""
    signs = 0
    if name in ("neg_lo", "neg_hi"):
        sources = decoded.operands[len(decoded.operands) - _sources(decoded) :]
        for index, operand in enumerate(sources):
            signs |= int(operand.negate if name == "neg_lo" else operand.absolute) << index
    text = decoded.modifiers.get(name)
    if text is None:
        return signs
    if text.startswith("["):
        return signs | sum(bit << index for index, bit in enumerate(entries(decoded, name)))
    return int(text, 0) if text else 1


def plain(operand: Operand) -> Operand:
    """The operand without signs, for rows whose functions apply them."""
    if not (operand.negate or operand.absolute):
        return operand
    return replace(operand, negate=False, absolute=False)


def evaluate(
    ops: Ops[Any], meaning: Semantics, decoded: Decoded, values: list[Any]
) -> tuple[Any, ...]:
    """A row's outputs with integer clamp, packed halves, and chosen halves of 16-bit operands."""
    clamp = "clamp" in decoded.modifiers
    if meaning.element is not None:
        element = meaning.element_clamped if clamp and meaning.element_clamped else meaning.element
        return (_both(ops, meaning, decoded, values, element),)
    function = meaning.clamped if clamp and meaning.clamped else meaning.function
    if "op_sel" in decoded.modifiers and "op_sel" not in meaning.modifiers:
        values = _apply_op_sel(ops, decoded, values)
    return function(ops, *values)


def clamps_itself(meaning: Semantics) -> bool:
    """Whether the row's own functions apply `clamp`."""
    return meaning.clamped is not None or meaning.element_clamped is not None


def writes_high_half(meaning: Semantics, decoded: Decoded) -> bool:
    """Whether op_sel sends the 16-bit result to the upper half of its register."""
    if meaning.element is not None or "op_sel" in meaning.modifiers:
        return False
    return len(selects := entries(decoded, "op_sel")) > _sources(decoded) and bool(selects[-1])


def _sources(decoded: Decoded) -> int:
    return sum(role.access is OperandAccess.READ for role in decoded.roles)


def own_inputs(decoded: Decoded) -> int:
    """Inputs before the sources: a destination that is read too."""
    return sum(role.access is OperandAccess.READ_WRITE for role in decoded.roles)


def _both(
    ops: Ops[Any], meaning: Semantics, decoded: Decoded, values: list[Any], element: Any
) -> Any:
    """The element function on each half; every operand's half and sign as its modifiers say."""
    bits, skip = meaning.element_bits, own_inputs(decoded)
    halves = []
    for name, sign, usual in (("op_sel", "neg_lo", 0), ("op_sel_hi", "neg_hi", 1)):
        picks, signs = entries(decoded, name), entries(decoded, sign)
        operands = []
        for index, value in enumerate(values):
            source = index - skip
            upper = picks[source] if 0 <= source < len(picks) else usual
            part = _half(ops, value, bits, bool(upper))
            if 0 <= source < len(signs) and signs[source]:
                part = ops.xor(part, ops.const(1 << (bits - 1), 32), 32)
            operands.append(part)
        halves.append(element(ops, *operands)[0])
    low, high = halves
    if bits == 32:
        return ops.join(low, high)
    return ops.or_(ops.low_half(low), ops.shl(high, ops.const(16, 32), 32), 32)


def _half(ops: Ops[Any], value: Any, bits: int, upper: bool) -> Any:
    if bits == 16:
        return ops.lshr(value, ops.const(16, 32), 32) if upper else value
    if upper:
        value = ops.lshr(value, ops.const(32, 64), 64)
    return ops.truncate(value, 64, 32)


def _apply_op_sel(ops: Ops[Any], decoded: Decoded, values: list[Any]) -> list[Any]:
    picks, skip = entries(decoded, "op_sel"), own_inputs(decoded)
    roles = [role for role in decoded.roles if role.access is OperandAccess.READ]
    operands = list(values)
    for index, pick in enumerate(picks[: len(roles)]):
        if not pick:
            continue
        value = values[index + skip]
        if roles[index].dwords > 1:
            raise Unsupported("op_sel on an operand of more than 32 bits")
        operands[index + skip] = ops.lshr(value, ops.const(16, 32), 32)
    return operands
