"""Copies of tensor tiles between memory and LDS (gfx1250), as accesses of units by lanes.

A wave copies a tile in steps: in each one its lanes move one unit each, 16, 4 or 1 bytes of
consecutive elements, whatever EXEC is. Two outlined functions drive it. `open` reads the descriptor
into a copy (`tensor_descriptor.py`) and says how large its units are; `next` says where those of
the next step lie. Units outside the tensor are loaded as zeros and not stored.

Sources: CDNA5 instruction set architecture guide, 10.11, as rocjitsu quotes it (ROCm/rocm-systems,
2026, shared/tensor_dma.h); LLVM, AMDGPUToROCDL, make_dma_descriptor (fields).
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import lds, runtime, state
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.sites import call, local_rows
from wavecast.emulate.lower.tensor_descriptor import (
    COPY_WORDS,
    DESCRIPTOR_WORDS,
    DIMENSIONS,
    GROUPS,
    NO_BARRIER,
    UNITS,
    TensorCopy,
    TensorWord,
    build_open,
)
from wavecast.emulate.values import I32, I64, PTR, constant, element, splat
from wavecast.isa.instruction import Instruction, OperandClass
from wavecast.isa.opcode import MemoryKind

_LANES: Final = 32
_OPEN = ir.FunctionType(I64, [PTR, PTR])
_NEXT = ir.FunctionType(I64, [PTR, PTR, PTR])


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower a copy of a tensor tile. Raises Unsupported for waves of 64 lanes."""
    builder = emitter.builder
    if emitter.layout.lanes != _LANES:
        raise Unsupported("tensor copies by waves of 64 lanes")
    assert instruction.memory is not None
    stores = instruction.memory.kind is MemoryKind.STORE_FROM_LDS
    copy = local_rows(emitter, -(-2 * COPY_WORDS // _LANES))
    function = _outline(
        emitter.module, f"tensor.open.{'store' if stores else 'load'}", _OPEN,
        lambda function: build_open(function, stores=stores),
    )  # fmt: skip
    unit = emitter.call(function, [_descriptor(emitter, instruction), copy])
    with builder.if_then(builder.icmp_signed("<", unit, I64(0)), likely=False):
        reason = element(builder, emitter.context, state.FAULT_ADDRESS, I64)
        builder.store(unit, reason, align=8)
        emitter.stop(state.BAD_TENSOR, instruction.index)
    for size in UNITS:
        with builder.if_then(builder.icmp_unsigned("==", unit, I64(size))):
            _copy(emitter, instruction, copy, size, stores=stores)


def _outline(module: ir.Module, name: str, kind: ir.FunctionType, build: Any) -> ir.Function:
    def recipe(alone: ir.Module) -> None:
        build(ir.Function(alone, kind, runtime.OUTLINED + name))

    return runtime.outline(module, name, kind, recipe)


def _descriptor(emitter: WaveEmitter, instruction: Instruction) -> Any:
    """The descriptor's words in memory; groups that are missing are zeros."""
    builder = emitter.builder
    words = local_rows(emitter, -(-DESCRIPTOR_WORDS // _LANES))
    builder.store(constant(0, 32, _LANES), words, align=4)
    position = 0
    for operand, count in zip(instruction.operands, GROUPS, strict=False):
        if operand.kind is OperandClass.SGPR:
            first = (operand.bits & -operand.bits).bit_length() - 1
            for number in range(count):
                slot = element(builder, words, position + number, I32)
                builder.store(emitter.scalar(first + number), slot, align=4)
        position += count
    return words


def _copy(
    emitter: WaveEmitter, instruction: Instruction, copy: Any, size: int, *, stores: bool
) -> None:
    """The steps of a copy in units of `size` bytes."""
    builder, mask = emitter.builder, ir.IntType(_LANES)
    offsets, addresses = local_rows(emitter, 1), local_rows(emitter, 2)
    rows = local_rows(emitter, max(1, size // 4))
    head, body, after = (
        emitter.function.append_basic_block(f"tensor.{name}") for name in ("head", "body", "after")
    )
    builder.branch(head)
    builder.position_at_end(head)
    function = _outline(emitter.module, "tensor.next", _NEXT, _build_next)
    masks = emitter.call(function, [copy, offsets, addresses])
    present = builder.trunc(masks, mask)
    in_tensor = builder.trunc(builder.lshr(masks, I64(_LANES)), mask)
    some = builder.icmp_unsigned("!=", present, mask(0))
    builder.cbranch(some, body, after)
    builder.position_at_end(body)
    near = AccessTarget("local", offsets), in_tensor if stores else present
    far = AccessTarget("wide", addresses), in_tensor
    if not stores:
        nothing = ir.VectorType(I32, _LANES * max(1, size // 4))
        builder.store(ir.Constant(nothing, None), rows, align=4)
    for action, (target, lanes) in zip(
        ("load", "store"), (near, far) if stores else (far, near), strict=True
    ):
        access = MemoryAccess(action, target.mode, _LANES, size)
        with emitter.masked(lanes):
            call(emitter, instruction, access, target, rows=rows)
    builder.branch(head)
    builder.position_at_end(after)
    _arrive(emitter, instruction, copy)


def _arrive(emitter: WaveEmitter, instruction: Instruction, copy: Any) -> None:
    """The arrival of a copy that is done at its barrier, where it has one."""
    builder = emitter.builder
    barrier = TensorCopy(builder, copy).get(TensorWord.BARRIER)
    with builder.if_then(builder.icmp_unsigned("!=", barrier, I64(NO_BARRIER)), likely=False):
        room = local_rows(emitter, 1)
        builder.store(splat(builder, builder.trunc(barrier, I32), _LANES), room, align=4)
        with emitter.masked(ir.IntType(_LANES)(1)):
            lds.arrive(emitter, instruction, AccessTarget("local", room))


def _build_next(function: ir.Function) -> None:
    """`i64 next(ptr copy, ptr offsets, ptr addresses)`: LDS offsets (i32) and addresses (low and
    high halves) of the next units, one per lane. The result has the lanes with a unit in its low
    half, and those whose unit is in the tensor in its high half."""
    words, offsets, addresses = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    advance = _advance_function(function.module)
    builder.call(advance, [words, I64(0)])
    masks, lane = builder.alloca(I64), builder.alloca(I64)
    builder.store(I64(0), masks)
    builder.store(I64(0), lane)
    head, body, after = (function.append_basic_block(name) for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    copy, number = TensorCopy(builder, words), builder.load(lane, typ=I64)
    more = builder.and_(
        builder.icmp_unsigned("<", number, I64(_LANES)),
        builder.icmp_unsigned("==", copy.get(TensorWord.DONE), I64(0)),
    )
    builder.cbranch(more, body, after)
    builder.position_at_end(body)
    column, unit = copy.get(TensorWord.COORDINATE), copy.get(TensorWord.UNIT)
    offset = copy.get(TensorWord.LDS_OFFSET)
    padding = builder.lshr(offset, copy.get(TensorWord.PAD_SHIFT))
    padded = builder.add(offset, builder.mul(padding, copy.get(TensorWord.PAD_BYTES)))
    near = builder.add(copy.get(TensorWord.LDS), padded)
    builder.store(builder.trunc(near, I32), element(builder, offsets, number, I32), align=4)
    far = builder.add(copy.get(TensorWord.ROW), builder.mul(column, unit))
    for half, value in ((0, far), (1, builder.lshr(far, I64(32)))):
        slot = element(builder, addresses, builder.add(number, I64(half * _LANES)), I32)
        builder.store(builder.trunc(value, I32), slot, align=4)
    in_tensor = builder.icmp_unsigned("<", column, copy.get(TensorWord.LIMIT))
    marks = builder.or_(I64(1), builder.shl(builder.zext(in_tensor, I64), I64(_LANES)))
    marks = builder.or_(builder.load(masks, typ=I64), builder.shl(marks, number))
    builder.store(marks, masks)
    builder.store(builder.add(number, I64(1)), lane)
    copy.set(TensorWord.LDS_OFFSET, builder.add(offset, unit))
    following = builder.add(column, I64(1))
    copy.set(TensorWord.COORDINATE, following)
    at_end = builder.icmp_unsigned("==", following, copy.get(TensorWord.TILE))
    with builder.if_then(at_end):
        builder.call(advance, [words, I64(1)])
    builder.branch(head)
    builder.position_at_end(after)
    builder.ret(builder.load(masks, typ=I64))


def _advance_function(module: ir.Module) -> ir.Function:
    """`void advance(ptr copy, i64 rows)`: advance by a row, or by none, and find where it lies."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, I64]), "advance")
    function.linkage = "internal"
    words, rows = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    copy = TensorCopy(builder, words)
    with builder.if_then(builder.icmp_unsigned("!=", rows, I64(0))):
        _count_up(builder, copy)
    _find_row(builder, copy)
    builder.ret_void()
    return function


def _count_up(builder: ir.IRBuilder, copy: TensorCopy) -> None:
    """The first column of the next row, in the next iteration after the last."""
    copy.set(TensorWord.COORDINATE, 0)
    carry: Any = I64(1)
    for dimension in range(1, DIMENSIONS):
        word = TensorWord.COORDINATE + dimension
        value = builder.add(copy.get(word), carry)
        over = builder.icmp_unsigned("==", value, copy.get(TensorWord.TILE + dimension))
        copy.set(word, builder.select(over, I64(0), value))
        carry = builder.select(over, I64(1), I64(0))
    with builder.if_then(builder.icmp_unsigned("!=", carry, I64(0))):
        iteration = builder.add(copy.get(TensorWord.ITERATION), I64(1))
        copy.set(TensorWord.ITERATION, iteration)
        step = builder.mul(iteration, copy.get(TensorWord.LDS_STEP))
        copy.set(TensorWord.LDS_OFFSET, step)
        over = builder.icmp_unsigned("==", iteration, copy.get(TensorWord.ITERATIONS))
        copy.set(TensorWord.DONE, builder.zext(over, I64))


def _find_row(builder: ir.IRBuilder, copy: TensorCopy) -> None:
    """The address of a row, and how many of its columns are in the tensor: all before `LIMIT`."""
    inset = builder.mul(copy.get(TensorWord.ITERATION), copy.get(TensorWord.MEMORY_STEP))
    row, rest, in_tensor = builder.add(copy.get(TensorWord.BASE), inset), inset, ir.IntType(1)(1)
    gathers = builder.icmp_unsigned("!=", copy.get(TensorWord.GATHERS), I64(0))
    for dimension in reversed(range(1, DIMENSIONS)):
        extent = copy.get(TensorWord.TENSOR + dimension)
        stride = copy.get(TensorWord.STRIDE + dimension)
        coordinate = copy.get(TensorWord.COORDINATE + dimension)
        if dimension == 1:
            coordinate = builder.select(gathers, copy.index(coordinate), coordinate)
        row = builder.add(row, builder.mul(coordinate, stride))
        # an iteration starts where its distance says; dimensions of one row have no part in it
        several = builder.icmp_unsigned(">", extent, I64(1))
        counts = builder.and_(several, builder.icmp_unsigned("!=", stride, I64(0)))
        divisor = builder.select(counts, stride, I64(1))
        origin = builder.select(counts, builder.udiv(rest, divisor), I64(0))
        rest = builder.sub(rest, builder.mul(origin, stride))
        within = builder.icmp_unsigned("<", builder.add(coordinate, origin), extent)
        in_tensor = builder.and_(in_tensor, within)
    width, start = copy.get(TensorWord.TENSOR), builder.udiv(rest, copy.get(TensorWord.UNIT))
    fits = builder.and_(in_tensor, builder.icmp_unsigned("<", start, width))
    copy.set(TensorWord.LIMIT, builder.select(fits, builder.sub(width, start), I64(0)))
    copy.set(TensorWord.ROW, row)


__all__ = ["lower"]
