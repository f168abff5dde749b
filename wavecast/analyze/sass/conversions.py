"""Conversions and the float instructions that integer code needs.

Integer divisions go through I2F, MUFU.RCP and F2I, which are evaluated in fp32; their code corrects
the quotient afterwards, so that its last bit does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wavecast.analyze.sass.lanes import Lanes, to_signed, word
from wavecast.analyze.sass.operands import ZERO, SassOperand, SassOperation

Array = np.ndarray[Any, Any]


def half_constant(operation: SassOperation, lanes: Lanes) -> None:
    """HFMA2 of zeros with two fp16 constants: how compilers load some words on the FMA pipe."""
    factors, constants = operation.reads[:2], operation.reads[2:4]
    zero = all(o.register is not None and o.register.number == ZERO for o in factors)
    halves = [_half(operand) for operand in constants]
    if not zero or len(halves) != 2 or halves[0] is None or halves[1] is None:
        lanes.result(operation, None)
        return
    lanes.result(operation, word(halves[0] << 16 | halves[1]))


def _half(operand: SassOperand) -> int | None:
    """The bits of an fp16 constant."""
    try:
        number = float(operand.text.replace("QNAN", "nan").replace("INF", "inf"))
    except ValueError:
        return None
    return int(np.float16(number).view(np.uint16))


def to_float(operation: SassOperation, lanes: Lanes) -> None:
    """I2F: to fp32; `.RP` rounds up, which a division by reciprocals corrects either way."""
    value = lanes.word(operation.reads[0])
    unusual = {"F64", "F16", "U8", "S8", "U16", "S16", "S64", "U64", "BF16"}
    if value is None or unusual & set(operation.modifiers):
        lanes.result(operation, None)
        return
    modifiers = operation.modifiers
    whole = value if "U32" in modifiers else to_signed(value)
    exact = whole.astype(np.float64)
    rounded = exact.astype(np.float32)
    if "RP" in modifiers:
        short = rounded.astype(np.float64) < exact
        rounded = np.where(short, np.nextafter(rounded, np.float32(np.inf)), rounded)
    lanes.result(operation, rounded.astype(np.float32).view(np.uint32))


def to_integer(operation: SassOperation, lanes: Lanes) -> None:
    """F2I: of fp32, to 32 bits."""
    value = lanes.word(operation.reads[0])
    if value is None or {"F64", "F16", "S64", "U64", "U8", "S8"} & set(operation.modifiers):
        lanes.result(operation, None)
        return
    number = np.nan_to_num(value.view(np.float32).astype(np.float64))
    how = next((r for r in ("TRUNC", "FLOOR", "CEIL") if r in operation.modifiers), "")
    whole = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}.get(how, np.rint)(number)
    bounds = (0, 2**32 - 1) if "U32" in operation.modifiers else (-(2**31), 2**31 - 1)
    lanes.result(operation, np.clip(whole, *bounds).astype(np.int64).astype(np.uint32))


def unary_function(operation: SassOperation, lanes: Lanes) -> None:
    """MUFU: only the reciprocal is evaluated."""
    value = lanes.word(operation.reads[0])
    if value is None or operation.modifiers[:1] != ("RCP",):
        lanes.result(operation, None)
        return
    with np.errstate(divide="ignore"):
        reciprocal = np.float32(1) / value.view(np.float32)
    lanes.result(operation, reciprocal.astype(np.float32).view(np.uint32))


__all__ = [
    "half_constant",
    "to_float",
    "to_integer",
    "unary_function",
]
