"""Experts with weights of four bits and activations of 16."""

from __future__ import annotations

from typing import Any, Final

import torch

from wavecast.kernels import checks
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe import activations, given, int4_products
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.combine import COMBINE, combine
from wavecast.kernels.moe.int4_products import product_int4
from wavecast.kernels.moe.steps import Order
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.strides import adjacent
from wavecast.model.bounds import Work

_ACTIVATIONS: Final = (torch.bfloat16, torch.float16)
_GROUPS: Final = (32, 64, 128)


def moe_experts_w4a16(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    zero1: torch.Tensor | None = None,
    zero2: torch.Tensor | None = None,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    group: int = 128,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
) -> torch.Tensor:
    """`moe_experts` with weights of four bits, packed as `matmul_w4a16` takes them:
    `w = (code - zero) * scale`.

    `hidden` is of bfloat16 or float16. `w1` [experts, 2 · inter, model / 2] and `w2`
    [experts, model, inter / 2] of uint8 have two codes from 0 to 15 per byte, that of the even
    element in the low four bits. `scale1` [experts, model / group, 2 · inter] and `scale2`
    [experts, inter / group, model] of bfloat16, float16 or float32, and `zero1` and `zero2` like
    them of uint8 from 0 to 15 (None: 8 everywhere), belong to `group` elements along the last
    dimension of the weights: 32, 64 or 128, of which model and inter are multiples. Everything else
    is as in `moe_experts`. Raises ArgumentError.
    """
    name = "moe_experts_w4a16"
    count, model, inter = given.check(
        name, hidden, weights, experts, w1, w2, torch.uint8,
        floats=_ACTIVATIONS, packed=2,
        bias1=bias1, bias2=bias2, scale1=scale1, scale2=scale2, zero1=zero1, zero2=zero2,
    )  # fmt: skip
    checks.require(group in _GROUPS, name, f"groups of {group}; it takes 32, 64 and 128")
    for which, scale, zero, deep, rows in (
        ("1", scale1, zero1, model, 2 * inter),
        ("2", scale2, zero2, inter, model),
    ):
        checks.require(
            deep % group == 0, name, f"w{which} has {deep} columns, no multiple of {group}"
        )
        checks.dtype_in(name, f"scale{which}", scale, checks.FLOATS)
        checks.shape_is(name, f"scale{which}", scale, (count, deep // group, rows))
        if zero is not None:
            checks.dtype_in(name, f"zero{which}", zero, (torch.uint8,))
            checks.shape_is(name, f"zero{which}", zero, scale.shape)
    gate = Gate.of(name, activation, alpha, limit, interleaved)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    x = adjacent(hidden)
    order = Order.of(experts, count, 0.5)
    y = product_int4(
        x, order, w1, scale1, zero1, shared=order.top_k, group=group, bias=bias1, gate=gate
    )
    each = product_int4(y, order, w2, scale2, zero2, shared=1, group=group, bias=bias2)
    return combine(each, order, weights.contiguous(), hidden.dtype)


def moe_experts_w4a16_reference(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    zero1: torch.Tensor | None = None,
    zero2: torch.Tensor | None = None,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    group: int = 128,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
) -> torch.Tensor:
    """Weights widened, in float32 at least, of every expert for every token."""
    x = hidden.to(torch.promote_types(hidden.dtype, torch.float32))

    def wide(
        w: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None, number: int
    ) -> torch.Tensor:
        code = torch.stack((w[number] & 15, w[number] >> 4), -1).flatten(1).to(x.dtype)
        if zero is None:
            shift: Any = 8.0
        else:
            shift = zero[number].to(x.dtype).T.repeat_interleave(group, 1)
        return (code - shift) * scale[number].to(x.dtype).T.repeat_interleave(group, 1)

    def expert(number: int) -> torch.Tensor:
        before = given.biased(x @ wide(w1, scale1, zero1, number).T, bias1, number)
        gate, up = activations.halves(before, interleaved)
        y = activations.reference(activation, gate, up, alpha, limit)
        return given.biased(y @ wide(w2, scale2, zero2, number).T, bias2, number)

    return given.mixture(hidden, weights, experts, w1.shape[0], expert)


def _inputs(make: Make, group: int = 128, zeros: bool = True, **sizes: Any) -> dict[str, Any]:
    experts, model, inter = (sizes[name] for name in ("experts", "model", "inter"))
    found = {**given.inputs(make, **sizes), "group": group}
    for which, rows, deep in (("1", 2 * inter, model), ("2", model, inter)):
        shape = (experts, deep // group, rows)
        small = deep**-0.5
        found[f"w{which}"] = make.integers((experts, rows, deep // 2), 0, 256, "uint8")
        found[f"scale{which}"] = make.uniform(shape, sizes["dtype"], 0.1 * small, 0.3 * small)
        found[f"zero{which}"] = make.integers(shape, 0, 16, "uint8") if zeros else None
    return found


def _work(group: int = 128, zeros: bool = True, **sizes: Any) -> Work:
    held = 0.5 + (getattr(torch, sizes["dtype"]).itemsize + zeros) / group
    return given.work(sizes, "bf16" if sizes["dtype"] == "bfloat16" else "fp16", held)


_SHAPES = tuple({**one, "group": 64} if one["inter"] % 128 else dict(one) for one in given.SHAPES)

OPERATORS = (
    Operator(
        name="moe_experts_w4a16",
        summary="moe_experts with weights of four bits",
        call=moe_experts_w4a16,
        reference=moe_experts_w4a16_reference,
        fake=given.like_hidden,
        inputs=_inputs,
        work=_work,
        cases=(
            {"tokens": 3, "experts": 4, "model": 64, "inter": 32, "top_k": 2, "group": 32}
            | {"dtype": "bfloat16", "bias": True, "routing": "odd"},
            {"tokens": 45, "experts": 3, "model": 128, "inter": 256, "top_k": 2}
            | {"dtype": "float16", "zeros": False, "routing": "odd"},
            {"tokens": 70, "experts": 3, "model": 192, "inter": 64, "top_k": 2, "group": 64}
            | {"dtype": "bfloat16", "activation": "clamped_swiglu", "bias": True}
            | {"interleaved": True, "routing": "odd"},
        ),
        thorough=(
            {"tokens": 130, "experts": 2, "model": 160, "inter": 96, "top_k": 2, "group": 32}
            | {"dtype": "float16", "activation": "gelu", "interleaved": True},
            {"tokens": 200, "experts": 2, "model": 128, "inter": 128, "top_k": 2}
            | {"dtype": "bfloat16", "activation": "gelu_tanh"},
        ),
        shapes=_SHAPES,
        spaces=(int4_products.PRODUCT, COMBINE),
        tolerance=Tolerance(ulps=3.0, accumulated=1e-5),
    ),
)
