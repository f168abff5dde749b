"""One row of the opcode table: what an instruction reads, writes and means.

Nothing here depends on a chip. What an instruction costs is looked up through `cost_class` in the
device's cost table (`wavecast.arch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

VECTOR_FORMS: Final = frozenset({"VOP1", "VOP2", "VOP3", "VOPC", "VOP3P", "MFMA", "WMMA"})
VECTOR_MEMORY_FORMS: Final = frozenset({"MUBUF", "GLOBAL", "FLAT", "SCRATCH"})
PER_LANE_FORMS: Final = VECTOR_FORMS | VECTOR_MEMORY_FORMS | {"DS"}
"""Executed once per active lane."""
SCALAR_FORMS: Final = frozenset({"SOP1", "SOP2", "SOPC", "SOPK"})
FORMS: Final = (
    VECTOR_FORMS | VECTOR_MEMORY_FORMS | SCALAR_FORMS | {"SOPP", "SMEM", "DS", "TENSOR", "EXP"}
)


class OperandAccess(Enum):
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
    access: OperandAccess
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


class OpcodeFlag(StrEnum):
    """A fact of one or a few instructions that no other column of the table gives.

    The value is the word of the table. Sources: AMD instruction set architecture guides, entries of
    the instructions; LLVM GCNHazardRecognizer.cpp for those that only matter to hazards.
    """

    ARRIVE = "arrive"
    """The wave tells the others of its workgroup that it has reached the barrier."""
    AWAIT = "await"
    """The wave stops until the others of its workgroup have reached the barrier."""
    BARRIER_QUERY = "barrier_query"
    """Asks the barrier unit; the answer comes back and is counted like a scalar load."""
    LOAD_COUNTED = "load_counted"
    """Cache control that is counted with loads."""
    STORE_COUNTED = "store_counted"
    """Cache control that is counted with stores."""
    INVALIDATES = "invalidates"
    """Cache control after which loads see what others have made visible."""
    WRITES_BACK = "writes_back"
    """Cache control that makes earlier stores visible to others."""
    WORKGROUP_SCOPE = "workgroup_scope"
    """Cache control for this scope. Rows without a flag of scope have modifiers for it."""
    AGENT_SCOPE = "agent_scope"
    SYSTEM_SCOPE = "system_scope"
    PRIORITY = "priority"
    """Sets the priority the wave issues with."""
    CLAUSE = "clause"
    """Says how many instructions that follow are issued together."""
    DELAY = "delay"
    """Says which earlier results the next instructions need."""
    SLEEP = "sleep"
    """The wave issues nothing for the clocks its operand gives."""
    TRAP = "trap"
    TRAP_RETURN = "trap_return"
    GETPC = "getpc"
    """Reads the program counter."""
    CLOCK = "clock"
    """Reads the cycle counter of the shader."""
    GETREG = "getreg"
    """Reads a field of a hardware register."""
    SETREG = "setreg"
    """Writes a field of a hardware register."""
    ROUND_MODE = "round_mode"
    """Writes MODE[3:0]."""
    DENORM_MODE = "denorm_mode"
    """Writes MODE[7:4]."""
    VGPR_MSB = "vgpr_msb"
    """Sets the upper bits of vector register numbers; LLVM prints the complete numbers."""
    INDEX_ON = "index_on"
    """Starts VGPR indexing (gfx9)."""
    INDEX_OFF = "index_off"
    INDEX_MODE = "index_mode"
    """Sets which operands VGPR indexing applies to."""
    VECTOR_SKIP = "vector_skip"
    """Says whether the vector instructions that follow are executed (gfx9)."""
    INDEX_VALUE = "index_value"
    """Sets the index of VGPR indexing."""
    M0_SOURCE = "m0_source"
    """Adds M0 to the number of the source register."""
    M0_DEST = "m0_dest"
    """Adds M0 to the number of the destination register."""
    M0_DEST_HIGH = "m0_dest_high"
    """Adds M0[25:16] to the number of the destination register."""
    MOVE = "move"
    """Copies one source to a vector register."""
    CHOICE = "choice"
    """The result is one of several values: a select, a minimum, a maximum or a median."""
    HIGH_PRODUCT = "high_product"
    """The upper half of an integer product; compilers divide by constants with it."""
    CLASSIFIES = "classifies"
    """Compares the class of a number: NaN, infinity, zero."""
    DIVISION_END = "division_end"
    """The last step of a division: the quotient counts where divisor and dividend are ordinary."""
    BIT_FIELD = "bit_field"
    """Takes some bits of one register: its last operand says which."""
    INVERSE = "inverse"
    """A reciprocal: infinite for 0, and 0 for infinity."""
    DIVISION = "division"
    """A step of a division whose result v_div_fixup replaces for special operands."""
    INTEGER_RECIPROCAL = "integer_reciprocal"
    """Only integer divisions use it: 0 raises the exception of an integer division by zero."""
    LANE_READ = "lane_read"
    """Reads one lane of a vector register into a scalar register."""
    LANE_WRITE = "lane_write"
    """Writes one lane of a vector register."""
    PERMLANE = "permlane"
    """Exchanges vector registers between lanes in the vector unit."""
    SWAPS_HALVES = "swaps_halves"
    """Exchanges the halves of a wave of 64 lanes; on waves of 32 it moves nothing."""
    LANES_BELOW = "lanes_below"
    """Counts bits of a mask below the lane: its number in the wave, where all bits are set."""
    PART_WRITE = "part_write"
    """The result passes the selector that places it in part of its register."""
    UPPER_CONSTANT = "upper_constant"
    """A constant of a bf16 source is that of float32, whose upper half op_sel has to take (LLVM,
    pull requests 183487, 209861 and 223035)."""
    M0_HAZARD = "m0_hazard"
    """Needs a wait state after a scalar write of M0 on gfx9."""
    WAIT_ALU = "wait_alu"
    """Waits for vector and scalar arithmetic; its immediate has a field per dependency counter."""


@dataclass(frozen=True, slots=True)
class WaitField:
    """One counter of a wait's immediate: its bits as (first, width), the least significant part
    first. With `optional` a field of all ones does not wait."""

    counter: str
    parts: tuple[tuple[int, int], ...]
    optional: bool = False

    def value(self, immediate: int) -> int:
        """The field's value in an immediate."""
        field_value, position = 0, 0
        for first, width in self.parts:
            field_value |= (immediate >> first & (1 << width) - 1) << position
            position += width
        return field_value

    def immediate(self, value: int) -> int:
        """The immediate that has this value in the field, and zeros elsewhere."""
        immediate = 0
        for first, width in self.parts:
            immediate |= (value & (1 << width) - 1) << first
            value >>= width
        return immediate

    @property
    def ones(self) -> int:
        """The field's largest value."""
        return (1 << sum(width for _, width in self.parts)) - 1


@dataclass(frozen=True, slots=True)
class MemoryForm:
    """How a memory row addresses memory and places its data in registers.

    `operation`: what an atomic does ("" for other rows and for atomics without a name here).
    `comparand_first`: the comparand of an LDS compare-and-store is its first data operand (gfx9;
    the second one from gfx11 on). `high`: sub-dword data is in the upper half of its register.
    `offsets`: 2 where two elements have an offset each, counted in elements times `stride`.
    `transpose`: bits of the elements a transposing load exchanges between lanes. `exchange`: how
    lanes exchange dwords. `by_lane`: the address is the lane number times four. `formatted`: data
    is converted by the descriptor's format. `block`: M0 chooses registers. `sign_extended`: a load
    to LDS extends its data by the sign.
    """

    operation: str = ""
    comparand_first: bool = False
    high: bool = False
    offsets: int = 1
    stride: int = 1
    transpose: int = 0
    exchange: str = ""
    by_lane: bool = False
    formatted: bool = False
    block: bool = False
    sign_extended: bool = False


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
    `waits` are the fields of a wait's immediate; `waits_for_all` a wait for every counter.
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
    memory_form: MemoryForm = MemoryForm()
    flags: frozenset[OpcodeFlag] = frozenset()
    waits: tuple[WaitField, ...] = ()
    waits_for_all: bool = False

    @property
    def is_vector(self) -> bool:
        """Executes once per active lane, so reads EXEC."""
        return self.form in PER_LANE_FORMS
