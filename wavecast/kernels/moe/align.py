"""Tokens in the order of their experts, each expert's rows padded to whole blocks.

A slot is one choice of one token: slot `token * top_k + choice`. A counting sort: programs count
the experts of their slots; then each adds up the counts before its own and stores its slots.
"""

from math import isqrt
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import KernelSpec, Make, Work, sizes

_SINGLE: Final = 64
"""Slots that one program sorts alone, in a single launch."""
_STEP: Final = 32
"""Slots taken at once."""
_MOST_EXPERTS: Final = 2048
TENSORS = describe.Signature("experts: [tokens, top_k] int32")


@triton.jit
def _counted(experts_ptr, start_slot, end_slot, count, STEP: tl.constexpr, EXPERTS: tl.constexpr):
    """How often each expert occurs in the slots [start_slot, end_slot)."""
    expert = tl.arange(0, EXPERTS)
    counts = tl.zeros((EXPERTS,), tl.int32)
    for start in range(start_slot, end_slot, STEP):
        offs = start + tl.arange(0, STEP)
        choices = tl.load(experts_ptr + offs, mask=offs < end_slot, other=-1)
        mask = (choices >= 0) & (choices < count)
        matches = (choices[:, None] == expert[None, :]) & mask[:, None]
        counts += tl.sum(matches.to(tl.int32), axis=0)
    return counts


@triton.jit
def moe_count_kernel(
    experts_ptr, counts_ptr, slots, count,
    CHUNK: tl.constexpr, STEP: tl.constexpr, EXPERTS: tl.constexpr,
):  # fmt: skip
    """counts[program, expert] of the program's slots."""
    pid = tl.program_id(0)
    start_slot = pid * CHUNK
    end_slot = tl.minimum(start_slot + CHUNK, slots)
    counts = _counted(experts_ptr, start_slot, end_slot, count, STEP, EXPERTS)
    expert = tl.arange(0, EXPERTS)
    tl.store(counts_ptr + pid * EXPERTS + expert, counts)


@triton.jit
def moe_scatter_kernel(
    experts_ptr, counts_ptr, order_ptr, owners_ptr, starts_ptr, slots, count, block, rows, chunks,
    CHUNK: tl.constexpr, STEP: tl.constexpr, EXPERTS: tl.constexpr, SINGLE: tl.constexpr,
    AHEAD: tl.constexpr, FILL: tl.constexpr,
):  # fmt: skip
    """Store the program's slots; fill its share of the padding, of blocks' owners and of starts.

    No two programs write the same element.
    """
    pid = tl.program_id(0)
    num_programs = tl.num_programs(0)
    expert = tl.arange(0, EXPERTS)
    if SINGLE:
        first = 0
        last = slots
        total = _counted(experts_ptr, 0, slots, count, STEP, EXPERTS)
        before = tl.zeros((EXPERTS,), tl.int32)
    else:
        first = pid * CHUNK
        last = tl.minimum(first + CHUNK, slots)
        total = tl.zeros((EXPERTS,), tl.int32)
        before = tl.zeros((EXPERTS,), tl.int32)
        for start in range(0, chunks, AHEAD):
            chunk = start + tl.arange(0, AHEAD)
            offs = chunk[:, None] * EXPERTS + expert[None, :]
            chunk_counts = tl.load(counts_ptr + offs, mask=(chunk < chunks)[:, None], other=0)
            total += tl.sum(chunk_counts, axis=0)
            before += tl.sum(tl.where((chunk < pid)[:, None], chunk_counts, 0), axis=0)
    padded = (total + block - 1) // block * block
    ends = tl.cumsum(padded, axis=0)
    starts = ends - padded
    if pid == 0:
        tl.store(starts_ptr + expert, starts, mask=expert < count)
        tl.store(starts_ptr + count, tl.max(ends, axis=0))
    pad_starts = starts + total
    for padding in range(pid, block, num_programs):
        tl.store(
            order_ptr + pad_starts + padding, expert * 0 + slots, mask=pad_starts + padding < ends
        )
    end_row = tl.max(ends, axis=0)
    for first_row in range(pid * FILL, rows, num_programs * FILL):  # pyright: ignore[reportArgumentType]
        row = first_row + tl.arange(0, FILL)
        tl.store(order_ptr + row, row * 0 + slots, mask=(row >= end_row) & (row < rows))
    for first_block in range(pid * STEP, rows // block, num_programs * STEP):  # pyright: ignore[reportArgumentType]
        offs = first_block + tl.arange(0, STEP)
        row = offs[:, None] * block
        owned = (row >= starts[None, :]) & (row < ends[None, :])
        owner = tl.sum(tl.where(owned, expert[None, :] + 1, 0), axis=1) - 1  # pyright: ignore[reportOperatorIssue]
        tl.store(owners_ptr + offs, owner, mask=offs < rows // block)
    next_row = starts + before
    for start in range(first, last, STEP):
        offs = start + tl.arange(0, STEP)
        choices = tl.load(experts_ptr + offs, mask=offs < last, other=-1)
        mask = (choices >= 0) & (choices < count)
        matches = (choices[:, None] == expert[None, :]) & mask[:, None]
        same_expert = (choices[:, None] == choices[None, :]) & (offs[:, None] > offs[None, :])
        rank = tl.sum(same_expert.to(tl.int32), axis=1)
        dest = tl.sum(tl.where(matches, next_row[None, :], 0), axis=1) + rank
        tl.store(order_ptr + dest, offs, mask=mask)
        next_row += tl.sum(matches.to(tl.int32), axis=0)


_AXES = {
    "STEP": f"(8,) if experts > 256 else (32, 64) if experts <= 32 else ({_STEP},)",
    "AHEAD": "(4,) if experts > 256 else (32,)",
    "FILL": (256,),
    "num_warps": "(8,) if experts > 256 else (4, 8)",
}


def _kernel(function: Any, axes: Any) -> KernelSpec:
    return KernelSpec.streaming(
        function,
        grid="programs",
        axes=axes,
        read="4.0 * slots",
        written="4.0 * slots",
        elements="STEP * experts",
        instructions="8.0 * cdiv(slots, programs) / STEP",
        rounded=("slots", "programs"),
    )


COUNT = _kernel(moe_count_kernel, {name: _AXES[name] for name in ("STEP", "num_warps")})
SCATTER = _kernel(moe_scatter_kernel, _AXES)


def blocks(slots: int, count: int, block: int) -> int:
    """The most blocks that `slots` rows of `count` experts can fill."""
    return (slots + min(slots, count) * (block - 1)) // block


@TENSORS.checked
def moe_align(experts: Tensor, count: int, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """Slots in the order of their experts, padded per expert to multiples of `block`.

    `experts` is [tokens, top_k] of int32 with numbers below `count`; slots of others (-1, or those
    of another GPU) are left out. Returns, as int32,

    - [rows]: slots (`token * top_k + choice`) by expert and, within one, in their order; padding is
      `tokens * top_k`. `rows` is a multiple of `block`, the most that can be needed,
    - [rows / block]: the expert of each block, -1 behind the last one used,
    - [count + 1]: where each expert's rows start; the last is the number of rows used.

    Nothing is read on the host. Raises ArgumentError.
    """
    checks.require(1 <= count <= _MOST_EXPERTS, "moe_align", f"count is {count}, not 1 to 2048")
    checks.require(block >= 1, "moe_align", f"block is {block}, not positive")
    slots = experts.numel()
    checks.require(slots + count * block < 2**31, "moe_align", "2**31 rows or more")
    rows = blocks(slots, count, block) * block
    order, owners, starts = (
        torch.empty(size, dtype=torch.int32, device=experts.device)
        for size in (rows, rows // block, count + 1)
    )
    if not slots:
        return order, owners, starts.zero_()
    width = max(16, triton.next_power_of_2(count))
    single = slots <= _SINGLE
    chunk = slots if single else max(_STEP, triton.next_power_of_2(isqrt(slots)))
    chunks = triton.cdiv(slots, chunk)
    problem = {"slots": slots, "experts": width, "programs": chunks}
    shared: dict[str, Any] = {"experts": experts.contiguous(), "count": count}
    shared["CHUNK"] = _STEP if single else chunk
    counts = starts
    if not single:
        counts = torch.empty((chunks, width), dtype=torch.int32, device=experts.device)
        choice.run(COUNT, problem, **shared, counts=counts)
    choice.run(
        SCATTER, problem, **shared, counts=counts, order=order, owners=owners, starts=starts,
        block=block, rows=rows, chunks=chunks, SINGLE=single,
    )  # fmt: skip
    return order, owners, starts


def moe_align_reference(experts, count, block):
    """A stable sort by expert; every slot then moves by the padding before it."""
    flat = experts.reshape(-1).long()
    slots = flat.numel()
    total = blocks(slots, count, block)
    left_out = (flat < 0) | (flat >= count)
    sorted_, order = torch.where(left_out, count, flat).sort(stable=True)
    counts = torch.zeros(count + 1, dtype=torch.int64, device=flat.device)
    counts = counts.scatter_add(0, sorted_, torch.ones_like(sorted_))
    padded = (counts[:count] + block - 1) // block * block
    zero = torch.zeros(1, dtype=torch.int64, device=flat.device)
    starts = torch.cat([zero, padded.cumsum(0)])
    first = torch.cat([zero, counts.cumsum(0)])
    rank = torch.arange(slots, device=flat.device) - first[sorted_]
    end = torch.full_like(sorted_, total * block)
    to = torch.where(sorted_ < count, starts[sorted_.clamp_max(count)] + rank, end)
    rows = torch.full((total * block + 1,), slots, dtype=torch.int64, device=flat.device)
    rows = rows.scatter(0, to, order)
    first_rows = torch.arange(total, device=flat.device) * block
    owners = torch.searchsorted(starts[1:].contiguous(), first_rows, right=True)
    owners = torch.where(first_rows < starts[-1], owners, -1)
    return rows[:-1].int(), owners.int(), starts.int()


def _inputs(make: Make, tokens: int, top_k: int, experts: int, block: int) -> dict[str, Any]:
    choices = make.integers((tokens, top_k), -1 if tokens % 2 else 0, experts, "int32")
    return {"experts": choices, "count": experts, "block": block}


def _work(tokens: int, top_k: int, experts: int, block: int) -> Work:
    slots = tokens * top_k
    total = blocks(slots, experts, block)
    written = 4.0 * (total * block + total + experts + 1)
    return Work({"vector_fp32": float(slots)}, 4.0 * slots, written, "formula", "formula")


OPERATOR = describe.Operator(
    summary="slots of tokens in the order of their experts, padded to blocks",
    call=moe_align,
    inputs=_inputs,
    work=_work,
    cases=sizes("tokens top_k experts block", (7, 3, 5, 4), (150, 4, 20, 16), (601, 2, 40, 32)),
    thorough=sizes("tokens top_k experts block", (1, 1, 1, 1), (300, 8, 256, 64), (64, 2, 600, 16)),
    shapes=sizes("tokens top_k experts block", (64, 8, 256, 16), (4096, 8, 256, 64)),
)
