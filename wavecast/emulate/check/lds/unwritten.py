"""Loads of LDS that nothing has written, in programs whose lanes copy to it asynchronously.

A lane that is masked off leaves its bytes as they were, and Triton's pipelines load tiles that no
copy has filled where a loop has no iterations, for results that they drop. In such programs a load
of which no lane reads a written byte brings undefined values (`registers/undefined.py`), which are
reported where they do harm; one of which some do counts as written.
"""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check import log
from wavecast.emulate.check.lds.records import WRITTEN
from wavecast.emulate.lower.access import MemoryAccess, Outlined
from wavecast.emulate.lower.access_targets import lds_target
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.lds import offsets_of
from wavecast.emulate.lower.sites import call_observing
from wavecast.emulate.lower.state import LDS_BASE
from wavecast.emulate.scratch_accesses import MOST_LOADED
from wavecast.emulate.values import I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import MemoryKind, OperandKind, Space
from wavecast.isa.program import Program


def masks_copies(program: Program) -> bool:
    """Whether lanes of a program may be masked off in asynchronous copies to LDS (gfx1250)."""
    return any(
        instruction.memory is not None
        and instruction.memory.kind is MemoryKind.LOAD_TO_LDS
        and any(role.kind is OperandKind.VECTOR for role in instruction.decoded.roles)
        for instruction in program.instructions
    )


def loads_lds(decoded: Decoded) -> bool:
    """Whether an instruction loads registers from LDS."""
    memory = decoded.memory
    return (
        memory is not None
        and memory.space is Space.LDS
        and memory.kind is MemoryKind.LOAD
        and memory.bytes <= MOST_LOADED
    )


def read(emitter: WaveEmitter, instruction: Instruction, cells: Any) -> None:
    """Store to `cells` (i64 each), for every half of a dword that a load from LDS brings, all
    active lanes where no byte of it has been written, else none."""
    memory, decoded, builder = instruction.memory, instruction.decoded, emitter.builder
    assert memory is not None
    emitter.pending.settle()
    builder.store(I64(0), cells, align=8)
    count, lanes = decoded.opcode.memory_form.offsets, emitter.layout.lanes
    request = MemoryAccess("unwritten", "local", lanes, memory.bytes // count)
    name = f"check.lds.unwritten.{lanes}.{request.bytes}"
    for offset in offsets_of(decoded, request.bytes):
        target = lds_target(emitter, decoded, offset)
        call_observing(emitter, name, request, _build, target, cells)
    written = builder.icmp_unsigned("!=", load(builder, cells, I64, 8), I64(0))
    active: Any = emitter.exec_mask()
    mask: Any = builder.select(written, active.type(0), active)
    wide = mask if mask.type.width == 64 else builder.zext(mask, I64)
    for half in range(2 * max(1, memory.bytes // 4)):
        builder.store(wide, element(builder, cells, half, I64), align=8)


def _build(out: Outlined) -> None:
    """Add to the word at `rows` whether any lane reads a byte that has been written."""
    builder, lanes = out.builder, resolve(out)
    base = context_word(builder, out.context, LDS_BASE)
    records = context_word(builder, out.context, log.LDS_WRITES, PTR)
    slot: Any = out.rows
    with out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        first = builder.lshr(builder.sub(address, base), I64(2))
        for index in range(out.access.dwords):
            at = element(builder, records, builder.add(first, I64(index)), I64)
            written = WRITTEN.of(builder, load(builder, at, I64, 8))
            builder.store(builder.or_(load(builder, slot, I64, 8), written), slot, align=8)
    builder.ret(I32(0))


__all__ = ["loads_lds", "masks_copies", "read"]
