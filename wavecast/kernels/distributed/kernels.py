"""The kernels of collectives.

Elements are divided among programs the same on all ranks, so that a program needs the signals of
its peers of the same number only. Inputs are copied to the rank's own buffer first (staged): peers
read nothing else. Reductions are in the order of ranks, so all ranks get the same bits.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

import triton
import triton.language as tl

from wavecast.kernels.distributed.signals import exchange


@triton.jit
def stage(x, buffer, count, parts, x_stride, BLOCK: tl.constexpr):
    """own[part, :count] = x[part · x_stride : … + count], the elements of this program."""
    step = tl.num_programs(0) * BLOCK
    for part in range(parts):
        source = x + part.to(tl.int64) * x_stride
        for start in range(tl.program_id(0) * BLOCK, count, step):
            offs = start + tl.arange(0, BLOCK)
            mask = offs < count
            value = tl.load(source + offs, mask=mask, other=0)
            tl.store(buffer + part * count + offs, value, mask=mask)


@triton.jit
def total(sources, offs, mask, ACC: tl.constexpr, OP: tl.constexpr, WORLD: tl.constexpr):
    """The same elements of all ranks reduced by `OP`, as dtype `ACC` in the order of ranks."""
    acc = tl.load(sources[0] + offs, mask=mask, other=0).to(ACC)
    for peer in tl.static_range(1, WORLD):
        value = tl.load(sources[peer] + offs, mask=mask, other=0).to(ACC)
        if OP == "max":
            acc = tl.maximum(acc, value)
        elif OP == "min":
            acc = tl.minimum(acc, value)
        elif OP == "product":
            acc *= value
        else:
            acc += value
    if OP == "avg":
        acc /= WORLD
    return acc


@triton.jit(do_not_specialize=["rank", "epoch"])
def reduce_kernel(
    x, buffer, out, own_signals, sources, signals, rank, epoch, count, parts, x_stride, offset,
    ACC: tl.constexpr, OP: tl.constexpr,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Stage `parts` of x, then out[i] = element `offset` + i of all buffers, reduced."""
    stage(x, buffer, count, parts, x_stride, BLOCK)
    exchange(signals, own_signals, rank, epoch, WORLD, WAVES, LANES)
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < count
        acc = total(sources, offset + offs, mask, ACC, OP, WORLD)
        tl.store(out + offs, acc.to(out.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch", "result_count"])
def gather_kernel(
    x, buffer, out, own_signals, sources, signals, rank, epoch, count, result_count, parts,
    x_stride, offset, out_stride,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, SOURCES: tl.constexpr, WAVES: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """Stage `parts` of x, then out[s · out_stride + i] = element `offset` + i of source s for i <
    `result_count`, which is `count`, or 0 where out has the elements."""
    stage(x, buffer, count, parts, x_stride, BLOCK)
    exchange(signals, own_signals, rank, epoch, WORLD, WAVES, LANES)
    for start in range(tl.program_id(0) * BLOCK, result_count, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < count
        for source in tl.static_range(SOURCES):
            value = tl.load(sources[source] + offset + offs, mask=mask, other=0)
            tl.store(out + source * out_stride + offs, value, mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch"])
def two_shot_kernel(
    x, buffer, out, own_signals, sources, signals, rank, epoch, count, part,
    ACC: tl.constexpr, OP: tl.constexpr,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """out = x reduced over ranks: rank r reduces elements r · part to (r + 1) · part, then all read
    the results of all. Epochs `epoch` and `epoch` + 1."""
    first, step = tl.program_id(0) * BLOCK, tl.num_programs(0) * BLOCK
    for peer in tl.static_range(WORLD):
        for start in range(first, part, step):
            offs = peer * part + start + tl.arange(0, BLOCK)
            mask = (start + tl.arange(0, BLOCK) < part) & (offs < count)
            tl.store(buffer + offs, tl.load(x + offs, mask=mask, other=0), mask=mask)
    exchange(signals, own_signals, rank, epoch, WORLD, WAVES, LANES)
    for start in range(first, part, step):
        offs = rank * part + start + tl.arange(0, BLOCK)
        mask = (start + tl.arange(0, BLOCK) < part) & (offs < count)
        acc = total(sources, offs, mask, ACC, OP, WORLD)
        tl.store(buffer + offs, acc.to(buffer.dtype.element_ty), mask=mask)
    exchange(signals, own_signals, rank, epoch + 1, WORLD, WAVES, LANES)
    for peer in tl.static_range(WORLD):
        for start in range(first, part, step):
            offs = peer * part + start + tl.arange(0, BLOCK)
            mask = (start + tl.arange(0, BLOCK) < part) & (offs < count)
            value = tl.load(sources[peer] + offs, mask=mask, other=0)
            tl.store(out + offs, value, mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch", "start", "slot"])
def parts_kernel(
    x, plan, buffer, out, own_signals, sources, signals, rank, epoch, start, slot,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Element `start` + i of part p of x goes to rank p, for i < `slot`: staged in slot p of the
    own buffer, read from slot `rank` of the peers'. int64 plan[4, WORLD]: first element and length
    of the parts of x, then of those of out."""
    first, step = tl.program_id(0) * BLOCK, tl.num_programs(0) * BLOCK
    for part in range(WORLD):
        source = x + tl.load(plan + part) + start
        count = tl.minimum(tl.load(plan + WORLD + part) - start, slot).to(tl.int32)
        for at in range(first, count, step):
            offs = at + tl.arange(0, BLOCK)
            mask = offs < count
            value = tl.load(source + offs, mask=mask, other=0)
            tl.store(buffer + part * slot + offs, value, mask=mask)
    exchange(signals, own_signals, rank, epoch, WORLD, WAVES, LANES)
    for peer in tl.static_range(WORLD):
        into = out + tl.load(plan + 2 * WORLD + peer) + start
        count = tl.minimum(tl.load(plan + 3 * WORLD + peer) - start, slot).to(tl.int32)
        for at in range(first, count, step):
            offs = at + tl.arange(0, BLOCK)
            mask = offs < count
            value = tl.load(sources[peer] + rank * slot + offs, mask=mask, other=0)
            tl.store(into + offs, value, mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch", "eps"])
def reduce_norm_kernel(
    x, residual, weight, buffer, out, total_out, own_signals, sources, signals, rank, epoch, rows,
    columns, eps,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """total_out = residual + sum of x over ranks; out = total_out / rms(total_out) · weight."""
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + row * columns + offs, mask=mask, other=0)
        tl.store(buffer + row * columns + offs, value, mask=mask)
    exchange(signals, own_signals, rank, epoch, WORLD, WAVES, LANES)
    scale = tl.load(weight + offs, mask=mask, other=0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = row * columns + offs
        acc = total(sources, at, mask, tl.float32, "sum", WORLD)
        acc += tl.load(residual + at, mask=mask, other=0).to(tl.float32)
        tl.store(total_out + at, acc.to(total_out.dtype.element_ty), mask=mask)
        mean = tl.sum(acc * acc, axis=0) / columns
        y = acc * tl.rsqrt(mean + eps) * scale
        tl.store(out + at, y.to(out.dtype.element_ty), mask=mask)


__all__ = [
    "gather_kernel",
    "parts_kernel",
    "reduce_kernel",
    "reduce_norm_kernel",
    "two_shot_kernel",
]
