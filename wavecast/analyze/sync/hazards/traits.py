"""What the hazard rules ask of an instruction, worked out once per instruction text."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from wavecast.isa.instruction import Decoded, OperandClass
from wavecast.isa.opcode import (
    SCALAR_FORMS,
    VECTOR_FORMS,
    VECTOR_MEMORY_FORMS,
    MemoryKind,
    Opcode,
    OpcodeFlag,
    OperandAccess,
    OperandKind,
    Role,
)
from wavecast.isa.registers import AGPRS, EXEC, M0, REGISTERS, SCC, VGPRS, special

VECTOR: Final = VGPRS | AGPRS
OTHERS: Final = ((1 << REGISTERS) - 1) ^ VECTOR
"""All registers but vector ones. A mask without a sign is much faster than `~VECTOR`."""
_SCALAR: Final = OTHERS ^ (SCC | EXEC | special("mode"))

VALU: Final = 1 << 0
VMEM: Final = 1 << 1  # buffer, global, flat, scratch
DS: Final = 1 << 2
SALU: Final = 1 << 3
SMEM: Final = 1 << 4
TRANS: Final = 1 << 5
DOT: Final = 1 << 6
MATRIX: Final = 1 << 7
DPP: Final = 1 << 8
LANE_READ: Final = 1 << 9  # v_readlane, v_readfirstlane
LANE_WRITE: Final = 1 << 10
DIV_FMAS: Final = 1 << 11
FMA64: Final = 1 << 12
PERMLANE: Final = 1 << 13
COMPARE_EXEC: Final = 1 << 14  # v_cmpx
READS_M0_LATE: Final = 1 << 15
SETREG: Final = 1 << 16
GETREG: Final = 1 << 17
RETURN_FROM_TRAP: Final = 1 << 18
PART_WRITE: Final = 1 << 19  # writes part of its register through the result selector
MESSAGE: Final = 1 << 20
DEALLOCATES: Final = 1 << 21
NOP: Final = 1 << 22
F64_MATRIX: Final = 1 << 23
WAIT_ALU: Final = 1 << 24
COMPARES: Final = 1 << 25
ACCUMULATOR: Final = 1 << 26  # copies from or to an accumulation register
DENORM_MODE: Final = 1 << 27
FLOAT_ATOMIC: Final = 1 << 28
WAITS: Final = 1 << 29

_ALWAYS: Final = EXEC | M0
_WIDE: Final = 8  # bytes
_HWREG_NUMBER: Final = 0x3F
_HWREG: Final = re.compile(r"(?:hwreg\()?\s*(?P<register>\w+)")
_OF_TABLE: Final = {
    OpcodeFlag.LANE_READ: LANE_READ,
    OpcodeFlag.LANE_WRITE: LANE_WRITE,
    OpcodeFlag.PERMLANE: PERMLANE,
    OpcodeFlag.SETREG: SETREG,
    OpcodeFlag.GETREG: GETREG,
    OpcodeFlag.TRAP_RETURN: RETURN_FROM_TRAP,
    OpcodeFlag.M0_HAZARD: READS_M0_LATE,
    OpcodeFlag.WAIT_ALU: WAIT_ALU,
    OpcodeFlag.PART_WRITE: PART_WRITE,
    OpcodeFlag.DENORM_MODE: DENORM_MODE,
}
_FMA_FLOPS: Final = 2
_SELECTING_FORMS: Final = frozenset({"VOP1", "VOP2", "VOP3"})


class Traits:
    """Flags and register sets of one instruction.

    `states` are the wait states it stands for (`s_nop N` for N + 1), `data` is what a store of more
    than two dwords reads, `touched` all it may depend on (EXEC and M0 always). Immutable by
    convention: a program has tens of thousands.
    """

    __slots__ = ("data", "decoded", "flags", "reads", "states", "touched", "writes")

    def __init__(self, decoded: Decoded) -> None:
        flags = _row_flags(decoded.opcode)
        modifiers = decoded.modifiers
        self.decoded = decoded
        self.reads = decoded.reads
        self.writes = decoded.writes
        self.touched = decoded.reads | decoded.writes | _ALWAYS
        self.states = _states(decoded) if flags & NOP else 1
        self.data = 0
        if flags & VALU:
            if "dpp" in decoded.encoding:
                flags |= DPP
            if flags & COMPARES and decoded.writes & EXEC:
                flags |= COMPARE_EXEC
            if "op_sel" in modifiers or decoded.encoding == "sdwa":
                flags |= PART_WRITE if _selects_part(decoded) else 0
        elif flags & VMEM and decoded.memory is not None:
            if decoded.memory.kind is MemoryKind.LOAD_TO_LDS:
                flags |= READS_M0_LATE
            elif decoded.memory.kind is MemoryKind.STORE and decoded.memory.bytes > _WIDE:
                self.data = _store_data(decoded)
        elif flags & DS and "gds" in modifiers:
            flags |= READS_M0_LATE
        elif flags & MESSAGE and "DEALLOC_VGPRS" in decoded.text:
            flags |= DEALLOCATES
        self.flags = flags

    @property
    def sources(self) -> int:
        """The vector registers it reads."""
        return self.reads & VECTOR

    @property
    def moved_registers(self) -> int:
        """The vector registers it reads as sources. What a DPP instruction leaves in its
        destination is not among them: lanes that it does not write keep their value in place."""
        pairs = zip(self.decoded.operands, self.decoded.roles, strict=True)
        bits = 0
        for operand, role in pairs:
            if role.access in (OperandAccess.READ, OperandAccess.READ_WRITE):
                bits |= operand.bits
        return bits & VECTOR

    @property
    def scalars(self) -> int:
        """The scalar registers it reads, EXEC apart."""
        return self.reads & _SCALAR

    @property
    def lane_select(self) -> int:
        """The scalar register that chooses the lane of v_readlane and v_writelane."""
        operands = self.decoded.operands
        return operands[-1].bits & _SCALAR if len(operands) > 2 else 0

    @property
    def scalar_offset(self) -> bool:
        """Whether a buffer instruction adds an SGPR to its address."""
        pairs = zip(self.decoded.operands, self.decoded.roles, strict=True)
        return any(role.kind is OperandKind.OFFSET and operand.bits for operand, role in pairs)

    @property
    def register(self) -> str:
        """The hardware register of s_setreg and s_getreg, "" for other instructions."""
        for operand in self.decoded.operands:
            if operand.kind is OperandClass.EXPRESSION:
                match = _HWREG.match(operand.text)
                return match["register"] if match else operand.text
            if operand.kind is OperandClass.CONSTANT and operand.value is not None:
                return str(operand.value & _HWREG_NUMBER)
        return ""


_known_rows: dict[str, int] = {}


def _row_flags(row: Opcode) -> int:
    """The flags every form of a row has."""
    flags = _known_rows.get(row.name)
    if flags is None:
        flags = _known_rows[row.name] = _flags_of(row)
    return flags


def _flags_of(row: Opcode) -> int:
    form, cost = row.form, row.cost_class
    flags = 0
    if form in VECTOR_FORMS:
        flags |= VALU
        if row.matrix is not None:
            flags |= MATRIX | (F64_MATRIX if row.matrix.cd_type == "f64" else 0)
        elif cost.startswith("trans"):
            flags |= TRANS
        elif cost == "valu_dot":
            flags |= DOT
        elif cost == "accvgpr":
            flags |= ACCUMULATOR
        if form == "VOPC":
            flags |= COMPARES
        if OpcodeFlag.DIVISION in row.flags:
            flags |= DIV_FMAS if "vcc" in row.implicit_reads else 0
        elif cost == "valu_f64" and row.flops == _FMA_FLOPS:
            flags |= FMA64
    elif form in VECTOR_MEMORY_FORMS:
        flags |= VMEM
        atomic = row.memory is not None and row.memory.kind is MemoryKind.ATOMIC
        if atomic and row.operands[0].type.startswith("f"):
            flags |= FLOAT_ATOMIC
    elif form == "DS":
        flags |= DS
    elif form == "SMEM":
        flags |= SMEM
    elif form in SCALAR_FORMS or form == "SOPP":
        flags |= SALU
    if row.role is Role.NOP:
        flags |= NOP
    if row.role is Role.WAIT:
        flags |= WAITS
    if row.role is Role.MESSAGE:
        flags |= MESSAGE
    for flag in row.flags:
        flags |= _OF_TABLE.get(flag, 0)
    return flags


def _selects_part(decoded: Decoded) -> bool:
    """Whether the result passes the selector that places it in part of its register (LLVM
    GCNHazardRecognizer.cpp, getDstSelForwardingOperand)."""
    if decoded.encoding == "sdwa":
        return decoded.modifiers.get("dst_sel", "DWORD") != "DWORD"
    if decoded.opcode.form not in _SELECTING_FORMS:
        return False
    selected = decoded.modifiers["op_sel"].strip("[]").split(",")
    sources = sum(role.access is OperandAccess.READ for role in decoded.roles)
    return "1" in selected[sources:]


def _store_data(decoded: Decoded) -> int:
    """The data registers of a store, 0 where it has fewer than three."""
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.kind is OperandKind.VECTOR and operand.count > _WIDE // 4:
            return operand.bits
    return 0


def _states(decoded: Decoded) -> int:
    count = decoded.operands[0].value if decoded.operands else None
    return (count or 0) + 1


def alu_wait(decoded: Decoded, field: str) -> int | None:
    """The value of a counter after `s_wait_alu` (`s_waitcnt_depctr`), None if it does not wait.

    Fields of the immediate: LLVM AMDGPUBaseInfo.h, DepCtr: va_vdst bits 15-12, va_sdst 11-9,
    vm_vsrc 4-2, va_vcc 1, sa_sdst 0.
    """
    operand = decoded.operands[0]
    if operand.kind is OperandClass.CONSTANT and operand.value is not None:
        first, width = _ALU_FIELDS[field]
        most = (1 << width) - 1
        value = operand.value >> first & most
        return value if value != most else None
    return _alu_waits(operand.text).get(field)


@cache
def _alu_waits(text: str) -> dict[str, int]:
    return {match[1]: int(match[2], 0) for match in _ALU_WAIT.finditer(text)}


_ALU_WAIT: Final = re.compile(r"depctr_(\w+)\((\d+|0x[0-9a-fA-F]+)\)")
_ALU_FIELDS: Final = {
    "va_vdst": (12, 4),
    "va_sdst": (9, 3),
    "vm_vsrc": (2, 3),
    "va_vcc": (1, 1),
    "sa_sdst": (0, 1),
}

__all__ = ["Traits", "alu_wait"]
