"""Gradients of `moe_experts`: what the forward pass had between its products is recomputed."""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import checks, choice, derivative
from wavecast.kernels.describe import Make, Tolerance, Work, wide_dtype
from wavecast.kernels.gemm.product import rate_of
from wavecast.kernels.moe import activations, given, gradients
from wavecast.kernels.moe.combine import combine
from wavecast.kernels.moe.experts import OPERATOR as EXPERTS
from wavecast.kernels.moe.products import product
from wavecast.kernels.moe.tiling import Order, gate_entries
from wavecast.kernels.strides import contiguous

TENSORS = given.tensors("=hidden", "dy: [tokens, model] float")


def moe_experts_backward(
    dy: Tensor, hidden: Tensor, weights: Tensor, experts: Tensor, w1: Tensor, w2: Tensor,
    bias1: Tensor | None = None, bias2: Tensor | None = None, activation: str = "silu",
    alpha: float = 1.702, limit: float = 7.0, interleaved: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `moe_experts` with respect to `hidden`, `weights`, `w1`, `w2`, `bias1` and
    `bias2`, each in its dtype (of a bias that is not given, an empty tensor of float32).

    `dy` is [tokens, model]. The gradient by the activation is rounded to the dtype of `hidden`;
    sums are in float32 in a fixed order. Raises ArgumentError.
    """
    name = "moe_experts_backward"
    bound, gate = given.check(name, TENSORS, locals())
    if not hidden.numel():
        of = (hidden, weights, w1, w2, bias1, bias2)
        dhidden, dweights, dw1, dw2, dbias1, dbias2 = (
            _like(tensor, hidden).zero_() for tensor in of
        )
        return dhidden, dweights, dw1, dw2, dbias1, dbias2
    hidden, dy = hidden.contiguous(), dy.to(hidden.dtype).contiguous()
    w1, w2, weights = w1.contiguous(), w2.contiguous(), weights.contiguous()
    bias2 = contiguous(bias2)
    order = Order.of(experts, bound["count"], hidden.element_size())
    top_k, wide = order.top_k, torch.float32
    before = product(hidden, order, w1, shared=top_k, bias=contiguous(bias1), dtype=wide)
    grad = product(dy, order, w2, shared=top_k, along=False, dtype=wide)
    dbefore, scaled = (torch.empty_like(tensor, dtype=hidden.dtype) for tensor in (before, grad))
    dweights = torch.empty(order.slots, dtype=torch.float32, device=hidden.device)
    inter, size = bound["inter"], hidden.element_size()
    slots = {"experts": order.experts, "count": order.count, "dweights": dweights}
    choice.run(
        gradients.ACTIVATION,
        {"slots": order.slots, "columns": inter, "bytes": size, **gate_entries(gate)},
        **slots, before=before, grad=grad, weights=weights, dbefore=dbefore, scaled=scaled,
        alpha=alpha, limit=limit, N=inter, WIDE=checks.wide(before),
    )  # fmt: skip
    if bias2 is not None:
        problem = {"slots": order.slots, "columns": dy.shape[1], "bytes": size}
        choice.run(
            gradients.BIAS_GRAD, problem, **slots, dy=dy, bias=bias2, top_k=top_k,
            WIDE=checks.wide(dy, bias2),
        )  # fmt: skip
    each = product(dbefore, order, w1, shared=1, along=False)
    dhidden = combine(each, order, None, hidden.dtype)
    dw1, dbias1 = gradients.weight_gradient(dbefore, hidden, order, w1, bias1, None, 1, top_k)
    dw2, dbias2 = gradients.weight_gradient(dy, scaled, order, w2, bias2, weights, top_k, 1)
    return dhidden, dweights.to(weights.dtype).view(weights.shape), dw1, dw2, dbias1, dbias2


def moe_experts_backward_reference(
    dy, hidden, weights, experts, w1, w2, bias1=None, bias2=None, activation="silu", alpha=1.702,
    limit=7.0, interleaved=False,
):  # fmt: skip
    """Every expert for every token with weight 0 where it was not chosen, in float32 at least; the
    activation's derivatives by formula."""
    wide = wide_dtype(hidden)
    x, dy = hidden.to(wide), dy.to(wide)
    dx, dweights = torch.zeros_like(x), torch.zeros_like(weights, dtype=wide)
    dw1, dw2, dbias1, dbias2 = [], [], [], []
    for expert in range(w1.shape[0]):
        up_by, down_by = w1[expert].to(wide), w2[expert].to(wide)
        before = given.add_bias(x @ up_by.T, bias1, expert)
        gate, up = activations.halves(before, interleaved)
        act = activations.reference(activation, gate, up, alpha, limit)
        grad = dy @ down_by
        along = (grad * act).sum(1, keepdim=True)
        if bias2 is not None:
            along = along + (dy @ bias2[expert].to(wide))[:, None]
        mask = experts == expert
        dweights = dweights + torch.where(mask, along, 0.0)
        weight = torch.where(mask, weights.to(wide), 0.0).sum(1, keepdim=True)
        by_gate, by_up = activations.grad_reference(activation, gate, up, alpha, limit)
        halves = (grad * by_gate * weight, grad * by_up * weight)
        dbefore = torch.stack(halves, -1).flatten(-2) if interleaved else torch.cat(halves, -1)
        dx = dx + dbefore @ up_by
        dw1.append(dbefore.T @ x)
        dw2.append((dy * weight).T @ act)
        dbias1.append(dbefore.sum(0))
        dbias2.append((dy * weight).sum(0))
    none = hidden.new_empty(0, dtype=torch.float32)
    return (
        dx.to(hidden.dtype).contiguous(),
        dweights.to(weights.dtype).contiguous(),
        torch.stack(dw1).to(w1.dtype),
        torch.stack(dw2).to(w2.dtype),
        none if bias1 is None else torch.stack(dbias1).to(bias1.dtype),
        none.clone() if bias2 is None else torch.stack(dbias2).to(bias2.dtype),
    )


def _like(of: Tensor | None, hidden: Tensor) -> Tensor:
    """A tensor for the gradient of an argument, empty where there is none."""
    if of is None:
        return hidden.new_empty(0, dtype=torch.float32)
    return of.new_empty(of.shape)


def _fake(dy, hidden, weights, experts, w1, w2, bias1=None, bias2=None, *_, **__):
    """Shapes of the results, without a loop over experts."""
    return tuple(_like(tensor, hidden) for tensor in (hidden, weights, w1, w2, bias1, bias2))


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    arguments = given.plain_inputs(make, **sizes)
    return {"dy": make.normal(arguments["hidden"].shape, sizes["dtype"]), **arguments}


def _work(
    tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str, **_: Any
) -> Work:
    """Six products (the first recomputed); every weight read and its gradient written once."""
    size = getattr(torch, dtype).itemsize
    slots = tokens * top_k
    hit = min(experts, slots)
    flops = {rate_of(getattr(torch, dtype)): 16.0 * slots * model * inter}
    read = (3 * hit * model * inter + 2 * tokens * model) * size
    written = (3 * experts * model * inter + tokens * model) * size
    return Work(flops, read, written, "formula", "formula")


OPERATOR = derivative.operator(
    EXPERTS,
    moe_experts_backward,
    tensors=TENSORS,
    fake=_fake,
    inputs=_inputs,
    work=_work,
    tolerance=Tolerance(ulps=6.0, accumulated=2e-5),
    shapes=tuple(given.SHAPES[number] for number in (3, 6)),
)
