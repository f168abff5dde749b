"""Gradients of `moe_experts`: what the forward pass had between its products is computed anew."""

from __future__ import annotations

from typing import Any

import torch
import triton

from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe import activations, given, gradients, products, steps, tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.combine import COMBINE, combine
from wavecast.kernels.moe.steps import Order, product
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.space import Settings
from wavecast.kernels.strides import contiguous
from wavecast.kernels.tiles import xcds
from wavecast.model.bounds import Work

Gradients = tuple[
    torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor
]


def moe_experts_backward(
    dy: torch.Tensor,
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of `moe_experts` with respect to `hidden`, `weights`, `w1`, `w2`, `bias1` and
    `bias2`, each in its dtype (of a bias that is not given, an empty tensor of float32).

    `dy` is [tokens, model]. The gradient by the activation is rounded to the dtype of `hidden`;
    sums are in float32 in a fixed order. Raises ArgumentError.
    """
    name = "moe_experts_backward"
    count, _, inter = given.check(
        name, hidden, weights, experts, w1, w2, hidden.dtype, bias1=bias1, bias2=bias2, dy=dy
    )
    gate = Gate.of(name, activation, alpha, limit, interleaved)
    checks.shape_is(name, "dy", dy, hidden.shape)
    checks.dtype_in(name, "dy", dy, checks.FLOATS)
    if not hidden.numel():
        return _nothing(hidden, weights, w1, w2, bias1, bias2)
    hidden, dy = hidden.contiguous(), dy.to(hidden.dtype).contiguous()
    w1, w2, weights = w1.contiguous(), w2.contiguous(), weights.contiguous()
    bias1 = contiguous(bias1)
    bias2 = contiguous(bias2)
    order = Order.of(experts, count, hidden.element_size())
    top_k, wide = order.top_k, torch.float32
    before = product(hidden, order, w1, shared=top_k, bias=bias1, dtype=wide)
    slope = product(dy, order, w2, shared=top_k, along=False, dtype=wide)
    dbefore, scaled = (torch.empty_like(one, dtype=hidden.dtype) for one in (before, slope))
    dweights = torch.empty(order.slots, dtype=torch.float32, device=hidden.device)
    launch(
        gradients.moe_activation_backward_kernel,
        lambda _: (order.slots,),
        (
            *(before, slope, weights, order.experts, dbefore, scaled, dweights),
            *(order.count, *gate.numbers),
        ),
        gradients.ACTIVATION,
        {
            "slots": order.slots,
            "columns": inter,
            "bytes": hidden.element_size(),
            **steps.named(gate),
        },
        N=inter,
        WIDE=checks.wide(before),
        **steps.options(gate),
    )
    if bias2 is not None:
        _add_bias_slope(dy, bias2, order, dweights)
    each = product(dbefore, order, w1, shared=1, along=False)
    dhidden = combine(each, order, None, hidden.dtype)
    dw1, dbias1 = _weight_gradient(dbefore, hidden, order, w1, bias1, None, 1, top_k)
    dw2, dbias2 = _weight_gradient(dy, scaled, order, w2, bias2, weights, top_k, 1)
    return dhidden, dweights.to(weights.dtype).view(weights.shape), dw1, dw2, dbias1, dbias2


def _add_bias_slope(
    dy: torch.Tensor, bias: torch.Tensor, order: Order, dweights: torch.Tensor
) -> None:
    columns = dy.shape[1]
    launch(
        gradients.moe_bias_slope_kernel,
        lambda _: (order.slots,),
        (dy, bias, order.experts, dweights, order.count, columns, order.top_k),
        gradients.BIAS_SLOPE,
        {"slots": order.slots, "columns": columns, "bytes": dy.element_size()},
        WIDE=checks.wide(dy, bias),
    )


def _weight_gradient(
    a: torch.Tensor,
    b: torch.Tensor,
    order: Order,
    w: torch.Tensor,
    bias: torch.Tensor | None,
    weights: torch.Tensor | None,
    a_shared: int,
    b_shared: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Σ aᵀ · b per expert in the dtype of w, and Σ a (times `weights`) in that of the bias."""
    dw = torch.empty(w.shape, dtype=w.dtype, device=w.device)
    dbias = torch.empty(
        w.shape[:2] if bias is not None else (0,),
        dtype=torch.float32 if bias is None else bias.dtype,
        device=w.device,
    )
    m, n = w.shape[1:]

    def grid(settings: Settings) -> tuple[int, ...]:
        tiles = triton.cdiv(m, settings["BLOCK_M"]) * triton.cdiv(n, settings["BLOCK_N"])
        return (order.count * tiles,)

    flags = {"bias": bias is not None, "weighted": weights is not None}
    launch(
        gradients.moe_weight_gradient_kernel,
        grid,
        (
            *(a, b, order.rows, order.starts, a if weights is None else weights, dw, dbias),
            *(order.slots, a_shared, b_shared),
        ),
        gradients.GRADIENT,
        {
            "slots": order.slots,
            "experts": order.count,
            "m": m,
            "n": n,
            "dtype": tiling.FORMATS[a.dtype],
            **flags,
        },
        M=m,
        N=n,
        BIAS=bias is not None,
        WEIGHTED=weights is not None,
        XCDS=xcds(gpu.launching()),
        WIDE=checks.wide(a, b),
    )
    return dw, dbias


def _nothing(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    bias1: torch.Tensor | None,
    bias2: torch.Tensor | None,
) -> Gradients:
    """Gradients where there is no token."""
    none = torch.empty(0, dtype=torch.float32, device=hidden.device)
    biases = [none.clone() if bias is None else torch.zeros_like(bias) for bias in (bias1, bias2)]
    of = (hidden, weights, w1, w2)
    dhidden, dweights, dw1, dw2 = (
        torch.zeros(one.shape, dtype=one.dtype, device=one.device) for one in of
    )
    return dhidden, dweights, dw1, dw2, biases[0], biases[1]


def moe_experts_backward_reference(
    dy: torch.Tensor,
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Every expert for every token with weight 0 where it was not chosen, in float32 at least; the
    activation's derivatives by formula."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    x, dy = hidden.to(kind), dy.to(kind)
    dx, dweights = torch.zeros_like(x), torch.zeros_like(weights, dtype=kind)
    dw1, dw2, dbias1, dbias2 = [], [], [], []
    for expert in range(w1.shape[0]):
        up_by, down_by = w1[expert].to(kind), w2[expert].to(kind)
        before = given.biased(x @ up_by.T, bias1, expert)
        gate, up = activations.halves(before, interleaved)
        act = activations.reference(activation, gate, up, alpha, limit)
        slope = dy @ down_by
        along = (slope * act).sum(1, keepdim=True)
        if bias2 is not None:
            along = along + (dy @ bias2[expert].to(kind))[:, None]
        chosen = experts == expert
        dweights = dweights + torch.where(chosen, along, 0.0)
        share = torch.where(chosen, weights.to(kind), 0.0).sum(1, keepdim=True)
        by_gate, by_up = activations.derivatives(activation, gate, up, alpha, limit)
        halves = (slope * by_gate * share, slope * by_up * share)
        dbefore = torch.stack(halves, -1).flatten(-2) if interleaved else torch.cat(halves, -1)
        dx = dx + dbefore @ up_by
        dw1.append(dbefore.T @ x)
        dw2.append((dy * share).T @ act)
        dbias1.append(dbefore.sum(0))
        dbias2.append((dy * share).sum(0))
    none = hidden.new_empty(0, dtype=torch.float32)
    return (
        dx.to(hidden.dtype).contiguous(),
        dweights.to(weights.dtype).contiguous(),
        torch.stack(dw1).to(w1.dtype),
        torch.stack(dw2).to(w2.dtype),
        none if bias1 is None else torch.stack(dbias1).to(bias1.dtype),
        none.clone() if bias2 is None else torch.stack(dbias2).to(bias2.dtype),
    )


def moe_experts_backward_fake(
    dy: torch.Tensor,
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Shapes of the results, without a loop over experts."""
    biases = [
        hidden.new_empty(0, dtype=torch.float32) if bias is None else bias.new_empty(bias.shape)
        for bias in (bias1, bias2)
    ]
    return (
        *(hidden.new_empty(hidden.shape), weights.new_empty(weights.shape)),
        *(w1.new_empty(w1.shape), w2.new_empty(w2.shape)),
        *biases,
    )  # pyright: ignore[reportReturnType]


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    arguments = given.plain_inputs(make, **sizes)
    return {"dy": make.normal(arguments["hidden"].shape, sizes["dtype"]), **arguments}


def _work(
    tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str, **flags: Any
) -> Work:
    """Six products (the first anew); every weight read and its gradient written once."""
    size = getattr(torch, dtype).itemsize
    slots = tokens * top_k
    hit = min(experts, slots)
    flops = {tiling.FORMATS[getattr(torch, dtype)]: 16.0 * slots * model * inter}
    read = (3 * hit * model * inter + 2 * tokens * model) * size
    written = (3 * experts * model * inter + tokens * model) * size
    return Work(flops, read, written, "formula", "formula")


OPERATORS = (
    Operator(
        name="moe_experts_backward",
        summary="gradients of moe_experts",
        call=moe_experts_backward,
        reference=moe_experts_backward_reference,
        gradient=by_reference(moe_experts_backward_reference),
        fake=moe_experts_backward_fake,
        inputs=_inputs,
        work=_work,
        cases=given.CASES,
        thorough=given.THOROUGH,
        shapes=tuple(given.SHAPES[number] for number in (3, 6)),
        spaces=(
            *(products.PRODUCT, COMBINE),
            *(gradients.ACTIVATION, gradients.BIAS_SLOPE, gradients.GRADIENT),
        ),
        tolerance=Tolerance(ulps=6.0, accumulated=2e-5),
    ),
)
