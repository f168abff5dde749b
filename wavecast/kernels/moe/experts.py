"""Experts of a mixture: two products with a gated activation between, per expert, and the weighted
sum over each token's experts."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.describe import Batch, Operator, Tolerance, derivative, wide_dtype
from wavecast.kernels.gemm.product import rate_of
from wavecast.kernels.moe import given
from wavecast.kernels.moe.combine import combine
from wavecast.kernels.moe.products import product
from wavecast.kernels.moe.tiling import Order
from wavecast.kernels.strides import adjacent

TENSORS = given.tensors("=hidden")


def moe_experts(
    hidden: Tensor, weights: Tensor, experts: Tensor, w1: Tensor, w2: Tensor,
    bias1: Tensor | None = None, bias2: Tensor | None = None, activation: str = "silu",
    alpha: float = 1.702, limit: float = 7.0, interleaved: bool = False,
) -> Tensor:  # fmt: skip
    """What the chosen experts make of every token: Σ weights · (f(hidden · w1ᵀ + bias1) · w2ᵀ +
    bias2).

    `hidden` is [tokens, model] of float32, float16 or bfloat16, as are `w1`
    [experts, 2 · inter, model], whose first half gives gates and whose second half gives ups
    (`interleaved`: they alternate, gate first), and `w2` [experts, model, inter]; `bias1`
    [experts, 2 · inter] and `bias2` [experts, model] are of any of these. `weights` and `experts`
    (int32) are [tokens, top_k], as `moe_route` returns them; choices outside of the experts there
    are (-1, or experts of another GPU) count nothing. `activation` is one of

    - `silu`, `gelu`, `gelu_tanh`: f(gate) · up,
    - `clamped_swiglu`: gate · sigmoid(alpha · gate) · (up + 1) of min(gate, limit) and of up
      between -limit and limit.

    Sums are in float32 in a fixed order; the activation's result and each expert's are rounded to
    the dtype of `hidden`, which is that of the result, [tokens, model]. Raises ArgumentError.
    """
    bound, gate = given.check("moe_experts", TENSORS, locals())
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    order = Order.of(experts, bound["count"], hidden.element_size())
    y = product(adjacent(hidden), order, w1, shared=order.top_k, bias=bias1, gate=gate)
    each = product(y, order, w2, shared=1, bias=bias2)
    return combine(each, order, weights, hidden.dtype)


def moe_experts_reference(
    hidden, weights, experts, w1, w2, bias1=None, bias2=None, activation="silu", alpha=1.702,
    limit=7.0, interleaved=False,
):  # fmt: skip
    """Every expert for every token, in float32 at least, and then those that were chosen."""
    wide = wide_dtype(hidden)
    arguments = dict(locals())
    return given.reference(
        arguments, lambda expert: (w1[expert].to(wide), w2[expert].to(wide)), lambda x: x.to(wide)
    )


OPERATOR = Operator(
    summary="what the chosen experts of a mixture make of every token",
    call=moe_experts,
    tensors=TENSORS,
    fake=given.like_hidden,
    inputs=given.plain_inputs,
    work=lambda **sizes: given.work(
        sizes, rate_of(getattr(torch, sizes["dtype"])), getattr(torch, sizes["dtype"]).itemsize
    ),
    batch=Batch(("hidden", "weights", "experts"), merged=True),
    tolerance=Tolerance(ulps=3.0, accumulated=1e-5),
    gradient=derivative.by_operator(
        moe_experts,
        "moe_experts_backward",
        grads=("dy",),
        saved=tuple(inspect.signature(moe_experts).parameters),
        of=("hidden", "weights", "w1", "w2", "bias1", "bias2"),
    ),
    cases=given.CASES,
    thorough=given.THOROUGH,
    shapes=given.SHAPES,
)


def moe(
    hidden: Tensor, router: Tensor, w1: Tensor, w2: Tensor, top_k: int, *,
    bias1: Tensor | None = None, bias2: Tensor | None = None, activation: str = "silu",
    alpha: float = 1.702, limit: float = 7.0, interleaved: bool = False,
    routing: Mapping[str, Any] | None = None,
) -> Tensor:  # fmt: skip
    """Route every token and add up what its experts make of it, [..., model].

    `hidden` is [..., model] and `router` the weights of the router, [experts, model], whose logits
    are a product in the dtype of `hidden`; `routing` are further arguments of `moe_route`
    (`scoring`, `renormalise`, `bias`, `groups`, `top_groups`, `scale`). All others are those of
    `moe_experts`. Differentiable in `hidden`, `router`, `w1`, `w2`, `bias1` and `bias2`.

    This is a plain function, for a layer is nothing but its parts: `torch.ops.wavecast.moe_route`,
    `moe_experts` and a product, each with its gradient and seen by `torch.compile`. It needs
    `wavecast.ops` imported. Raises what they raise.
    """
    flat = hidden.reshape(-1, hidden.shape[-1])
    logits = flat @ router.to(flat.dtype).T
    weights, experts = torch.ops.wavecast.moe_route(logits, top_k, **(routing or {}))
    output = torch.ops.wavecast.moe_experts(
        flat, weights, experts, w1, w2, bias1, bias2, activation, alpha, limit, interleaved
    )
    return output.reshape(hidden.shape)
