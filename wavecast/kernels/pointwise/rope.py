"""Rotary position embedding of queries and keys in one launch, and its inverse, the gradient."""

import math
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, derivative, describe
from wavecast.kernels.describe import Demand, Device, Problem, Settings, coefficient
from wavecast.kernels.strides import adjacent

TENSORS = describe.Signature(
    *("q: [..., q_heads, dim] float", "k: [..., k_heads, dim] =q"),
    *("cos: [limit, half] float", "sin: [limit, half] float", "positions?: [...] index"),
    returns=("q_out: [..., q_heads, dim] =q", "k_out: [..., k_heads, dim] =q"),
)


@triton.jit
def rotated(
    x_ptr, y_ptr, head, heads, stride, cos, sin, dim,
    ROTARY: tl.constexpr, REST: tl.constexpr, INTERLEAVED: tl.constexpr,
    HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Rotate `HEADS` heads of a token from `head` on. The dimensions from `ROTARY` on, `REST`
    rounded up to a power of two, are copied."""
    row = head + tl.arange(0, HEADS)[:, None]
    row_mask = row < heads
    x_row = x_ptr + row * stride
    y_row = y_ptr + row * dim
    dtype: tl.constexpr = y_ptr.dtype.element_ty
    if INTERLEAVED:
        offs_d = tl.arange(0, 2 * HALF)[None, :]
        mask = row_mask & (offs_d < ROTARY)
        x = tl.load(x_row + offs_d, mask=mask, other=0.0).to(tl.float32)
        first, second = tl.split(x.reshape(HEADS, HALF, 2))
        rotated_x = tl.join(first * cos - second * sin, second * cos + first * sin)
        y = rotated_x.reshape(HEADS, 2 * HALF)
        tl.store(y_row + offs_d, y.to(dtype), mask=mask)
    else:
        offs_d = tl.arange(0, HALF)[None, :]
        mask = row_mask & (offs_d < ROTARY // 2)
        first = tl.load(x_row + offs_d, mask=mask, other=0.0).to(tl.float32)
        second = tl.load(x_row + ROTARY // 2 + offs_d, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_row + offs_d, (first * cos - second * sin).to(dtype), mask=mask)
        tl.store(y_row + ROTARY // 2 + offs_d, (second * cos + first * sin).to(dtype), mask=mask)
    if REST > 0:
        offs_rest = ROTARY + tl.arange(0, REST)[None, :]
        mask = row_mask & (offs_rest < dim)
        tl.store(y_row + offs_rest, tl.load(x_row + offs_rest, mask=mask), mask=mask)


@triton.jit
def rope_kernel(
    q_ptr, k_ptr, q_out_ptr, k_out_ptr, cos_ptr, sin_ptr, positions_ptr,
    tokens, length, limit, q_heads, k_heads, dim,
    q_token, q_head, k_token, k_head, cos_stride, sin_stride,
    ROTARY: tl.constexpr, REST: tl.constexpr, INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr,
    GIVEN: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr,
    HEADS: tl.constexpr, PARTS: tl.constexpr, HALF: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A program takes every `PARTS`-th block of heads of a token, those of q before those of k.
    With `FIRST` >= 0 positions come in three rows: one for the first `FIRST` angles, one for those
    up to `SECOND`, one for the rest."""
    pid_token = tl.program_id(0) // PARTS
    part = tl.program_id(0) % PARTS
    angle = tl.arange(0, HALF)
    position = tl.zeros((HALF,), tl.int32)
    if FIRST >= 0:
        position += tl.load(positions_ptr + pid_token).to(tl.int32)
        position_next = tl.load(positions_ptr + tokens + pid_token).to(tl.int32)
        position = tl.where(angle >= FIRST, position_next, position)
        position_next = tl.load(positions_ptr + 2 * tokens + pid_token).to(tl.int32)
        position = tl.where(angle >= SECOND, position_next, position)
    elif GIVEN:
        position += tl.load(positions_ptr + pid_token).to(tl.int32)
    else:
        position += pid_token % length
    mask = (angle < ROTARY // 2) & (position >= 0) & (position < limit)
    cos = tl.load(cos_ptr + position * cos_stride + angle, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + position * sin_stride + angle, mask=mask, other=0.0).to(tl.float32)
    if INVERSE:
        sin = -sin
    cos = cos[None, :]
    sin = sin[None, :]
    if WIDE:
        pid_token = pid_token.to(tl.int64)
    q_ptr += pid_token * q_token
    k_ptr += pid_token * k_token
    q_out_ptr += pid_token * q_heads * dim
    k_out_ptr += pid_token * k_heads * dim
    q_blocks = tl.cdiv(q_heads, HEADS)
    blocks = q_blocks + tl.cdiv(k_heads, HEADS)
    for block in range(part, blocks, PARTS):
        if block < q_blocks:
            rotated(
                q_ptr, q_out_ptr, block * HEADS, q_heads, q_head, cos, sin, dim,
                ROTARY, REST, INTERLEAVED, HEADS, HALF,
            )  # fmt: skip
        else:
            rotated(
                k_ptr, k_out_ptr, (block - q_blocks) * HEADS, k_heads, k_head, cos, sin, dim,
                ROTARY, REST, INTERLEAVED, HEADS, HALF,
            )  # fmt: skip


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    elements = settings["HEADS"] * triton.next_power_of_2(problem["dim"])
    most = triton.next_power_of_2(max(problem["q_heads"], problem["k_heads"]))
    # A lane's 16 bytes of each half: with more, its loads leave gaps that others fill.
    lane_bytes = elements * problem["bytes"] / (settings["num_warps"] * device.wave_lanes)
    enough = lane_bytes >= 16 or (settings["HEADS"] == most and settings["num_warps"] == 1)
    few = lane_bytes <= 32 or (settings["HEADS"] == 1 and settings["num_warps"] == 4)
    return settings["PARTS"] <= _blocks(problem, settings) and enough and few


def _blocks(problem: Problem, settings: Settings) -> int:
    heads = settings["HEADS"]
    return triton.cdiv(problem["q_heads"], heads) + triton.cdiv(problem["k_heads"], heads)


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    tokens, heads = problem["tokens"], problem["q_heads"] + problem["k_heads"]
    size = tokens * heads * problem["dim"] * problem["bytes"]
    blocks = _blocks(problem, settings)
    iterations = triton.cdiv(blocks, settings["PARTS"])
    padded = blocks * settings["HEADS"] / heads * iterations * settings["PARTS"] / blocks
    tables = 4 * tokens * problem["rotary"] * settings["PARTS"]
    stream = describe.StreamingKernel(
        workgroups=tokens * settings["PARTS"],
        read=size + tables / 4,
        written=size,
        elements=settings["HEADS"] * problem["dim"],
        instructions=12.0 * iterations,
        live_registers=2.0,
    )
    wait = coefficient("ranking", "rope_iteration_latency").of(device)
    exponent = coefficient("ranking", "rope_padding_exponent").of(device)
    return describe.Constant(iterations * wait) + stream.slow_down(padded**exponent)


ROPE = describe.KernelSpec(
    function=rope_kernel,
    grid="tokens * PARTS",
    axes={
        "HEADS": "up_to(next_power_of_2(max(q_heads, k_heads)), 1, 2, 4, 8, 16, 32, 64)",
        "PARTS": (1, 2, 4, 8),
        "num_warps": (1, 2, 4),
    },
    fits=_fits,
    demand=_demand,
    strides={
        "q": "q_token q_head",
        "k": "k_token k_head",
        "cos": "cos_stride",
        "sin": "sin_stride",
    },
    rounded=("tokens",),
)


def rope(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None,
    interleaved: bool = False, inverse: bool = False, sections: list[int] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Rotary position embedding of queries [..., q_heads, dim] and keys [..., k_heads, dim].

    `cos` and `sin` are [positions, rotary / 2]; the first `rotary` dimensions of each head are
    rotated and the others copied. Angle i rotates dimensions i and i + rotary / 2 (Llama, NeoX) or,
    `interleaved`, 2 i and 2 i + 1 (GPT-J). `positions` (int64 or int32, of the leading shape of q)
    are those of the tokens; without them a token's is its index in the last leading dimension. A
    position the tables do not have gives zeros. With `sections` (three counts of angles,
    multimodal), `positions` are [3, ...]: one row per section.

    q and k are of one dtype of float32, float16, bfloat16; tables of any of these; computed in
    float32. `inverse` rotates back: that is the gradient. Raises ArgumentError.
    """
    _check({"q": q, "k": k, "cos": cos, "sin": sin, "positions": positions}, sections)
    leading, dim = q.shape[:-2], q.shape[-1]
    q_out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    k_out = torch.empty(k.shape, dtype=k.dtype, device=k.device)
    if not q.numel() and not k.numel():
        return q_out, k_out
    q, k = _heads(q), _heads(k)
    rotary = 2 * cos.shape[1]
    problem = {
        "tokens": q.shape[0],
        "q_heads": q.shape[1],
        "k_heads": k.shape[1],
        "dim": dim,
        "rotary": rotary,
        "bytes": q.element_size(),
        "interleaved": interleaved,
        "given": positions is not None,
        "sections": sections is not None,
    }
    choice.run(
        ROPE,
        problem,
        q=q,
        k=k,
        q_out=q_out,
        k_out=k_out,
        cos=adjacent(cos),
        sin=adjacent(sin),
        length=leading[-1],
        limit=cos.shape[0],
        positions=q if positions is None else positions.contiguous(),
        INVERSE=inverse,
        REST=triton.next_power_of_2(dim - rotary) if dim > rotary else 0,
        FIRST=sections[0] if sections else -1,
        SECOND=sections[0] + sections[1] if sections else -1,
        HALF=triton.next_power_of_2(max(1, rotary // 2)),
    )
    return q_out, k_out


def rope_reference(q, k, cos, sin, positions=None, interleaved=False, inverse=False, sections=None):
    if positions is None:
        leading = q.shape[:-2]
        positions = torch.arange(leading[-1], device=q.device).expand(leading)
    in_range = (positions >= 0) & (positions < cos.shape[0])
    index = torch.where(in_range, positions, 0)

    def angles(table: Tensor) -> Tensor:
        values = torch.where(in_range[..., None], table[index], 0.0)
        if sections is not None:
            parts = values.split(sections, dim=-1)
            values = torch.cat([part[row] for row, part in enumerate(parts)], dim=-1)
        return values.unsqueeze(-2)

    cos_rows, sin_rows = angles(cos), angles(-sin if inverse else sin)
    return _rotate(q, cos_rows, sin_rows, interleaved), _rotate(k, cos_rows, sin_rows, interleaved)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    dtype = describe.wide_dtype(x)
    rotary = 2 * cos.shape[-1]
    wide, cos, sin = x[..., :rotary].to(dtype), cos.to(dtype), sin.to(dtype)
    if interleaved:
        first, second = wide[..., 0::2], wide[..., 1::2]
    else:
        first, second = wide.chunk(2, dim=-1)
    parts = first * cos - second * sin, second * cos + first * sin
    rotation = torch.stack(parts, dim=-1).flatten(-2) if interleaved else torch.cat(parts, dim=-1)
    return torch.cat([rotation.to(x.dtype), x[..., rotary:]], dim=-1).contiguous()


def _check(arguments: dict[str, Any], sections: list[int] | None) -> None:
    name, q, cos, positions = "rope", arguments["q"], arguments["cos"], arguments["positions"]
    checks.require(q.dim() >= 3, name, f"q has {q.dim()} dimensions, expected [..., heads, dim]")
    rows = positions if positions is None or sections is None else positions[0]
    TENSORS.check(name, {**arguments, "positions": rows})
    half, dim, tokens = cos.shape[1], q.shape[-1], q.shape[-3]
    message = f"tables of {half} angles rotate {2 * half} of {dim} dimensions"
    checks.require(2 * half <= dim, name, message)
    if positions is None:
        message = f"tables of {cos.shape[0]} positions for {tokens} tokens"
        checks.require(cos.shape[0] >= tokens, name, message)
    if sections is not None:
        checks.require(positions is not None, name, "sections need positions")
        assert positions is not None
        checks.shape_is(name, "positions", positions, (3, *q.shape[:-2]))
        right = len(sections) == 3 and sum(sections) == half and min(sections) >= 0
        message = f"sections are {sections}, expected three that sum to {half}"
        checks.require(right, name, message)


def _heads(x: Tensor) -> Tensor:
    """[tokens, heads, dim] with contiguous dimensions."""
    return adjacent(x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]))


def _setup(ctx, inputs, output) -> None:
    q, k, cos, sin, positions, ctx.interleaved, ctx.inverse, ctx.sections = inputs
    learned = any(ctx.needs_input_grad[2:4])
    ctx.save_for_backward(cos, sin, positions, *((q, k) if learned else ()))


def _gradient(ctx, dq, dk):
    cos, sin, positions, *rotated = ctx.saved_tensors
    call = torch.ops.wavecast.rope
    grads = call(dq, dk, cos, sin, positions, ctx.interleaved, not ctx.inverse, ctx.sections)
    tables = (None, None)
    if rotated:  # tables are seldom learned: no kernel for that
        arguments = (*rotated, cos, sin, positions, ctx.interleaved, ctx.inverse, ctx.sections)
        tables = derivative.pulled_back(rope_reference, arguments, (2, 3), (dq, dk))
    return *grads, *tables, None, None, None, None


def _inputs(
    make, tokens, q_heads, k_heads, dim, dtype, rotary=0, batch=0, given=True, sections=None,
    table="float32", **flags,
):  # fmt: skip
    leading = (batch, tokens) if batch else (tokens,)
    limit, half = max(tokens, 64), (rotary or dim) // 2
    positions = make.integers((*((3,) if sections else ()), *leading), 0, limit) if given else None
    table = dtype if dtype == "float64" else table
    angles = make.uniform((limit, half), "float64" if dtype == "float64" else "float32", -3.2, 3.2)
    return {
        "q": make.normal((*leading, q_heads, dim), dtype),
        "k": make.normal((*leading, k_heads, dim), dtype),
        "cos": angles.cos().to(make.dtype(table)),
        "sin": angles.sin().to(make.dtype(table)),
        "positions": positions,
        "sections": list(sections) if sections else None,
        **flags,
    }


def _work(tokens, q_heads, k_heads, dim, dtype, rotary=0, batch=0, **_):
    elements = max(1, batch) * tokens * (q_heads + k_heads) * dim
    size = elements * getattr(torch, dtype).itemsize
    tables = 4 * tokens * (rotary or dim) + 8 * tokens
    return describe.Work({"vector_fp32": 3.0 * elements}, size + tables, size, "formula", "formula")


_case = partial(dict, tokens=5, q_heads=3, k_heads=2, dim=20, dtype="float32")
_large = partial(dict, tokens=8192, q_heads=32, k_heads=8, dim=128, dtype="bfloat16")


def _no_rows(q, positions=None, sections=None, **_) -> bool:
    """Whether one more leading dimension would be taken for that of the tokens, or is not the
    first of `positions`."""
    return sections is not None or (positions is None and q.dim() < 3)


OPERATORS = (
    describe.Operator(
        summary="rotary position embedding of queries and keys",
        call=rope,
        fake=lambda q, k, *_, **__: (q.new_empty(q.shape), k.new_empty(k.shape)),
        tensors=TENSORS,
        inputs=_inputs,
        work=_work,
        batch=describe.Batch(("q", "k", "positions"), unless=_no_rows),
        cases=(
            _case(rotary=12, interleaved=True),
            _case(tokens=7, q_heads=12, dim=64, dtype="bfloat16"),
            _case(batch=2, given=False, rotary=16, inverse=True),
            _case(dim=48, sections=(6, 10, 8), dtype="float16"),
        ),
        thorough=(
            _case(q_heads=9, dim=128, dtype="bfloat16", interleaved=True),
            _case(dim=48, sections=(6, 10, 8), interleaved=True, inverse=True),
            _case(k_heads=1, dim=64, table="bfloat16", dtype="bfloat16"),
            _case(dim=192, rotary=64, dtype="bfloat16", given=False),
        ),
        shapes=(
            _large(),
            _large(interleaved=True),
            _large(tokens=64),
        ),
        gradient=describe.Gradient(_setup, _gradient),
    ),
)
