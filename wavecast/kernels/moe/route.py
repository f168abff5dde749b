"""Which experts every token goes to, and how much each counts."""

from __future__ import annotations

from typing import Any, Final

import torch
import triton

from wavecast.kernels import checks
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe.route_kernels import (
    BACKWARD,
    ROUTE,
    moe_route_backward_kernel,
    moe_route_kernel,
)
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.strides import adjacent
from wavecast.model.bounds import Work

SCORINGS: Final = ("softmax", "sigmoid")
TINY: Final = 1e-20
"""Added to the sum that weights are divided by."""
_MOST_EXPERTS: Final = 2048


def moe_route(
    logits: torch.Tensor,
    top_k: int,
    scoring: str = "softmax",
    renormalise: bool = True,
    bias: torch.Tensor | None = None,
    groups: int = 1,
    top_groups: int = 1,
    scale: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The `top_k` experts of every token, by scores of a router's logits.

    `logits` is [tokens, experts] of float32, float16 or bfloat16. Scores are their `softmax` or
    their `sigmoid`; `bias` [experts] is added to them where experts are chosen, and only there.
    With `groups` the experts are as many groups of neighbours: those are left that belong to the
    `top_groups` groups with the largest sum of their two largest (biased) scores.

    Returns weights [tokens, top_k] of float32, the scores of the chosen experts, with `renormalise`
    divided by their sum (and 1e-20), times `scale`; and the experts' numbers, [tokens, top_k] of
    int32, the best first, of equal ones the lower number. Without `bias` experts are compared by
    their logits, which keep apart what scores round together. NaN is least. Raises ArgumentError.
    """
    _check("moe_route", logits, top_k, scoring)
    count = logits.shape[1]
    _check_groups(logits, top_k, bias, groups, top_groups)
    tokens = logits.shape[0]
    weights = torch.empty((tokens, top_k), dtype=torch.float32, device=logits.device)
    experts = torch.empty((tokens, top_k), dtype=torch.int32, device=logits.device)
    if not tokens:
        return weights, experts
    logits = adjacent(logits)
    flags = {"sigmoid": scoring == "sigmoid", "renormalise": renormalise, "bias": bias is not None}
    grouped = {"groups": groups, "top_groups": top_groups}
    launch(
        moe_route_kernel,
        lambda settings: (triton.cdiv(tokens, settings["ROWS"]),),
        (
            *(logits, logits if bias is None else bias.contiguous(), weights, experts),
            *(tokens, count, logits.stride(0), scale, TINY),
        ),
        ROUTE,
        {**_problem(logits, top_k), **flags, **grouped},
        TOP_K=top_k,
        SIGMOID=scoring == "sigmoid",
        RENORMALISE=renormalise,
        BIAS=bias is not None,
        GROUPS=groups,
        TOP_GROUPS=top_groups,
        EXPERTS=max(16, triton.next_power_of_2(count)),
        CHOICES=triton.next_power_of_2(top_k),
        WIDE=checks.wide(logits),
    )
    return weights, experts


def moe_route_reference(
    logits: torch.Tensor,
    top_k: int,
    scoring: str = "softmax",
    renormalise: bool = True,
    bias: torch.Tensor | None = None,
    groups: int = 1,
    top_groups: int = 1,
    scale: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Stable sorts, and torch.softmax or torch.sigmoid."""
    kind = torch.promote_types(logits.dtype, torch.float32)
    wide = logits.to(kind)
    scores = wide.softmax(-1) if scoring == "softmax" else wide.sigmoid()
    ranked = wide if bias is None else scores + bias.to(kind)
    least = float("-inf")
    keys = torch.where(ranked.isnan(), least, ranked)
    if top_groups < groups:
        biased = (scores if bias is None else ranked).unflatten(-1, (groups, -1))
        best = biased.sort(dim=-1, descending=True).values[..., :2].sum(-1)
        order = best.sort(dim=-1, descending=True, stable=True).indices[:, :top_groups]
        left = torch.zeros_like(best).scatter(-1, order, 1.0) > 0
        left = left.repeat_interleave(logits.shape[1] // groups, -1)
        keys = torch.where(left, keys.clamp_min(torch.finfo(kind).min), least)
    experts = keys.sort(dim=-1, descending=True, stable=True).indices[:, :top_k]
    weights = scores.gather(-1, experts)
    if renormalise:
        weights = weights / (weights.sum(-1, keepdim=True) + TINY)
    result = torch.float64 if kind == torch.float64 else torch.float32
    return (weights * scale).to(result), experts.int().contiguous()


def moe_route_backward(
    dweights: torch.Tensor,
    logits: torch.Tensor,
    experts: torch.Tensor,
    scoring: str = "softmax",
    renormalise: bool = True,
    scale: float = 1.0,
) -> torch.Tensor:
    """The gradient of `moe_route`'s weights with respect to `logits`, in their dtype.

    `dweights` and `experts` are [tokens, top_k], a token's experts all different, and the choice of
    them counts as given. Raises ArgumentError.
    """
    name = "moe_route_backward"
    checks.require(experts.dim() == 2, name, "experts is not [tokens, top_k]")
    _check(name, logits, experts.shape[1], scoring)
    checks.dtype_in(name, "experts", experts, (torch.int32,))
    checks.dtype_in(name, "dweights", dweights, checks.FLOATS)
    checks.shape_is(name, "experts", experts, (logits.shape[0], -1))
    checks.shape_is(name, "dweights", dweights, experts.shape)
    checks.same_device(name, dweights=dweights, logits=logits, experts=experts)
    tokens, count = logits.shape
    result = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    if not tokens:
        return result
    logits = adjacent(logits)
    top_k = experts.shape[1]
    flags = {"sigmoid": scoring == "sigmoid", "renormalise": renormalise}
    launch(
        moe_route_backward_kernel,
        lambda settings: (triton.cdiv(tokens, settings["ROWS"]),),
        (
            *(dweights.contiguous(), logits, experts.contiguous(), result),
            *(tokens, count, logits.stride(0), scale, TINY),
        ),
        BACKWARD,
        {**_problem(logits, top_k), **flags},
        TOP_K=top_k,
        SIGMOID=scoring == "sigmoid",
        RENORMALISE=renormalise,
        EXPERTS=max(16, triton.next_power_of_2(count)),
        WIDE=checks.wide(logits, result),
    )
    return result


def moe_route_backward_reference(
    dweights: torch.Tensor,
    logits: torch.Tensor,
    experts: torch.Tensor,
    scoring: str = "softmax",
    renormalise: bool = True,
    scale: float = 1.0,
) -> torch.Tensor:
    """By the formula, in float32 at least."""
    kind = torch.promote_types(logits.dtype, torch.float32)
    wide = logits.to(kind)
    scores = wide.softmax(-1) if scoring == "softmax" else wide.sigmoid()
    slope = dweights.to(kind) * scale
    if renormalise:
        picked = scores.gather(-1, experts.long())
        total = picked.sum(-1, keepdim=True) + TINY
        slope = (slope - (slope * picked).sum(-1, keepdim=True) / total) / total
    slope = torch.zeros_like(wide).scatter(-1, experts.long(), slope)
    if scoring == "sigmoid":
        return (slope * scores * (1 - scores)).to(logits.dtype)
    return (scores * (slope - (slope * scores).sum(-1, keepdim=True))).to(logits.dtype)


def _check(name: str, logits: torch.Tensor, top_k: int, scoring: str) -> None:
    checks.dtype_in(name, "logits", logits, checks.FLOATS)
    checks.shape_is(name, "logits", logits, (-1, -1))
    count = logits.shape[1]
    checks.require(1 <= count <= _MOST_EXPERTS, name, f"{count} experts, not 1 to 2048")
    most = min(count, 64)
    checks.require(1 <= top_k <= most, name, f"top_k is {top_k}, not 1 to {most}")
    checks.require(scoring in SCORINGS, name, f"no scoring {scoring!r}; softmax, sigmoid")
    checks.require(logits.shape[0] * max(top_k, 1) < 2**31, name, "2**31 choices or more")


def _check_groups(
    logits: torch.Tensor, top_k: int, bias: torch.Tensor | None, groups: int, top_groups: int
) -> None:
    name, count = "moe_route", logits.shape[1]
    even = 1 <= groups <= 64 and count % groups == 0
    checks.require(even, name, f"{count} experts are not {groups} groups (of 64 at most)")
    known = 1 <= top_groups <= groups
    checks.require(known, name, f"top_groups is {top_groups}, not 1 to {groups}")
    left = count // groups * top_groups
    checks.require(top_k <= left, name, f"top_k is {top_k}, but {left} experts are left")
    if bias is not None:
        checks.dtype_in(name, "bias", bias, checks.FLOATS)
        checks.shape_is(name, "bias", bias, (count,))
    checks.same_device(name, logits=logits, bias=bias)


def _problem(logits: torch.Tensor, top_k: int) -> dict[str, Any]:
    tokens, count = logits.shape
    return {"tokens": tokens, "experts": count, "top_k": top_k, "bytes": logits.element_size()}


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    logits, _, scoring, renormalise, _, _, _, scale = inputs
    ctx.save_for_backward(logits, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.options = scoring, renormalise, scale


def _gradient(ctx: Any, dweights: torch.Tensor, _: Any) -> tuple[Any, ...]:
    found = torch.ops.wavecast.moe_route_backward(dweights, *ctx.saved_tensors, *ctx.options)
    return found, *(None,) * 7


def _inputs(
    make: Make, tokens: int, experts: int, top_k: int, dtype: str, scoring: str = "softmax",
    renormalise: bool = True, bias: bool = False, groups: int = 1, top_groups: int = 1,
    scale: float = 1.0, ties: bool = False,
) -> dict[str, Any]:  # fmt: skip
    logits = make.normal((tokens, experts), dtype, 2.0)
    if ties:
        logits = logits.round()
    # a bias is no argument of the gradient
    kind = torch.float32 if dtype == "float64" else dtype
    return {
        "logits": logits,
        "top_k": top_k,
        "scoring": scoring,
        "renormalise": renormalise,
        "bias": make.normal((experts,), kind, 0.3) if bias else None,
        "groups": groups,
        "top_groups": top_groups,
        "scale": scale,
    }


def _backward_inputs(
    make: Make, tokens: int, experts: int, top_k: int, dtype: str, scoring: str = "softmax",
    renormalise: bool = True, scale: float = 1.0, **others: Any,
) -> dict[str, Any]:  # fmt: skip
    kind = torch.float64 if dtype == "float64" else torch.float32
    start = make.integers((tokens, 1), 0, experts, "int32")
    step = make.permutation(experts, "int32")[:top_k]
    return {
        "dweights": make.normal((tokens, top_k), kind),
        "logits": make.normal((tokens, experts), dtype, 2.0),
        "experts": (start + step) % experts,
        "scoring": scoring,
        "renormalise": renormalise,
        "scale": scale,
    }


def _work(results: int) -> Any:
    def work(tokens: int, experts: int, top_k: int, dtype: str, **flags: Any) -> Work:
        size = getattr(torch, dtype).itemsize
        whole, picked = tokens * experts * size, tokens * top_k * 8.0
        flops = {"vector_fp32": 4.0 * tokens * experts}
        if results == 2:
            return Work(flops, whole, picked, "formula", "formula")
        return Work(flops, whole + picked, whole, "formula", "formula")

    return work


_CASES = (
    {"tokens": 5, "experts": 12, "top_k": 3, "dtype": "float32"},
    {"tokens": 19, "experts": 40, "top_k": 4, "dtype": "bfloat16", "renormalise": False}
    | {"ties": True},
    {"tokens": 7, "experts": 64, "top_k": 5, "dtype": "float32", "scoring": "sigmoid"}
    | {"bias": True, "groups": 8, "top_groups": 3, "scale": 2.5},
    {"tokens": 9, "experts": 30, "top_k": 2, "dtype": "float16", "scoring": "sigmoid"}
    | {"renormalise": False, "ties": True},
)
_THOROUGH = (
    {"tokens": 3, "experts": 256, "top_k": 8, "dtype": "float32", "groups": 8, "top_groups": 4},
    {"tokens": 4, "experts": 6, "top_k": 6, "dtype": "bfloat16", "groups": 6, "top_groups": 6},
    {"tokens": 4, "experts": 6, "top_k": 2, "dtype": "float32", "groups": 6, "top_groups": 2},
    {"tokens": 2, "experts": 700, "top_k": 10, "dtype": "float32", "bias": True},
    {"tokens": 2, "experts": 1, "top_k": 1, "dtype": "float32"},
)
_SHAPES = tuple(
    {"tokens": tokens, "experts": experts, "top_k": top_k, "dtype": "float32", **flags}
    for experts, top_k, flags in (
        (256, 8, {"scoring": "sigmoid", "bias": True, "groups": 8, "top_groups": 4, "scale": 2.5}),
        (128, 8, {}),
        (128, 4, {}),
        (8, 2, {}),
    )
    for tokens in (64, 4096)
)
_PLAIN = tuple(
    {name: value for name, value in sizes.items() if name not in ("bias", "groups", "top_groups")}
    for sizes in _CASES
)

OPERATORS = (
    Operator(
        name="moe_route",
        summary="experts and weights of every token from a router's logits",
        call=moe_route,
        reference=moe_route_reference,
        inputs=_inputs,
        work=_work(2),
        batch=Batch(("logits",), merged=True),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(ROUTE,),
        tolerance=Tolerance(ulps=8.0),
        gradient=Gradient(_setup, _gradient, constants=("bias",)),
    ),
    Operator(
        name="moe_route_backward",
        summary="gradient of moe_route",
        call=moe_route_backward,
        reference=moe_route_backward_reference,
        gradient=by_reference(moe_route_backward_reference),
        inputs=_backward_inputs,
        work=_work(1),
        batch=Batch(("dweights", "logits", "experts"), merged=True),
        cases=_PLAIN,
        shapes=_SHAPES[1::2],
        spaces=(BACKWARD,),
        tolerance=Tolerance(ulps=8.0),
    ),
)
