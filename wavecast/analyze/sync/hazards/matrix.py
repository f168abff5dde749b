"""Wait states after a matrix instruction of CDNA, by how the later instruction depends on it.

Source of all numbers: LLVM 23.1.1 GCNHazardRecognizer.cpp, checkMAIHazards90A and
checkMAIVALUHazards; of gfx908 checkMAIHazards908. A pass is four clocks of the matrix pipe.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from wavecast.analyze.charges import matrix_formats
from wavecast.arch import capabilities
from wavecast.arch.cost import matrix_row
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import OperandAccess

WINDOW: Final = 20
"""No dependence on a matrix instruction needs more wait states than this."""

_CLOCKS_PER_PASS: Final = 4
_SHORT: Final = 2  # passes of the 4x4 instructions
_SMALL_F64: Final = 4  # passes of the 4x4x4 double-precision instruction


def passes(decoded: Decoded, target: str) -> int:
    """Passes of a matrix instruction. Raises UnknownName for one without a cost."""
    return _passes(target, decoded.opcode.mnemonics[target], *matrix_formats(decoded))


@cache
def _passes(target: str, mnemonic: str, a_format: str, b_format: str) -> int:
    row = matrix_row(target, mnemonic, a_format, b_format, lanes=64)
    return row.cycles // _CLOCKS_PER_PASS


def is_f64(decoded: Decoded) -> bool:
    """True for double-precision matrix instructions."""
    shape = decoded.opcode.matrix
    return shape is not None and shape.cd_type == "f64"


def on_xdl(decoded: Decoded, target: str) -> bool:
    """Whether the matrix core proper executes it: all but double precision and, from gfx940 on,
    plain single precision (LLVM isGFX940XDL)."""
    shape = decoded.opcode.matrix
    if shape is None or shape.cd_type == "f64":
        return False
    return not (_has(target, "fp32_matrix_apart") and shape.a_type == "f32")


def _has(target: str, hazard: str) -> bool:
    return hazard in capabilities(target).hazards


def accumulator(decoded: Decoded) -> int:
    """The registers of C: those of D where an instruction accumulates in place."""
    if decoded.roles[0].access is OperandAccess.READ_WRITE:
        return decoded.operands[0].bits
    return decoded.operands[3].bits


def multiplicands(decoded: Decoded) -> int:
    """The registers of A, B, and an index or scales."""
    accumulates = decoded.roles[0].access is OperandAccess.READ_WRITE
    bits = 0
    for position, operand in enumerate(decoded.operands[1:], 1):
        if position != 3 or accumulates:
            bits |= operand.bits
    return bits


def before_use(producer: Decoded, target: str, *, memory: bool) -> int:
    """Until an instruction of another kind, or a matrix instruction as A or B, reads D.

    `memory`: the reader is a memory instruction, which reads double precision later.
    """
    count = passes(producer, target)
    if _has(target, "separate_accumulators"):
        return count + 2
    late = _has(target, "late_matrix_result")
    if is_f64(producer):
        if count == _SMALL_F64:
            return 9 if memory else 6
        return 18 if memory else 19 if late else 11
    if on_xdl(producer, target):
        return count + 3 + (late and count != _SHORT)
    return count + 2


def before_multiply(producer: Decoded, target: str) -> int:
    """Until a matrix instruction reads D as A or B."""
    if _has(target, "separate_accumulators"):
        return 4
    return before_use(producer, target, memory=False)


def before_overwrite(producer: Decoded, target: str) -> int:
    """Until an instruction of another kind may write D."""
    if _has(target, "separate_accumulators"):
        return passes(producer, target) - 1
    if is_f64(producer):
        return 6 if passes(producer, target) == _SMALL_F64 else 11
    return before_use(producer, target, memory=False)


def before_accumulator_overwrite(reader: Decoded, target: str) -> int:
    """Until an instruction of another kind may write C, which is read late."""
    if _has(target, "separate_accumulators"):
        return max(0, passes(reader, target) - 3)
    if not on_xdl(reader, target):
        return 0
    return passes(reader, target) - 1


def before_accumulate(producer: Decoded, user: Decoded, target: str) -> int:
    """Until a matrix instruction takes D as its C."""
    if _has(target, "separate_accumulators"):
        return 0 if producer.operands[0].bits == accumulator(user) else 2
    count = passes(producer, target)
    if producer.operands[0].bits == accumulator(user):
        if is_f64(user) and is_f64(producer):
            both_small = count == _SMALL_F64 == passes(user, target)
            return 4 if both_small else 0
        return 2 if _has(target, "late_matrix_accumulator") and count == _SHORT else 0
    return _before_overlapping(producer, user, count, target)


def _before_overlapping(producer: Decoded, user: Decoded, count: int, target: str) -> int:
    late = _has(target, "late_matrix_result")
    user_on_xdl = on_xdl(user, target)
    if is_f64(producer):
        if user_on_xdl:
            return 0
        return 4 if count == _SMALL_F64 else 17 if late else 9
    if not on_xdl(producer, target):
        return 0 if user_on_xdl else count
    if user_on_xdl:
        return count + _has(target, "late_matrix_accumulator") + late
    return count + 1 + (late and count != _SHORT)
