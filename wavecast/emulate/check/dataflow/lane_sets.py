"""Sets of lanes as random signatures: what EXEC, masks and definitions cover, at translation.

What a comparison leaves in a mask is not known, but the same unknown set gets the same random bits
wherever it is read, and scalar instructions are evaluated on those bits. A set that covers another
in every one of some hundred random lanes covers it (the odds of a mistake are below 1e-28): that
`exec & c | exec & ~c` is EXEC again needs no separate rule.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from wavecast.emulate.lower.operands import constant_bits
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, OperandClass
from wavecast.isa.opcode import OperandAccess, OperandKind
from wavecast.isa.semantics.integers import IntegerOps

BITS: Final = 256
"""Random lanes of a signature, in pieces as wide as a wave."""
EVERY: Final = (1 << BITS) - 1
"""All lanes the wave started with."""
NONE: Final = 0


@lru_cache(maxsize=1 << 16)
def unknown(*name: object) -> int:
    """The signature of a set nothing is known of; equal names give the same."""
    return random.Random(repr(name)).getrandbits(BITS)


def covers(larger: int, smaller: int) -> bool:
    return not smaller & ~larger


def evaluate_masks(decoded: Decoded, lanes: int, inputs: Sequence[int | None]) -> list[int] | None:
    """The masks a scalar row computes from masks: one signature per output, None for a row or
    inputs (in the order semantics take them) other than masks. Constant operands need no input."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None:
        return None
    ops = IntegerOps()
    totals: list[int] = []
    pieces = BITS // lanes
    whole = (1 << lanes) - 1
    for piece in range(pieces):
        values = []
        for value in _values(decoded, inputs):
            if value is None:
                return None
            values.append(value[0] if value[1] else value[0] >> piece * lanes & whole)
        for index, output in enumerate(meaning.evaluate(ops, *values)):
            if not isinstance(output, int):
                return None
            if not piece:
                totals.append(0)
            totals[index] |= (output & whole) << piece * lanes
    return totals


def _values(decoded: Decoded, inputs: Sequence[int | None]) -> list[tuple[int, bool] | None]:
    """(value, whether it is a constant) per input."""
    values: list[tuple[int, bool] | None] = []
    input_values = iter(inputs)
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is OperandAccess.WRITE or role.kind is OperandKind.LABEL:
            continue
        if operand.kind is OperandClass.CONSTANT:
            width = 32 * role.dwords if role.dwords else 32
            values.append((constant_bits(operand, role, width), True))
        else:
            value = next(input_values)
            values.append(None if value is None else (value, False))
    for value in input_values:
        values.append(None if value is None else (value, False))
    return values


__all__ = ["EVERY", "NONE", "covers", "evaluate_masks", "unknown"]
