"""Kernels that choose experts by the scores of a router, and the derivative of their weights."""

from __future__ import annotations

from typing import Any, Final

import triton
import triton.language as tl

from wavecast.kernels.describe import (
    Axes,
    Device,
    KernelSpec,
    Problem,
    Settings,
    StreamingKernel,
)

_TAKEN: Final = tl.constexpr(-(2**31))


@triton.jit
def _scores(logits, valid, SIGMOID: tl.constexpr):
    """Scores in float32; 0 beyond the experts there are."""
    if SIGMOID:
        scores = tl.sigmoid(logits)
    else:
        safe = tl.where(valid, logits, -float("inf"))
        power = tl.exp(safe - tl.max(safe, axis=1)[:, None])  # pyright: ignore[reportArgumentType, reportCallIssue]
        scores = power / tl.sum(tl.where(valid, power, 0.0), axis=1)[:, None]  # pyright: ignore[reportArgumentType]
    return tl.where(valid, scores, 0.0)


@triton.jit
def _ordered(value):
    """Integers in the order of float32 values; -0 is 0, NaN is -inf."""
    value = tl.where(value != value, -float("inf"), value)
    bits = tl.where(value == 0, 0.0, value).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _best_two(scores, mine):
    """Per row the sum of the two largest scores among `mine`; of the one there is."""
    held = tl.where(mine, scores, -float("inf"))
    place = tl.arange(0, scores.shape[1])[None, :]
    first, at = tl.max(held, axis=1, return_indices=True)
    second = tl.max(tl.where(place == at[:, None], -float("inf"), held), axis=1)
    return first + tl.where(second == -float("inf"), 0.0, second)


@triton.jit
def moe_route_kernel(
    logits_ptr, bias_ptr, weights_ptr, experts_ptr, tokens, count, stride, scale, tiny,
    TOP_K: tl.constexpr, SIGMOID: tl.constexpr, RENORMALISE: tl.constexpr, BIAS: tl.constexpr,
    GROUPS: tl.constexpr, TOP_GROUPS: tl.constexpr, EXPERTS: tl.constexpr, ROWS: tl.constexpr,
    CHOICES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    expert = tl.arange(0, EXPERTS)[None, :]
    valid = (row < tokens)[:, None] & (expert < count)
    line = row.to(tl.int64) if WIDE else row
    logits = tl.load(logits_ptr + line[:, None] * stride + expert, mask=valid, other=0.0)
    logits = logits.to(tl.float32)
    scores = _scores(logits, expert < count, SIGMOID)
    ranked = logits
    if BIAS:
        bias = tl.load(bias_ptr + expert, mask=expert < count, other=0.0).to(tl.float32)
        ranked = scores + bias
    keys = tl.where(expert < count, _ordered(ranked), _TAKEN)
    if TOP_GROUPS < GROUPS:
        size = count // GROUPS
        biased = scores
        if BIAS:
            biased = ranked
        numbers = tl.arange(0, 64)[None, :]
        group_keys = tl.full((ROWS, 64), _TAKEN, tl.int32)
        for group in tl.static_range(GROUPS):  # pyright: ignore[reportGeneralTypeIssues]
            mine = (expert >= group * size) & (expert < (group + 1) * size)
            sums = _ordered(_best_two(biased, mine))
            group_keys = tl.where(numbers == group, sums[:, None], group_keys)
        kept = tl.zeros((ROWS, EXPERTS), tl.int1)
        for _ in tl.static_range(TOP_GROUPS):  # pyright: ignore[reportGeneralTypeIssues]
            best = tl.max(group_keys, axis=1)
            group = tl.min(tl.where(group_keys == best[:, None], numbers, 64), axis=1)  # pyright: ignore[reportArgumentType, reportCallIssue]
            group_keys = tl.where(numbers == group[:, None], _TAKEN, group_keys)  # pyright: ignore[reportArgumentType, reportCallIssue]
            kept = kept | (expert // size == group[:, None])  # pyright: ignore[reportArgumentType, reportCallIssue]
        keys = tl.where(kept, keys, _TAKEN)
    choice = tl.arange(0, CHOICES)[None, :]
    chosen = tl.zeros((ROWS, CHOICES), tl.int32)
    weights = tl.zeros((ROWS, CHOICES), tl.float32)
    for number in tl.static_range(TOP_K):  # pyright: ignore[reportGeneralTypeIssues]
        best = tl.max(keys, axis=1)
        where = tl.min(tl.where(keys == best[:, None], expert, EXPERTS), axis=1)  # pyright: ignore[reportArgumentType, reportCallIssue]
        taken = expert == where[:, None]  # pyright: ignore[reportArgumentType, reportCallIssue]
        score = tl.sum(tl.where(taken, scores, 0.0), axis=1)
        keys = tl.where(taken, _TAKEN, keys)
        chosen = tl.where(choice == number, where[:, None], chosen)  # pyright: ignore[reportArgumentType, reportCallIssue]
        weights = tl.where(choice == number, score[:, None], weights)  # pyright: ignore[reportArgumentType]
    if RENORMALISE:
        weights = weights / (tl.sum(weights, axis=1) + tiny)[:, None]
    to = row[:, None] * TOP_K + choice
    inside = (row < tokens)[:, None] & (choice < TOP_K)
    tl.store(weights_ptr + to, weights * scale, mask=inside)
    tl.store(experts_ptr + to, chosen, mask=inside)


@triton.jit
def moe_route_backward_kernel(
    dweights_ptr, logits_ptr, experts_ptr, dlogits_ptr, tokens, count, stride, scale, tiny,
    TOP_K: tl.constexpr, SIGMOID: tl.constexpr, RENORMALISE: tl.constexpr,
    EXPERTS: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    expert = tl.arange(0, EXPERTS)[None, :]
    valid = (row < tokens)[:, None] & (expert < count)
    line = row.to(tl.int64) if WIDE else row
    logits = tl.load(logits_ptr + line[:, None] * stride + expert, mask=valid, other=0.0)
    scores = _scores(logits.to(tl.float32), expert < count, SIGMOID)
    slope = tl.zeros((ROWS, EXPERTS), tl.float32)
    chosen = tl.zeros((ROWS, EXPERTS), tl.float32)
    for number in tl.static_range(TOP_K):  # pyright: ignore[reportGeneralTypeIssues]
        at = row * TOP_K + number
        which = tl.load(experts_ptr + at, mask=row < tokens, other=-1)
        one = tl.load(dweights_ptr + at, mask=row < tokens, other=0.0).to(tl.float32)
        taken = expert == which[:, None]
        slope += tl.where(taken, one[:, None] * scale, 0.0)
        chosen = tl.where(taken, 1.0, chosen)
    if RENORMALISE:
        total = (tl.sum(scores * chosen, axis=1) + tiny)[:, None]
        along = tl.sum(slope * scores, axis=1)[:, None] / total  # pyright: ignore[reportArgumentType]
        slope = tl.where(chosen > 0, (slope - along) / total, 0.0)
    if SIGMOID:
        result = slope * scores * (1.0 - scores)
    else:
        result = scores * (slope - tl.sum(slope * scores, axis=1)[:, None])  # pyright: ignore[reportArgumentType]
    to = dlogits_ptr + line[:, None] * count + expert
    tl.store(to, result.to(dlogits_ptr.dtype.element_ty), mask=valid)


def _axes(problem: Problem, device: Device) -> Axes:
    rows = (1,) if problem["experts"] > 512 else (1, 2, 4, 8)
    return {"ROWS": rows, "num_warps": (1, 2, 4), "num_stages": (1,)}


def _demand(problem: Problem, settings: Settings, device: Device) -> StreamingKernel:
    tokens, count = problem["tokens"], problem["experts"]
    steps = problem["top_k"] + 3 * problem.get("groups", 1)
    return StreamingKernel(
        workgroups=triton.cdiv(tokens, settings["ROWS"]),
        read=tokens * count * problem["bytes"],
        written=tokens * problem["top_k"] * 8,
        elements=settings["ROWS"] * max(16, triton.next_power_of_2(count)),
        instructions=12.0 + 12.0 * steps,
        live_registers=6.0,
    )


def _kernel(function: Any) -> KernelSpec:
    return KernelSpec(
        function=function,
        grid=lambda problem, settings: (triton.cdiv(problem["tokens"], settings["ROWS"]),),
        axes=_axes,
        demand=_demand,
        rounded=("tokens",),
    )


ROUTE = _kernel(moe_route_kernel)
BACKWARD = _kernel(moe_route_backward_kernel)
