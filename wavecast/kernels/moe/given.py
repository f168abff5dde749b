"""What the experts' operators of every format share: checks, references, test arguments, sizes."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.describe import Make, Signature, Work, checks, sizes, wide_dtype
from wavecast.kernels.moe import activations


def tensors(
    dtype: str, *further: str, hidden: str = "float", inter: str = "inter", packed: int = 1
) -> Signature:
    """The tensors of experts with weights of `dtype`, `packed` in an element, `inter` of which are
    a row of `w2`; and `further` ones."""
    rows, columns = f"{2 * packed} * {inter}", "model" if packed == 1 else f"model / {packed}"
    return Signature(
        f"hidden: [tokens, model] {hidden}",
        "experts: [tokens, top_k] int32",
        "weights: [tokens, top_k] float",
        f"w2: [count, model, {inter}] {dtype}",
        f"w1: [count, {rows}, {columns}] {dtype}",
        f"bias1?: [count, {rows}] float",
        "bias2?: [count, model] float",
        *further,
        returns=("y: [tokens, model] =hidden",),
    )


def check(
    operator: str, tensors: Signature, arguments: Mapping[str, Any]
) -> tuple[dict[str, int], activations.Gate]:
    """The sizes in the tensors of a call with the arguments `arguments`, and its activation. Raises
    ArgumentError for what it does not take."""
    bound = tensors.check(operator, {"bias1": None, "bias2": None, **arguments})
    checks.require(bound["top_k"] > 0, operator, "experts has no choices")
    checks.require(arguments["w2"].numel() > 0 or not bound["model"], operator, "w2 is empty")
    name, alpha, limit = (arguments[option] for option in ("activation", "alpha", "limit"))
    interleaved = arguments.get("interleaved", False)
    return bound, activations.Gate.of(operator, name, alpha, limit, interleaved)


def reference(
    arguments: Mapping[str, Any], dense: Callable[[int], tuple[Tensor, Tensor]],
    rounded: Callable[[Tensor], Tensor],
) -> Tensor:  # fmt: skip
    """The reference of all, with the arguments `arguments`: of every token what each expert makes
    of it, times its weight where it was chosen. `dense(number)` are the weights w1 and w2 of an
    expert, `rounded(x)` activations as they are multiplied."""
    hidden, weights, experts = (arguments[name] for name in ("hidden", "weights", "experts"))
    name, alpha, limit = (arguments[name] for name in ("activation", "alpha", "limit"))
    x, wide = rounded(hidden), wide_dtype(hidden)
    total = torch.zeros(hidden.shape, dtype=wide, device=hidden.device)
    for number in range(arguments["w1"].shape[0]):
        w1, w2 = dense(number)
        before = add_bias(x @ w1.T, arguments.get("bias1"), number)
        gate, up = activations.halves(before, arguments.get("interleaved", False))
        y = rounded(activations.reference(name, gate, up, alpha, limit))
        y = add_bias(y @ w2.T, arguments.get("bias2"), number)
        mask = experts == number
        weight = torch.where(mask, weights.to(wide), 0.0).sum(1, keepdim=True)
        total = total + torch.where(mask.any(1, keepdim=True), y * weight, 0.0)
    return total.to(hidden.dtype).contiguous()


def add_bias(y: Tensor, bias: Tensor | None, number: int) -> Tensor:
    """y and an expert's bias."""
    return y if bias is None else y + bias[number].to(y.dtype)


def like_hidden(hidden: Tensor, *_: Any, **__: Any) -> Tensor:
    """The shape of the result, without a loop over experts."""
    return hidden.new_empty(hidden.shape)


def inputs(
    make: Make, tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str,
    bias: bool = False, routing: str = "even", **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Arguments of experts but for their weights. `routing` is `even` (every expert gets as many
    slots, give or take one) or `odd` (any, and some choices are outside of the experts)."""
    if routing == "even":
        choices = (make.permutation(tokens * top_k, "int32") % experts).reshape(tokens, top_k)
    else:
        choices = make.integers((tokens, top_k), -1, experts, "int32")
    return {
        "hidden": make.normal((tokens, model), dtype),
        "weights": make.uniform(
            (tokens, top_k), "float64" if dtype == "float64" else "float32", 0.1, 1.0
        ),
        "experts": choices,
        "bias1": make.normal((experts, 2 * inter), dtype) if bias else None,
        "bias2": make.normal((experts, model), dtype) if bias else None,
        **options,
    }


def layers(case: Mapping[str, Any]) -> tuple[tuple[str, int, int], ...]:
    """Name, rows and columns of the weights of an expert, by sizes."""
    model, inter = case["model"], case["inter"]
    return ("1", 2 * inter, model), ("2", model, inter)


def plain_inputs(make: Make, **case: Any) -> dict[str, Any]:
    """Arguments of `moe_experts`, with weights of the dtype of `hidden`."""
    arguments = inputs(make, **case)
    for (which, rows, columns), scale in zip(layers(case), (2, 1), strict=True):
        shape = (case["experts"], rows, columns)
        arguments[f"w{which}"] = make.normal(shape, case["dtype"], scale * columns**-0.5)
    return arguments


def work(case: Mapping[str, Any], rate: str, size: float) -> Work:
    """Three products of the dtype `rate`; of every expert that can be hit, weights of `size` bytes
    are read once."""
    tokens, experts, model = case["tokens"], case["experts"], case["model"]
    hidden_bytes = tokens * model * getattr(torch, case["dtype"]).itemsize
    slots = tokens * case["top_k"]
    elements = 3.0 * model * case["inter"]
    read = min(experts, slots) * elements * size + hidden_bytes + 8 * slots
    return Work({rate: 2.0 * slots * elements}, read, hidden_bytes, "formula", "formula")


NAMES = "tokens experts model inter top_k dtype"
SHAPES = sizes(
    f"{NAMES} activation bias interleaved",
    (64, 256, 7168, 2048, 8, "bfloat16"),
    (4096, 256, 7168, 2048, 8, "bfloat16"),
    (16, 128, 4096, 1536, 8, "bfloat16"),
    (4096, 128, 4096, 1536, 8, "bfloat16"),
    (1024, 128, 2880, 2880, 4, "bfloat16", "clamped_swiglu", True, True),
    (64, 8, 4096, 14336, 2, "bfloat16"),
    (4096, 8, 4096, 14336, 2, "bfloat16"),
)
"""The layers operators are judged on."""

CASES = (
    *sizes(f"{NAMES} bias routing", (3, 4, 20, 12, 2, "bfloat16", True, "odd")),
    *sizes(f"{NAMES} routing", (45, 6, 136, 72, 3, "float16", "odd")),
    *sizes(
        f"{NAMES} activation bias interleaved routing",
        (70, 3, 96, 168, 2, "bfloat16", "clamped_swiglu", True, True, "odd"),
    ),
    *sizes(f"{NAMES} activation", (19, 4, 48, 40, 2, "float32", "gelu")),
)
"""Small and ragged sizes of operators with weights of the dtype of `hidden`."""

THOROUGH = (
    *sizes(f"{NAMES} activation interleaved", (40, 2, 64, 64, 1, "bfloat16", "gelu_tanh", True)),
    *sizes(f"{NAMES} bias", (130, 2, 160, 130, 2, "bfloat16", True)),
    *sizes(f"{NAMES} activation routing", (33, 3, 64, 33, 2, "float16", "clamped_swiglu", "odd")),
    *sizes(
        f"{NAMES} activation bias routing",
        (33, 9, 33, 64, 2, "float32", "clamped_swiglu", True, "odd"),
    ),
    *sizes(NAMES, (200, 3, 64, 96, 2, "float16")),
)
"""Further ones."""
