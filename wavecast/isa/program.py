"""A function of machine code as a control-flow graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wavecast.isa.instruction import Instruction, SourceLocation
from wavecast.isa.opcode import Control, Role


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block: instructions `[start, stop)` of its program."""

    index: int
    label: str
    start: int
    stop: int
    successors: tuple[int, ...]
    predecessors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: `header` dominates every block in `blocks` (header included).

    `depth` is 1 for an outermost loop; `parent` and `children` are indices into
    `Program.loops`. `latches` are the blocks that jump back to the header; `location` is the
    source line of the loop: the commonest one of its code without inner loops, hoisted to the
    outermost call site.
    """

    index: int
    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]
    depth: int
    parent: int | None
    children: tuple[int, ...]
    location: SourceLocation | None


@dataclass(frozen=True, slots=True)
class Data:
    """Memory a code object brings along: its bytes, where each symbol lies in them, and the word
    that holds a symbol's address. `addresses` are (place, offset of what the address is of)."""

    content: bytes
    symbols: Mapping[str, int]
    words: Mapping[str, int]
    addresses: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Program:
    """One function: instructions in order, blocks, edges, dominators and loops.

    Block 0 is the entry. `immediate_dominators[b]` is -1 for the entry and for unreachable
    blocks; `loops` is ordered outer before inner.
    """

    name: str
    target: str
    instructions: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    immediate_dominators: tuple[int, ...]
    loops: tuple[Loop, ...]
    reverse_postorder: tuple[int, ...]
    innermost_loop: tuple[int | None, ...]
    """Per block, the index of the innermost loop that holds it."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """First instruction of every function of a linked program; empty for a single function."""
    data: Data | None = None
    """The data a linked program names, where it names any and its code object is at hand."""

    def block_instructions(self, block: int) -> tuple[Instruction, ...]:
        """The instructions of one block."""
        bounds = self.blocks[block]
        return self.instructions[bounds.start : bounds.stop]


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One slot of the kernel argument segment. `offset` and `size` in bytes.

    `kind` is the metadata's value kind: `global_buffer`, `by_value`, `hidden_…`,
    `dynamic_shared_pointer`. `name` and `type_name` are "" where the compiler did not keep them.
    """

    name: str
    offset: int
    size: int
    kind: str
    address_space: str = ""
    type_name: str = ""


@dataclass(frozen=True, slots=True)
class KernelDescriptor:
    """What the kernel descriptor and its metadata say, in registers and bytes.

    `vgprs` is the number of architectural VGPRs, `agprs` of accumulation VGPRs, `sgprs` of SGPRs
    including VCC and friends as the compiler counts them. `lds_bytes` is the static part.
    `directives` keeps every `.amdhsa_*` value that was an integer, by the name after `.amdhsa_`.
    `required_threads` is the size of a workgroup where the kernel demands one, else 0. `cluster`
    are the workgroups of a cluster along each axis that the kernel was compiled for, `language` is
    that of its source, "" for a kernel that was written in assembly.
    """

    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    wave_size: int
    max_workgroup_size: int
    kernarg_bytes: int
    arguments: tuple[KernelArgument, ...]
    uses_dynamic_stack: bool = False
    directives: dict[str, int] = field(default_factory=dict)
    required_threads: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    language: str = ""

    @property
    def takes_arguments(self) -> bool:
        """Whether a launch states arguments; those that the runtime adds do not count. Assembly
        without a list of them has some where it gets the address of its argument segment."""
        if self.arguments:
            return any(not argument.kind.startswith("hidden_") for argument in self.arguments)
        pointer = self.directives.get("user_sgpr_kernarg_segment_ptr", 0)
        return self.kernarg_bytes > 0 or bool(pointer)

    def limit_of_workgroup(self, threads: int) -> str:
        """Why a workgroup of so many work-items cannot be launched; "" where it can."""
        if threads > self.max_workgroup_size:
            return f"it was compiled for at most {self.max_workgroup_size}"
        if self.required_threads and threads != self.required_threads:
            return f"it was compiled for {self.required_threads}"
        return ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of an assembly file: its program and its descriptor."""

    name: str
    program: Program
    descriptor: KernelDescriptor


@dataclass(frozen=True, slots=True)
class AssemblyModule:
    """One assembly text: kernels by name, and device functions that were not inlined."""

    target: str
    kernels: dict[str, Kernel]
    functions: dict[str, Program]


def first_block(program: Program, descriptor: KernelDescriptor) -> int:
    """The first block hardware executes: past the block that loads preloaded arguments for
    firmware that cannot preload them.

    Source: LLVM, User Guide for AMDGPU Backend, "Preloaded Kernel Arguments": with support for
    them execution starts 256 bytes after the kernel's entry.
    """
    if not descriptor.directives.get("user_sgpr_kernarg_preload_length", 0):
        return 0
    *loads, last = program.block_instructions(0)
    only_loads = all(i.opcode.form == "SMEM" or i.opcode.role is not Role.NONE for i in loads)
    jumps = last.opcode.control is Control.BRANCH
    return program.blocks[0].successors[0] if only_loads and jumps else 0
