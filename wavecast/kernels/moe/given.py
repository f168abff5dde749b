"""What the experts' operators of every format take: checks, references, test arguments, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.inputs import Make
from wavecast.model.bounds import Work


def check(
    operator: str,
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    kind: torch.dtype,
    *,
    floats: tuple[torch.dtype, ...] = checks.FLOATS,
    packed: int = 1,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    **others: torch.Tensor | None,
) -> tuple[int, int, int]:
    """Refuse tensors that the experts do not take, with weights of `kind`, `packed` in an element,
    and `hidden` one of `floats`; `others` are on the same device. Returns the numbers of experts,
    of channels of `hidden` (model), and of those between the products (inter).

    Raises ArgumentError.
    """
    checks.dtype_in(operator, "hidden", hidden, floats)
    checks.dtype_in(operator, "weights", weights, checks.FLOATS)
    checks.dtype_in(operator, "experts", experts, (torch.int32,))
    checks.shape_is(operator, "hidden", hidden, (-1, -1))
    tokens, model = hidden.shape
    checks.shape_is(operator, "experts", experts, (tokens, -1))
    checks.require(experts.shape[1] > 0, operator, "experts has no choices")
    checks.shape_is(operator, "weights", weights, experts.shape)
    checks.shape_is(operator, "w2", w2, (-1, model, -1))
    count, inter = w2.shape[0], w2.shape[2] * packed
    checks.require(count > 0 and inter > 0, operator, "w2 is empty")
    checks.require(model % packed == 0, operator, f"hidden has {model} columns, an odd number")
    checks.shape_is(operator, "w1", w1, (count, 2 * inter, model // packed))
    for name, tensor in (("w1", w1), ("w2", w2)):
        checks.dtype_in(operator, name, tensor, (kind,))
    for name, bias, columns in (("bias1", bias1, 2 * inter), ("bias2", bias2, model)):
        if bias is not None:
            checks.dtype_in(operator, name, bias, checks.FLOATS)
            checks.shape_is(operator, name, bias, (count, columns))
    checks.same_device(
        operator, hidden=hidden, weights=weights, experts=experts, w1=w1, w2=w2, bias1=bias1,
        bias2=bias2, **others,
    )  # fmt: skip
    return count, model, inter


def mixture(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    count: int,
    expert: Callable[[int], torch.Tensor],
) -> torch.Tensor:
    """The reference of all: of every token what each expert makes of it (`expert(number)`,
    [tokens, model]), times its weight where it was chosen."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    y = torch.zeros(hidden.shape, dtype=kind, device=hidden.device)
    for number in range(count):
        chosen = experts == number
        share = torch.where(chosen, weights.to(kind), 0.0).sum(1, keepdim=True)
        y = y + torch.where(chosen.any(1, keepdim=True), expert(number) * share, 0.0)
    return y.to(hidden.dtype).contiguous()


def biased(y: torch.Tensor, bias: torch.Tensor | None, number: int) -> torch.Tensor:
    """y and an expert's bias."""
    return y if bias is None else y + bias[number].to(y.dtype)


def like_hidden(hidden: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """The shape of the result, without a loop over experts."""
    return hidden.new_empty(hidden.shape)


def inputs(
    make: Make, tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str,
    activation: str = "silu", bias: bool = False, interleaved: bool = False, routing: str = "even",
) -> dict[str, Any]:  # fmt: skip
    """Arguments of experts but for their weights. `routing` is `even` (every expert gets as many
    slots, give or take one) or `odd` (any, and some choices are outside of the experts)."""
    if routing == "even":
        chosen = (make.permutation(tokens * top_k, "int32") % experts).reshape(tokens, top_k)
    else:
        chosen = make.integers((tokens, top_k), -1, experts, "int32")
    small = torch.float64 if dtype == "float64" else torch.float32
    return {
        "hidden": make.normal((tokens, model), dtype),
        "weights": make.uniform((tokens, top_k), small, 0.1, 1.0),
        "experts": chosen,
        "bias1": make.normal((experts, 2 * inter), dtype) if bias else None,
        "bias2": make.normal((experts, model), dtype) if bias else None,
        "activation": activation,
        "interleaved": interleaved,
    }


def plain_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    """Arguments of `moe_experts`, with weights of the dtype of `hidden`."""
    experts, model, inter, dtype = (sizes[n] for n in ("experts", "model", "inter", "dtype"))
    return {
        **inputs(make, **sizes),
        "w1": make.normal((experts, 2 * inter, model), dtype, 2 * model**-0.5),
        "w2": make.normal((experts, model, inter), dtype, inter**-0.5),
    }


def work(sizes: Mapping[str, Any], kind: str, size: float) -> Work:
    """Three products in the format `kind`; of every expert that can be hit, weights of `size` bytes
    are read once."""
    tokens, experts, model = sizes["tokens"], sizes["experts"], sizes["model"]
    moved = tokens * model * getattr(torch, sizes["dtype"]).itemsize
    slots = tokens * sizes["top_k"]
    elements = 3.0 * model * sizes["inter"]
    read = min(experts, slots) * elements * size + moved + 8 * slots
    return Work({kind: 2.0 * slots * elements}, read, moved, "formula", "formula")


def sizes_of(experts: int, model: int, inter: int, top_k: int, tokens: int, **flags: Any) -> Any:
    """The sizes of one judged layer."""
    sizes = {"tokens": tokens, "experts": experts, "model": model, "inter": inter}
    return {**sizes, "top_k": top_k, "dtype": "bfloat16", **flags}


_GPT_OSS = {"activation": "clamped_swiglu", "bias": True, "interleaved": True}
SHAPES = (
    sizes_of(256, 7168, 2048, 8, 64),
    sizes_of(256, 7168, 2048, 8, 4096),
    sizes_of(128, 4096, 1536, 8, 16),
    sizes_of(128, 4096, 1536, 8, 4096),
    sizes_of(128, 2880, 2880, 4, 1024, **_GPT_OSS),
    sizes_of(8, 4096, 14336, 2, 64),
    sizes_of(8, 4096, 14336, 2, 4096),
)
"""The layers operators are judged on."""

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
"""Small and ragged sizes of operators with weights of the dtype of `hidden`."""

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
"""Further ones."""

__all__ = [
    "CASES",
    "SHAPES",
    "THOROUGH",
    "biased",
    "check",
    "inputs",
    "like_hidden",
    "mixture",
    "plain_inputs",
    "work",
]
