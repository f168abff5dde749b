"""One row of the opcode table: what an instruction reads, writes and means.

Nothing here depends on a chip. What an instruction costs is looked up through `cost_class` in the
device's cost table (`wavecast.arch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

VECTOR_FORMS: Final = frozenset({"VOP1", "VOP2", "VOP3", "VOPC", "VOP3P", "MFMA", "WMMA"})
VECTOR_MEMORY_FORMS: Final = frozenset({"MUBUF", "GLOBAL", "FLAT", "SCRATCH"})
SCALAR_FORMS: Final = frozenset({"SOP1", "SOP2", "SOPC", "SOPK"})
FORMS: Final = (
    VECTOR_FORMS | VECTOR_MEMORY_FORMS | SCALAR_FORMS | {"SOPP", "SMEM", "DS", "TENSOR", "EXP"}
)


class Access(Enum):
    """How an instruction uses one operand."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read_write"
    RETURN = "return"
    """Atomics: written only in the form that returns the old value, and read when the operand
    also carries the data (buffer and scalar forms)."""


class OperandKind(Enum):
    """Where an operand may live. The value is its code in the table files."""

    VECTOR = "v"  # VGPR or AGPR
    SOURCE = "src"  # VGPR, SGPR, special register, or constant
    SCALAR = "s"  # SGPR or special scalar register
    SCALAR_SOURCE = "ssrc"  # SGPR, special scalar register, or constant
    LANE_MASK = "mask"  # VCC or SGPRs: one bit per lane
    ADDRESS = "addr"  # VGPRs holding an address or offset, or `off`
    SCALAR_ADDRESS = "saddr"  # SGPR pair added to a vector address, or `off`
    RESOURCE = "rsrc"  # four SGPRs holding a buffer descriptor
    OFFSET = "soff"  # SGPR or constant offset
    IMMEDIATE = "imm"  # a literal, hwreg(), sendmsg() or other expression
    LABEL = "label"  # a branch target


@dataclass(frozen=True, slots=True)
class OperandRole:
    """What one operand position of an opcode is for.

    `type` is an element type such as `f32`, `u16`, `b64`, `f16x2`, or `""` where the operand has
    none (labels, immediates, descriptors); `dwords` the 32-bit registers it spans, 0 when the
    text decides (lane masks follow the wave size).
    """

    kind: OperandKind
    access: Access
    type: str
    dwords: int
    optional: bool = False


class Space(Enum):
    """Memory an instruction touches."""

    GLOBAL = "global"
    BUFFER = "buffer"  # global memory through a buffer descriptor
    FLAT = "flat"
    SCRATCH = "scratch"
    LDS = "lds"
    SCALAR = "scalar"  # global memory through the scalar cache


class MemoryKind(Enum):
    """What a memory instruction does."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    LOAD_TO_LDS = "load_to_lds"
    STORE_FROM_LDS = "store_from_lds"
    PERMUTE = "permute"  # ds_permute, ds_bpermute: LDS hardware, no memory


@dataclass(frozen=True, slots=True)
class MemoryEffect:
    """The memory side of an opcode: space, kind, and bytes moved per lane (per wave for scalar)."""

    space: Space
    kind: MemoryKind
    bytes: int


class Control(Enum):
    """How an instruction changes the flow of control."""

    NONE = ""
    BRANCH = "branch"  # always taken
    CONDITIONAL = "conditional"  # taken or falls through
    END = "end"
    CALL = "call"
    INDIRECT = "indirect"  # s_setpc: return or computed jump


class Role(Enum):
    """What an instruction without a data result is for."""

    NONE = ""
    WAIT = "wait"  # waits for outstanding memory operations
    HINT = "hint"  # s_delay_alu, s_clause, s_setprio …: no architectural effect
    NOP = "nop"
    BARRIER = "barrier"
    MESSAGE = "message"
    CACHE = "cache"  # invalidate or write back
    PREFETCH = "prefetch"


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """D = A·B + C of a matrix instruction: M x N x K, `blocks` independent products.

    Types are element type names (`bf16`, `fp8`, `f8f6f4` where modifiers choose). For sparse
    instructions K is the dense-equivalent depth. `scaled` instructions take block scales.
    """

    m: int
    n: int
    k: int
    blocks: int
    a_type: str
    b_type: str
    cd_type: str
    sparse: bool
    scaled: bool = False

    @property
    def flops(self) -> int:
        """Multiply and add operations of one wave-wide execution."""
        return 2 * self.m * self.n * self.k * self.blocks


@dataclass(frozen=True, slots=True)
class Opcode:
    """One row of the opcode table.

    `mnemonics` gives the name LLVM prints per target, without encoding suffix (`_e32`, `_dpp` …);
    a target that is missing there does not have the instruction. `implicit_reads` and
    `implicit_writes` are register names (`scc`, `vcc`, `exec`, `m0`). `flops` counts useful
    floating-point operations per lane (an FMA is 2); matrix instructions carry theirs in `matrix`.
    """

    name: str
    form: str
    operands: tuple[OperandRole, ...]
    implicit_reads: tuple[str, ...]
    implicit_writes: tuple[str, ...]
    cost_class: str
    flops: float
    mnemonics: Mapping[str, str]
    memory: MemoryEffect | None = None
    control: Control = Control.NONE
    role: Role = Role.NONE
    matrix: MatrixShape | None = None

    @property
    def is_vector(self) -> bool:
        """Executes once per active lane, so reads EXEC."""
        return self.form in VECTOR_FORMS or self.form in VECTOR_MEMORY_FORMS or self.form == "DS"
