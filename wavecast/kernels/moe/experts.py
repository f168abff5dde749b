"""Experts of a mixture: two products with a gated activation between, per expert, and the weighted
sum over each token's experts."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe import activations, products, steps
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.kernels.tiles import xcds
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
    check("moe_experts", hidden, weights, experts, w1, w2, bias1, bias2)
    kind = activations.number("moe_experts", activation)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    if hidden.stride(1) != 1:
        hidden = hidden.contiguous()
    w1, w2 = w1.contiguous(), w2.contiguous()
    order = steps.Order.of(experts, w1.shape[0], hidden.dtype)
    inter, model = w2.shape[2], w2.shape[1]
    y = torch.empty((order.slots, inter), dtype=hidden.dtype, device=hidden.device)
    flags = {"kind": kind, "interleaved": interleaved, "bias": bias1 is not None}
    launch(
        products.moe_up_kernel,
        order.grid(inter),
        (
            *(hidden, order.rows, order.owners, order.used, w1),
            *(w1 if bias1 is None else bias1.contiguous(), y),
            *(order.slots, order.top_k, alpha, limit, hidden.stride(0)),
        ),
        products.UP,
        products.problem(order.slots, order.count, order.block, inter, model, y.dtype, **flags),
        N=inter,
        K=model,
        KIND=kind,
        INTERLEAVED=interleaved,
        BIAS=bias1 is not None,
        XCDS=xcds(gpu.launching()),
        WIDE=checks.wide(hidden, y),
    )
    bias2 = None if bias2 is None else bias2.contiguous()
    each = steps.product(y, order, w2, bias2, shared=1, along=True)
    return steps.combine(each, order, weights.contiguous(), hidden.dtype)


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
    kind = torch.promote_types(hidden.dtype, torch.float32)
    x = hidden.to(kind)
    y = torch.zeros_like(x)
    for expert in range(w1.shape[0]):
        before = x @ w1[expert].to(kind).T
        if bias1 is not None:
            before = before + bias1[expert].to(kind)
        gate, up = halves(before, interleaved)
        one = activations.reference(activation, gate, up, alpha, limit) @ w2[expert].to(kind).T
        if bias2 is not None:
            one = one + bias2[expert].to(kind)
        chosen = experts == expert
        share = torch.where(chosen, weights.to(kind), 0.0).sum(1, keepdim=True)
        y = y + torch.where(chosen.any(1, keepdim=True), one * share, 0.0)
    return y.to(hidden.dtype).contiguous()


def moe_experts_fake(
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
    """The shape of the result, without a loop over experts."""
    return hidden.new_empty(hidden.shape)


def halves(both: torch.Tensor, interleaved: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Gates and ups of [..., 2 · inter]."""
    if interleaved:
        return both[..., 0::2], both[..., 1::2]
    gate, up = both.chunk(2, dim=-1)
    return gate, up


def check(
    operator: str,
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    bias1: torch.Tensor | None,
    bias2: torch.Tensor | None,
) -> None:
    """Refuse what the experts do not take. Raises ArgumentError."""
    checks.dtype_in(operator, "hidden", hidden, checks.FLOATS)
    checks.dtype_in(operator, "weights", weights, checks.FLOATS)
    checks.dtype_in(operator, "experts", experts, (torch.int32,))
    check_shapes(operator, hidden, weights, experts, w1, w2, bias1, bias2)
    for name, tensor in (("w1", w1), ("w2", w2)):
        checks.dtype_in(operator, name, tensor, (hidden.dtype,))


def check_shapes(
    operator: str,
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    bias1: torch.Tensor | None,
    bias2: torch.Tensor | None,
) -> None:
    """Shapes and devices of the experts' arguments. Raises ArgumentError."""
    checks.shape_is(operator, "hidden", hidden, (-1, -1))
    tokens, model = hidden.shape
    checks.shape_is(operator, "experts", experts, (tokens, -1))
    checks.require(experts.shape[1] > 0, operator, "experts has no choices")
    checks.shape_is(operator, "weights", weights, experts.shape)
    checks.shape_is(operator, "w2", w2, (-1, model, -1))
    count, _, inter = w2.shape
    checks.require(count > 0 and inter > 0, operator, "w2 is empty")
    checks.shape_is(operator, "w1", w1, (count, 2 * inter, model))
    for name, bias, columns in (("bias1", bias1, 2 * inter), ("bias2", bias2, model)):
        if bias is not None:
            checks.dtype_in(operator, name, bias, checks.FLOATS)
            checks.shape_is(operator, name, bias, (count, columns))
    checks.same_device(
        operator, hidden=hidden, weights=weights, experts=experts, w1=w1, w2=w2, bias1=bias1,
        bias2=bias2,
    )  # fmt: skip


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:7])
    ctx.options = inputs[7:]


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    bias1, bias2 = ctx.saved_tensors[5:7]
    found = torch.ops.wavecast.moe_experts_backward(dy, *ctx.saved_tensors, *ctx.options)
    dhidden, dweights, dw1, dw2, dbias1, dbias2 = found
    biases = (None if bias1 is None else dbias1, None if bias2 is None else dbias2)
    return dhidden, dweights, None, dw1, dw2, *biases, None, None, None, None


def inputs(
    make: Make, tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str,
    activation: str = "silu", bias: bool = False, interleaved: bool = False, routing: str = "even",
) -> dict[str, Any]:  # fmt: skip
    """Arguments of `moe_experts`; `routing` is `even` (every expert gets as many slots, give or
    take one) or `odd` (any, and some choices are outside of the experts)."""
    if routing == "even":
        chosen = (make.permutation(tokens * top_k, "int32") % experts).reshape(tokens, top_k)
    else:
        chosen = make.integers((tokens, top_k), -1, experts, "int32")
    small = torch.float64 if dtype == "float64" else torch.float32
    return {
        "hidden": make.normal((tokens, model), dtype),
        "weights": make.uniform((tokens, top_k), small, 0.1, 1.0),
        "experts": chosen,
        "w1": make.normal((experts, 2 * inter, model), dtype, 2 * model**-0.5),
        "w2": make.normal((experts, model, inter), dtype, inter**-0.5),
        "bias1": make.normal((experts, 2 * inter), dtype) if bias else None,
        "bias2": make.normal((experts, model), dtype) if bias else None,
        "activation": activation,
        "interleaved": interleaved,
    }


def _work(
    tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str, **flags: Any
) -> Work:
    size = getattr(torch, dtype).itemsize
    slots = tokens * top_k
    hit = min(experts, slots)
    flops = {products.FORMATS[getattr(torch, dtype)]: 6.0 * slots * model * inter}
    read = (3 * hit * model * inter + tokens * model) * size + 8 * slots
    return Work(flops, read, tokens * model * size, "formula", "formula")


CASES = (
    {"tokens": 3, "experts": 4, "model": 20, "inter": 12, "top_k": 2, "dtype": "bfloat16"}
    | {"bias": True, "routing": "odd"},
    {"tokens": 45, "experts": 6, "model": 136, "inter": 72, "top_k": 3, "dtype": "float16"}
    | {"routing": "odd"},
    {"tokens": 70, "experts": 3, "model": 96, "inter": 168, "top_k": 2, "dtype": "bfloat16"}
    | {"activation": "clamped_swiglu", "bias": True, "interleaved": True, "routing": "odd"},
    {"tokens": 19, "experts": 4, "model": 48, "inter": 40, "top_k": 2, "dtype": "float32"}
    | {"activation": "gelu"},
)
THOROUGH = (
    {"tokens": 40, "experts": 2, "model": 64, "inter": 64, "top_k": 1, "dtype": "bfloat16"}
    | {"activation": "gelu_tanh", "interleaved": True},
    {"tokens": 130, "experts": 2, "model": 160, "inter": 130, "top_k": 2, "dtype": "bfloat16"}
    | {"bias": True},
    {"tokens": 33, "experts": 3, "model": 64, "inter": 33, "top_k": 2, "dtype": "float16"}
    | {"activation": "clamped_swiglu", "routing": "odd"},
    {"tokens": 33, "experts": 9, "model": 33, "inter": 64, "top_k": 2, "dtype": "float32"}
    | {"activation": "clamped_swiglu", "bias": True, "routing": "odd"},
    {"tokens": 200, "experts": 3, "model": 64, "inter": 96, "top_k": 2, "dtype": "float16"},
)


def layer(experts: int, model: int, inter: int, top_k: int, tokens: int, **flags: Any) -> Any:
    """The sizes of one judged layer."""
    sizes = {"tokens": tokens, "experts": experts, "model": model, "inter": inter}
    return {**sizes, "top_k": top_k, "dtype": "bfloat16", **flags}


SHAPES = (
    layer(256, 7168, 2048, 8, 64),
    layer(256, 7168, 2048, 8, 4096),
    layer(128, 4096, 1536, 8, 16),
    layer(128, 4096, 1536, 8, 4096),
    layer(128, 2880, 2880, 4, 1024, activation="clamped_swiglu", bias=True, interleaved=True),
    layer(8, 4096, 14336, 2, 64),
    layer(8, 4096, 14336, 2, 4096),
)

OPERATORS = (
    Operator(
        name="moe_experts",
        summary="what the chosen experts of a mixture make of every token",
        call=moe_experts,
        reference=moe_experts_reference,
        fake=moe_experts_fake,
        inputs=inputs,
        work=_work,
        cases=CASES,
        thorough=THOROUGH,
        shapes=SHAPES,
        spaces=(products.UP, products.PRODUCT, products.COMBINE),
        tolerance=Tolerance(ulps=3.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
)
