"""Rotary position embedding of queries and keys in one launch, and its inverse, the gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import pulled_back
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Gradient, Operator
from wavecast.kernels.pointwise.embedding import INDICES
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent
from wavecast.model.bounds import Work

_LATENCY = 1e-6
"""Seconds a program waits for one block of heads: its turns are one after another."""


@triton.jit
def rotated(
    x_ptr, y_ptr, head, heads, stride, cos, sin, dim,
    ROTARY: tl.constexpr, REST: tl.constexpr, INTERLEAVED: tl.constexpr,
    HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Rotate `HEADS` heads of a token from `head` on. The dimensions from `ROTARY` on, `REST`
    rounded up to a power of two, are copied."""
    row = head + tl.arange(0, HEADS)[:, None]
    there = row < heads
    from_row = x_ptr + row * stride
    to_row = y_ptr + row * dim
    kind: tl.constexpr = y_ptr.dtype.element_ty
    if INTERLEAVED:
        along = tl.arange(0, 2 * HALF)[None, :]
        inside = there & (along < ROTARY)
        x = tl.load(from_row + along, mask=inside, other=0.0).to(tl.float32)
        first, second = tl.split(x.reshape(HEADS, HALF, 2))
        turned = tl.join(first * cos - second * sin, second * cos + first * sin)
        y = turned.reshape(HEADS, 2 * HALF)
        tl.store(to_row + along, y.to(kind), mask=inside)
    else:
        along = tl.arange(0, HALF)[None, :]
        inside = there & (along < ROTARY // 2)
        first = tl.load(from_row + along, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(from_row + ROTARY // 2 + along, mask=inside, other=0.0).to(tl.float32)
        tl.store(to_row + along, (first * cos - second * sin).to(kind), mask=inside)
        tl.store(to_row + ROTARY // 2 + along, (second * cos + first * sin).to(kind), mask=inside)
    if REST > 0:
        after = ROTARY + tl.arange(0, REST)[None, :]
        inside = there & (after < dim)
        tl.store(to_row + after, tl.load(from_row + after, mask=inside), mask=inside)


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
    token = tl.program_id(0) // PARTS
    part = tl.program_id(0) % PARTS
    angle = tl.arange(0, HALF)
    position = tl.zeros((HALF,), tl.int32)
    if FIRST >= 0:
        position += tl.load(positions_ptr + token).to(tl.int32)
        further = tl.load(positions_ptr + tokens + token).to(tl.int32)
        position = tl.where(angle >= FIRST, further, position)
        further = tl.load(positions_ptr + 2 * tokens + token).to(tl.int32)
        position = tl.where(angle >= SECOND, further, position)
    elif GIVEN:
        position += tl.load(positions_ptr + token).to(tl.int32)
    else:
        position += token % length
    known = (angle < ROTARY // 2) & (position >= 0) & (position < limit)
    cos = tl.load(cos_ptr + position * cos_stride + angle, mask=known, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + position * sin_stride + angle, mask=known, other=0.0).to(tl.float32)
    if INVERSE:
        sin = -sin
    cos = cos[None, :]
    sin = sin[None, :]
    if WIDE:
        token = token.to(tl.int64)
    q_ptr += token * q_token
    k_ptr += token * k_token
    q_out_ptr += token * q_heads * dim
    k_out_ptr += token * k_heads * dim
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


def rope(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None = None,
    interleaved: bool = False,
    inverse: bool = False,
    sections: list[int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotary position embedding of queries [..., q_heads, dim] and keys [..., k_heads, dim].

    `cos` and `sin` are [positions, rotary / 2]; the first `rotary` dimensions of each head are
    turned and the others copied. Angle i turns dimensions i and i + rotary / 2 (Llama, NeoX), or,
    `interleaved`, 2 i and 2 i + 1 (GPT-J). `positions` (int64 or int32, of the leading shape of q)
    say where each token stands; without them it is its place in the last leading dimension. A
    position the tables do not have gives zeros. With `sections` (three counts of angles,
    multimodal), `positions` are [3, ...]: one row per section.

    q and k are of one dtype of float32, float16, bfloat16; tables of any of these; computed in
    float32. `inverse` turns back: that is the gradient. Raises ArgumentError.
    """
    _check(q, k, cos, sin, positions, sections)
    leading, dim = q.shape[:-2], q.shape[-1]
    q_out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    k_out = torch.empty(k.shape, dtype=k.dtype, device=k.device)
    if not q.numel() and not k.numel():
        return q_out, k_out
    q, k = _heads(q), _heads(k)
    cos, sin = adjacent(cos), adjacent(sin)
    tokens, rotary = q.shape[0], 2 * cos.shape[1]
    given = positions is not None
    places = positions.contiguous() if positions is not None else q
    flags = {"interleaved": interleaved, "given": given, "sections": sections is not None}
    heads = {"q_heads": q.shape[1], "k_heads": k.shape[1]}

    def grid(settings: Settings) -> tuple[int, ...]:
        return (tokens * settings["PARTS"],)

    launch(
        rope_kernel,
        grid,
        (
            *(q, k, q_out, k_out, cos, sin, places, tokens, leading[-1], cos.shape[0]),
            *(q.shape[1], k.shape[1], dim, q.stride(0), q.stride(1), k.stride(0), k.stride(1)),
            *(cos.stride(0), sin.stride(0)),
        ),
        SPACE,
        {"tokens": tokens, **heads, "dim": dim, "rotary": rotary, "bytes": q.element_size()}
        | flags,
        ROTARY=rotary,
        REST=triton.next_power_of_2(dim - rotary) if dim > rotary else 0,
        INTERLEAVED=interleaved,
        INVERSE=inverse,
        GIVEN=given,
        FIRST=sections[0] if sections else -1,
        SECOND=sections[0] + sections[1] if sections else -1,
        HALF=triton.next_power_of_2(max(1, rotary // 2)),
        WIDE=checks.wide(q, k, q_out, k_out),
    )
    return q_out, k_out


def rope_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None = None,
    interleaved: bool = False,
    inverse: bool = False,
    sections: list[int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """By complex multiplication's formula, in float32 at least."""
    if positions is None:
        leading = q.shape[:-2]
        positions = torch.arange(leading[-1], device=q.device).expand(leading)
    known = (positions >= 0) & (positions < cos.shape[0])
    place = torch.where(known, positions, 0)

    def angles(table: torch.Tensor) -> torch.Tensor:
        found = torch.where(known[..., None], table[place], 0.0)
        if sections is not None:
            parts = found.split(sections, dim=-1)
            found = torch.cat([part[row] for row, part in enumerate(parts)], dim=-1)
        return found.unsqueeze(-2)

    along, across = angles(cos), angles(-sin if inverse else sin)
    return _turned(q, along, across, interleaved), _turned(k, along, across, interleaved)


def _turned(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool
) -> torch.Tensor:
    kind = torch.promote_types(x.dtype, torch.float32)
    rotary = 2 * cos.shape[-1]
    wide, cos, sin = x[..., :rotary].to(kind), cos.to(kind), sin.to(kind)
    if interleaved:
        first, second = wide[..., 0::2], wide[..., 1::2]
    else:
        first, second = wide.chunk(2, dim=-1)
    parts = first * cos - second * sin, second * cos + first * sin
    if interleaved:
        turned = torch.stack(parts, dim=-1).flatten(-2)
    else:
        turned = torch.cat(parts, dim=-1)
    return torch.cat([turned.to(x.dtype), x[..., rotary:]], dim=-1).contiguous()


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    sections: list[int] | None,
) -> None:
    name = "rope"
    checks.dtype_in(name, "q", q, checks.FLOATS)
    checks.require(k.dtype == q.dtype, name, f"k is {k.dtype} and q is {q.dtype}")
    checks.require(q.dim() >= 3, name, f"q has {q.dim()} dimensions, expected [..., heads, dim]")
    leading, dim = q.shape[:-2], q.shape[-1]
    checks.shape_is(name, "k", k, (*leading, -1, dim))
    checks.dtype_in(name, "cos", cos, checks.FLOATS)
    checks.dtype_in(name, "sin", sin, checks.FLOATS)
    checks.shape_is(name, "cos", cos, (-1, -1))
    checks.shape_is(name, "sin", sin, cos.shape)
    checks.same_device(name, q=q, k=k, cos=cos, sin=sin, positions=positions)
    message = f"tables of {cos.shape[1]} angles turn {2 * cos.shape[1]} of {dim} dimensions"
    checks.require(2 * cos.shape[1] <= dim, name, message)
    if positions is not None:
        checks.dtype_in(name, "positions", positions, INDICES)
        rows = (3,) if sections is not None else ()
        checks.shape_is(name, "positions", positions, (*rows, *leading))
    elif cos.shape[0] < leading[-1]:
        message = f"tables of {cos.shape[0]} positions for {leading[-1]} tokens"
        checks.require(False, name, message)
    if sections is not None:
        checks.require(positions is not None, name, "sections need positions")
        right = len(sections) == 3 and sum(sections) == cos.shape[1] and min(sections) >= 0
        message = f"sections are {sections}, expected three that sum to {cos.shape[1]}"
        checks.require(right, name, message)


def _heads(x: torch.Tensor) -> torch.Tensor:
    """[tokens, heads, dim] whose dimensions lie side by side."""
    return adjacent(x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    del output
    q, k, cos, sin, positions, ctx.interleaved, ctx.inverse, ctx.sections = inputs
    learned = any(ctx.needs_input_grad[2:4])
    ctx.save_for_backward(cos, sin, positions, *((q, k) if learned else ()))


def _gradient(ctx: Any, dq: torch.Tensor, dk: torch.Tensor) -> tuple[Any, ...]:
    cos, sin, positions, *turned = ctx.saved_tensors
    turn = torch.ops.wavecast.rope
    found = turn(dq, dk, cos, sin, positions, ctx.interleaved, not ctx.inverse, ctx.sections)
    tables: tuple[Any, ...] = (None, None)
    if turned:  # tables are seldom learned: no kernel for that
        given = (*turned, cos, sin, positions, ctx.interleaved, ctx.inverse, ctx.sections)
        tables = pulled_back(rope_reference, given, (2, 3), (dq, dk))
    return *found, *tables, None, None, None, None


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del device
    most = triton.next_power_of_2(max(problem["q_heads"], problem["k_heads"]))
    return {
        "HEADS": tuple(heads for heads in (1, 2, 4, 8, 16, 32, 64) if heads <= most),
        "PARTS": (1, 2, 4, 8),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    lanes = settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)
    elements = settings["HEADS"] * triton.next_power_of_2(problem["dim"])
    most = triton.next_power_of_2(max(problem["q_heads"], problem["k_heads"]))
    # A lane's 16 bytes of each half: with more, its loads leave gaps that others fill.
    held = elements * problem["bytes"] / lanes
    enough = held >= 16 or (settings["HEADS"] == most and settings["num_warps"] == 1)
    few = held <= 32 or (settings["HEADS"] == 1 and settings["num_warps"] == 4)
    return settings["PARTS"] <= _blocks(problem, settings) and enough and few


def _blocks(problem: Problem, settings: Settings) -> int:
    heads = settings["HEADS"]
    return triton.cdiv(problem["q_heads"], heads) + triton.cdiv(problem["k_heads"], heads)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    tokens, heads = problem["tokens"], problem["q_heads"] + problem["k_heads"]
    size = tokens * heads * problem["dim"] * problem["bytes"]
    blocks = _blocks(problem, settings)
    turns = triton.cdiv(blocks, settings["PARTS"])
    wasted = blocks * settings["HEADS"] / heads
    idle = turns * settings["PARTS"] / blocks
    tables = 4 * tokens * problem["rotary"] * settings["PARTS"]
    return turns * _LATENCY + (wasted * idle) ** 0.25 * estimates.streaming(
        device,
        settings,
        workgroups=tokens * settings["PARTS"],
        read=size + tables / 4,
        written=size,
        elements=settings["HEADS"] * problem["dim"],
        operations=12.0 * turns,
        held=2.0,
    )


SPACE = Space(kernel="rope_kernel", axes=_axes, seconds=_seconds, fits=_fits, classes=("tokens",))


def _inputs(
    make: Make,
    tokens: int,
    q_heads: int,
    k_heads: int,
    dim: int,
    dtype: str,
    rotary: int = 0,
    batch: int = 0,
    given: bool = True,
    interleaved: bool = False,
    inverse: bool = False,
    sections: tuple[int, int, int] | None = None,
    table: str = "float32",
) -> dict[str, Any]:
    leading = (batch, tokens) if batch else (tokens,)
    limit, half = max(tokens, 64), (rotary or dim) // 2
    positions = make.integers((*((3,) if sections else ()), *leading), 0, limit) if given else None
    table = dtype if dtype == "float64" else table
    turns = make.uniform((limit, half), "float64" if dtype == "float64" else "float32", -3.2, 3.2)
    return {
        "q": make.normal((*leading, q_heads, dim), dtype),
        "k": make.normal((*leading, k_heads, dim), dtype),
        "cos": turns.cos().to(make.dtype(table)),
        "sin": turns.sin().to(make.dtype(table)),
        "positions": positions,
        "interleaved": interleaved,
        "inverse": inverse,
        "sections": list(sections) if sections else None,
    }


def _work(tokens: int, q_heads: int, k_heads: int, dim: int, dtype: str, **named: Any) -> Work:
    elements = max(1, named.get("batch", 0)) * tokens * (q_heads + k_heads) * dim
    size = elements * getattr(torch, dtype).itemsize
    tables = 4 * tokens * (named.get("rotary", 0) or dim) + 8 * tokens
    return Work({"vector_fp32": 3.0 * elements}, size + tables, size, "formula", "formula")


_CASE = {"tokens": 5, "q_heads": 3, "k_heads": 2, "dim": 20, "dtype": "float32"}
_LARGE = {"tokens": 8192, "q_heads": 32, "k_heads": 8, "dim": 128, "dtype": "bfloat16"}


def _no_rows(q: torch.Tensor, positions: Any = None, sections: Any = None, **_: Any) -> bool:
    """Whether one more leading dimension would be taken for that of the tokens, or is not the
    first of `positions`."""
    return sections is not None or (positions is None and q.dim() < 3)


OPERATORS = (
    Operator(
        name="rope",
        summary="rotary position embedding of queries and keys",
        call=rope,
        reference=rope_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("q", "k", "positions"), unless=_no_rows),
        cases=(
            {**_CASE, "rotary": 12, "interleaved": True},
            {**_CASE, "tokens": 7, "q_heads": 12, "dim": 64, "dtype": "bfloat16"},
            {**_CASE, "batch": 2, "given": False, "rotary": 16, "inverse": True},
            {**_CASE, "dim": 48, "sections": (6, 10, 8), "dtype": "float16"},
        ),
        thorough=(
            {**_CASE, "q_heads": 9, "dim": 128, "dtype": "bfloat16", "interleaved": True},
            {**_CASE, "dim": 48, "sections": (6, 10, 8), "interleaved": True, "inverse": True},
            {**_CASE, "k_heads": 1, "dim": 64, "table": "bfloat16", "dtype": "bfloat16"},
            {**_CASE, "dim": 192, "rotary": 64, "dtype": "bfloat16", "given": False},
        ),
        shapes=(
            _LARGE,
            {**_LARGE, "interleaved": True},
            {**_LARGE, "tokens": 64},
        ),
        spaces=(SPACE,),
        gradient=Gradient(_setup, _gradient),
    ),
)
