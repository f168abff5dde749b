"""Which bytes of scratch have been written: private arrays, and registers that compilers spill.

A load brings undefined lanes where nothing has been stored to; a store counts as written whatever
it stores, because compilers spill undefined registers. Memory of a host thread: one byte per byte
of scratch of every wave, 1 where it has been written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.flows import loads_scratch
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import MemoryAccess, Outlined, function_type
from wavecast.emulate.lower.access_targets import access_target
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.values import I1, I8, I16, I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Kernel

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_WRITTEN_HALF = 0x0101


class ScratchChecks(Observer):
    """Emits what marks scratch as written, in kernels that load from it."""

    def __init__(self, kernel: Kernel) -> None:
        self.loads = any(loads_scratch(i.decoded) for i in kernel.program.instructions)

    def enter(self, emitter: WaveEmitter) -> None:
        if not self.loads:
            return
        builder = emitter.builder
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            name = "llvm.memset.p0.i64"
            kind = ir.FunctionType(ir.VoidType(), [PTR, I8, I64, I1])
            clear = emitter.module.globals.get(name) or ir.Function(emitter.module, kind, name)
            lanes = emitter.layout.lanes
            first, size = _shadow(builder, emitter.context, lanes)
            builder.call(clear, [builder.inttoptr(first, PTR), I8(0), size, I1(0)])

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        del instruction, rows
        if not self.loads or target.mode not in ("private", "flat"):
            return
        if access.action in ("load", "tolds"):
            return
        asked = MemoryAccess("scratch", target.mode, access.lanes, access.bytes, "store")
        _call(emitter, asked, target, target.address)


def read(emitter: WaveEmitter, instruction: Instruction, cells: Any) -> None:
    """Store to `cells` (i64 each), for every half of a dword that a load from scratch brings, the
    lanes where it has not been written."""
    memory = instruction.memory
    assert memory is not None
    emitter.pending.settle()
    asked = MemoryAccess("scratch", "private", emitter.layout.lanes, memory.bytes, "load")
    _call(emitter, asked, access_target(emitter, instruction), cells)


def _call(emitter: WaveEmitter, asked: MemoryAccess, target: AccessTarget, rows: Any) -> None:
    name = f"check.{asked.action}.{asked.mode}.{asked.lanes}.{asked.bytes}.{asked.detail}"
    build = _build_load if asked.detail == "load" else _build_store

    def recipe(alone: ir.Module) -> None:
        build(Outlined(alone, asked, runtime.OUTLINED + name))

    function = runtime.outline(emitter.module, name, function_type(asked.lanes), recipe)
    nothing = emitter.builder.inttoptr(I64(0), PTR)
    emitter.builder.call(
        function,
        [
            emitter.context, rows, nothing, nothing,
            target.address, target.base, target.limit, target.offset, emitter.exec_mask(),
        ],
    )  # fmt: skip


def _shadow(builder: ir.IRBuilder, context: Any, lanes: int) -> tuple[Any, Any]:
    """The first address (i64) of the running wave's bytes, and how many there are."""
    size = builder.mul(context_word(builder, context, state.SCRATCH_BYTES), I64(lanes))
    before = builder.mul(context_word(builder, context, state.WAVE), size)
    return builder.add(context_word(builder, context, log.SCRATCH), before), size


def _build_load(out: Outlined) -> None:
    builder = out.builder
    found = resolve(out)
    first, _ = _shadow(builder, out.context, out.lanes)
    base = context_word(builder, out.context, state.SCRATCH_BASE)
    halves = 2 * out.access.dwords
    masks = [out.room(out.mask, out.mask(0)) for _ in range(halves)]
    with out.each_lane(found.live) as lane:
        address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
        inset = builder.sub(address, base)
        number = lane if out.lanes == 64 else builder.trunc(lane, out.mask)
        bit = builder.shl(out.mask(1), number)
        for half, mask in enumerate(masks):
            small = out.access.bytes == 1
            at = builder.add(inset, I64(2 * half if out.access.bytes >= 4 else 0))
            pointer = builder.inttoptr(builder.add(first, at), PTR)
            written = load(builder, pointer, I8 if small else I16, 1)
            whole = I8(1) if small else I16(_WRITTEN_HALF)
            missing = builder.icmp_unsigned("!=", written, whole)
            seen = out.get(mask, out.mask)
            builder.store(builder.select(missing, builder.or_(seen, bit), seen), mask)
    for half, mask in enumerate(masks):
        builder.store(out.get(mask, out.mask), element(builder, out.rows, half, I64), align=8)
    builder.ret(I32(0))


def _build_store(out: Outlined) -> None:
    builder = out.builder
    found = resolve(out, checked=False)
    first, size = _shadow(builder, out.context, out.lanes)
    base = context_word(builder, out.context, state.SCRATCH_BASE)
    with out.each_lane(found.live) as lane:
        address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
        inset = builder.sub(address, base)
        end = builder.add(inset, I64(out.access.bytes))
        fits = builder.and_(
            builder.icmp_unsigned("<", inset, size), builder.icmp_unsigned("<=", end, size)
        )
        with builder.if_then(fits):
            pointer = builder.inttoptr(builder.add(first, inset), PTR)
            kind = ir.VectorType(I8, out.access.bytes)
            builder.store(ir.Constant(kind, [1] * out.access.bytes), pointer, align=1)
    builder.ret(I32(0))


__all__ = ["ScratchChecks", "read"]
