"""Memory instructions in a row that may be issued again after a page fault (XNACK).

None of them may write what one of them reads, itself included; another instruction in between ends
the row. Source: LLVM GCNHazardRecognizer.cpp, checkSoftClauseHazards. Whether code keeps to that is
seen in the compiler's order: the mode is a property of the process that loads the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wavecast.arch import capabilities
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import VECTOR_MEMORY_FORMS, MemoryKind
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC
from wavecast.isa.targets import isa_target


def keeps_rows_apart(program: Program) -> bool:
    """Whether the code of a program may be replayed."""
    if "wait_states" not in capabilities(isa_target(program.target)).hazards:
        return False
    return not any(
        any(row_ends([item.decoded for item in program.block_instructions(block.index)]))
        for block in program.blocks
    )


def row_ends(items: Iterable[Decoded | str]) -> list[bool]:
    """Whether another instruction must come before each item. Text items end a row."""
    row_boundaries = []
    form, reads, writes = "", 0, 0
    for item in items:
        here = _form(item) if isinstance(item, Decoded) else ""
        if here != form:
            form, reads, writes = here, 0, 0
        ends = False
        if isinstance(item, Decoded) and here:
            uses = item.reads & ~EXEC
            stores = item.memory is not None and item.memory.kind is not MemoryKind.LOAD
            ends = bool(writes) and (stores or bool((writes | item.writes) & (reads | uses)))
            if ends:
                reads = writes = 0
            reads |= uses
            writes |= item.writes
        row_boundaries.append(ends)
    return row_boundaries


def _form(decoded: Decoded) -> str:
    form = decoded.opcode.form
    if decoded.memory is None:
        return ""
    return "vector" if form in VECTOR_MEMORY_FORMS else form if form == "SMEM" else ""


def rows_apart(items: Sequence[Decoded | str]) -> list[str]:
    """The no-op before each item, "" for none."""
    return ["s_nop 0" if ends else "" for ends in row_ends(items)]


__all__ = ["keeps_rows_apart", "row_ends", "rows_apart"]
