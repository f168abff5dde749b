"""Scratch: which bytes have been written, and accesses outside the array they are made for.

Compilers keep private arrays there, and registers that they spill.

A load brings undefined lanes where nothing has been stored to; a store counts as written whatever
it stores, because compilers spill undefined registers. Memory of a host thread: one byte per byte
of scratch of every wave, 1 where it has been written. Bounds are bytes of a lane's scratch
(`bounds.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.pointers.reach import BoundsRow
from wavecast.emulate.check.shadow import Findings
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import MemoryAccess, Outlined
from wavecast.emulate.lower.access_targets import access_target
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.sites import call_observing
from wavecast.emulate.reports import Kind
from wavecast.emulate.scratch_accesses import may_load_scratch
from wavecast.emulate.values import I1, I8, I16, I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Kernel

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_WRITTEN_HALF = 0x0101
_ANY_SCRATCH = 1 << 32
"""Bytes that only an instruction without bounds may touch."""


class ScratchChecks(Observer):
    """Emits what marks scratch as written, in kernels that load from it, and what compares
    addresses with bounds."""

    def __init__(self, kernel: Kernel) -> None:
        instructions = kernel.program.instructions
        self.loads = any(may_load_scratch(kernel, i.decoded) for i in instructions)

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
        if target.mode == "private":
            request = MemoryAccess("scratch", "private", access.lanes, access.bytes, "bounds")
            _call(emitter, request, target, rows, instruction.index)
        if not self.loads or target.mode not in ("private", "flat"):
            return
        if access.action in ("load", "tolds"):
            return
        request = MemoryAccess("scratch", target.mode, access.lanes, access.bytes, "store")
        _call(emitter, request, target, target.address)


def read(emitter: WaveEmitter, instruction: Instruction, cells: Any) -> None:
    """Store to `cells` (i64 each), for every half of a dword that a load from scratch brings, the
    lanes where it has not been written."""
    memory, builder = instruction.memory, emitter.builder
    assert memory is not None
    emitter.pending.settle()
    request = MemoryAccess("scratch", "private", emitter.layout.lanes, memory.bytes, "load")
    target = access_target(emitter, instruction)
    if target.mode == "private":
        _call(emitter, request, target, cells)
    elif target.private is not None:  # a descriptor, which may be that of other memory
        for half in range(2 * max(1, memory.bytes // 4)):
            builder.store(I64(0), element(builder, cells, half, I64), align=8)
        with builder.if_then(target.is_private):
            _call(emitter, request, target.private, cells)


def _call(
    emitter: WaveEmitter, request: MemoryAccess, target: AccessTarget, rows: Any, index: int = 0
) -> None:
    name = f"check.{request.action}.{request.mode}.{request.lanes}.{request.bytes}.{request.detail}"
    build = {"load": _build_load, "store": _build_store, "bounds": _build_bounds}[request.detail]
    call_observing(emitter, name, request, build, target, rows, (index, 0))


def _shadow(builder: ir.IRBuilder, context: Any, lanes: int) -> tuple[Any, Any]:
    """The first address (i64) of the running wave's bytes, and how many there are."""
    size = builder.mul(context_word(builder, context, state.SCRATCH_BYTES), I64(lanes))
    before = builder.mul(context_word(builder, context, state.WAVE), size)
    return builder.add(context_word(builder, context, log.SCRATCH), before), size


def _build_load(out: Outlined) -> None:
    builder = out.builder
    lanes = resolve(out)
    first, _ = _shadow(builder, out.context, out.lanes)
    base = context_word(builder, out.context, state.SCRATCH_BASE)
    halves = 2 * out.access.dwords
    masks = [out.room(out.mask, out.mask(0)) for _ in range(halves)]
    kind = ir.VectorType(I8, out.access.bytes)
    every = ir.Constant(kind, [1] * out.access.bytes)
    common = out.room(kind, every)
    with out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        pointer = builder.inttoptr(builder.add(first, builder.sub(address, base)), PTR)
        marks = builder.load(pointer, align=1, typ=kind)
        builder.store(builder.and_(out.get(common, kind), marks), common)
    apart: Any = builder.bitcast(
        builder.icmp_unsigned("!=", out.get(common, kind), every), ir.IntType(out.access.bytes)
    )
    all_written = builder.icmp_unsigned("==", apart, apart.type(0))
    with out.each_lane(builder.select(all_written, out.mask(0), lanes.live)) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
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
            before = out.get(mask, out.mask)
            builder.store(builder.select(missing, builder.or_(before, bit), before), mask)
    for half, mask in enumerate(masks):
        builder.store(out.get(mask, out.mask), element(builder, out.rows, half, I64), align=8)
    builder.ret(I32(0))


def _build_store(out: Outlined) -> None:
    builder = out.builder
    lanes = resolve(out, checked=False)
    first, size = _shadow(builder, out.context, out.lanes)
    base = context_word(builder, out.context, state.SCRATCH_BASE)
    with out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
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


def _build_bounds(out: Outlined) -> None:
    """Compare the bytes that lanes access with those of the arrays the access is made for."""
    builder = out.builder
    instruction = builder.ptrtoint(out.other, I64)
    row = BoundsRow(builder, out.context, instruction)
    unknown = row.contains(I64(0), I64(_ANY_SCRATCH))
    with builder.if_then(unknown, likely=True):
        builder.ret(I32(0))
    lanes = resolve(out, checked=False)
    outside = Findings(out, Kind.OUT_OF_BOUNDS)
    base = context_word(builder, out.context, state.SCRATCH_BASE)
    size = context_word(builder, out.context, state.SCRATCH_BYTES)
    with out.each_lane(out.exec) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        inset = builder.sub(builder.sub(address, base), builder.mul(lane, size))
        amount = I64(out.access.bytes)
        in_bounds = builder.or_(row.contains(inset, amount), row.is_listed(inset, amount))
        outside.when(builder.not_(in_bounds), lane, inset)
    outside.log(instruction)
    builder.ret(I32(0))


__all__ = ["ScratchChecks", "read"]
