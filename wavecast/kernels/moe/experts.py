"""Experts of a mixture: two products with a gated activation between, per expert, and the weighted
sum over each token's experts."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels.moe import activations, given, products, tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.combine import COMBINE, combine
from wavecast.kernels.moe.steps import Order, product
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.strides import adjacent, contiguous
from wavecast.model.bounds import Work


def moe_experts(
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
) -> torch.Tensor:
    """What the chosen experts make of every token: Σ weights · (f(hidden · w1ᵀ + bias1) · w2ᵀ +
    bias2).

    `hidden` is [tokens, model] of float32, float16 or bfloat16, as are `w1`
    [experts, 2 · inter, model], its first half giving gates and its second ups (`interleaved`: in
    turns, gate first), and `w2` [experts, model, inter]; `bias1` [experts, 2 · inter] and `bias2`
    [experts, model] of any of these. `weights` and `experts` (int32) are [tokens, top_k], as
    `moe_route` returns them; choices outside of the experts there are (-1, or experts of another
    GPU) count nothing. `activation` is one of

    - `silu`, `gelu`, `gelu_tanh`: f(gate) · up,
    - `clamped_swiglu`: gate · sigmoid(alpha · gate) · (up + 1) of min(gate, limit) and of up
      between -limit and limit.

    Sums are in float32 in a fixed order; the activation's result and each expert's are rounded to
    the dtype of `hidden`, which is that of the result, [tokens, model]. Raises ArgumentError.
    """
    name = "moe_experts"
    count, _, _ = given.check(
        name, hidden, weights, experts, w1, w2, hidden.dtype, bias1=bias1, bias2=bias2
    )
    gate = Gate.of(name, activation, alpha, limit, interleaved)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    hidden = adjacent(hidden)
    w1, w2 = w1.contiguous(), w2.contiguous()
    bias1 = contiguous(bias1)
    bias2 = contiguous(bias2)
    order = Order.of(experts, count, hidden.element_size())
    y = product(hidden, order, w1, shared=order.top_k, bias=bias1, gate=gate)
    each = product(y, order, w2, shared=1, bias=bias2)
    return combine(each, order, weights.contiguous(), hidden.dtype)


def moe_experts_reference(
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
) -> torch.Tensor:
    """Every expert for every token, in float32 at least, and then those that were chosen."""
    x = hidden.to(torch.promote_types(hidden.dtype, torch.float32))

    def expert(number: int) -> torch.Tensor:
        before = given.biased(x @ w1[number].to(x.dtype).T, bias1, number)
        gate, up = activations.halves(before, interleaved)
        y = activations.reference(activation, gate, up, alpha, limit)
        return given.biased(y @ w2[number].to(x.dtype).T, bias2, number)

    return given.mixture(hidden, weights, experts, w1.shape[0], expert)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:7])
    ctx.options = inputs[7:]


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    bias1, bias2 = ctx.saved_tensors[5:7]
    found = torch.ops.wavecast.moe_experts_backward(dy, *ctx.saved_tensors, *ctx.options)
    dhidden, dweights, dw1, dw2, dbias1, dbias2 = found
    biases = (None if bias1 is None else dbias1, None if bias2 is None else dbias2)
    return dhidden, dweights, None, dw1, dw2, *biases, None, None, None, None


def _work(**sizes: Any) -> Work:
    dtype = getattr(torch, sizes["dtype"])
    return given.work(sizes, tiling.FORMATS[dtype], dtype.itemsize)


OPERATORS = (
    Operator(
        name="moe_experts",
        summary="what the chosen experts of a mixture make of every token",
        call=moe_experts,
        reference=moe_experts_reference,
        fake=given.like_hidden,
        inputs=given.plain_inputs,
        work=_work,
        batch=Batch(("hidden", "weights", "experts"), merged=True),
        cases=given.CASES,
        thorough=given.THOROUGH,
        shapes=given.SHAPES,
        spaces=(products.PRODUCT, COMBINE),
        tolerance=Tolerance(ulps=3.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
)
