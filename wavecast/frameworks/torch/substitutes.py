"""Operators of the library that replace functions of PyTorch: one table for modules, compiled
graphs and running programs.

A substitute has the signature of the function it replaces and returns the same. `why_not` gives the
reason against a call, from its arguments or their fake tensors in a graph. Under autocast operands
are cast as for the function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from wavecast.frameworks.torch import semi_structured

Reason = str | None
"""Why an operator cannot replace a call; None when it can."""

FLOATS: Final = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Substitute:
    """`call` replaces a function of PyTorch and runs `operator`; `why_not(*args, **named)` is the
    reason against a call."""

    operator: str
    call: Callable[..., Any]
    why_not: Callable[..., Reason]


def floating(*tensors: Any) -> Reason:
    """The reason against tensors (or None) as operands: operators take one floating dtype."""
    operands = [tensor for tensor in tensors if tensor is not None]
    if not all(isinstance(operand, Tensor) for operand in operands):
        return "an argument is not a tensor"
    if any(map(semi_structured.is_semi_structured, operands)):
        return "a semi-structured sparse tensor"
    odd = [operand.dtype for operand in operands if operand.dtype not in FLOATS]
    if odd:
        return f"dtype {str(odd[0]).removeprefix('torch.')}"
    if len({operand.dtype for operand in operands}) > 1:
        return "several dtypes"
    return "a tensor is empty" if any(_is_empty(operand) for operand in operands) else None


def _is_empty(tensor: Tensor) -> bool:
    return any(isinstance(size, int) and size == 0 for size in tensor.shape)


def autocast_operands(*tensors: Any) -> list[Any]:
    """What autocast makes of the operands of a product."""
    return [_cast(tensor, lambda kind: torch.get_autocast_dtype(kind)) for tensor in tensors]


def _autocast_norm(*tensors: Any) -> list[Any]:
    """What autocast makes of the operands of a norm: only on GPUs it casts them."""
    return [
        _cast(tensor, lambda kind: None if kind == "cpu" else torch.float32) for tensor in tensors
    ]


def _cast(value: Any, target: Callable[[str], torch.dtype | None]) -> Any:
    """A tensor as autocast gives it to a function; all else, and float64, stays."""
    if not isinstance(value, Tensor) or value.dtype not in FLOATS:
        return value
    kind = value.device.type
    dtype = target(kind) if torch.is_autocast_enabled(kind) else None
    return value if dtype is None else value.to(dtype)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear`."""
    input, weight, bias = autocast_operands(input, weight, bias)
    return torch.ops.wavecast.matmul(input, weight.t(), bias)


def _no_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Reason:
    wrong = floating(*autocast_operands(input, weight, bias))
    return wrong or (None if weight.dim() == 2 else "weight is not a matrix")


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """`torch.matmul`, where the second operand is one matrix or both have the same batch."""
    input, other = autocast_operands(input, other)
    if other.dim() == 2:
        return torch.ops.wavecast.matmul(input, other)
    return torch.ops.wavecast.batched_matmul(input, other)


def _no_matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Reason:
    if out is not None:
        return "out="
    wrong = floating(*autocast_operands(input, other))
    if wrong:
        return wrong
    if input.dim() >= 2 and other.dim() == 2:
        return None
    same = input.dim() == other.dim() == 3 and input.shape[0] == other.shape[0]
    return None if same else f"operands of {input.dim()} and {other.dim()} dimensions"


def _rms_norm_eps(dtype: torch.dtype) -> float:
    """The `eps` that PyTorch's rms_norm has by default. Its documentation says that of the dtype;
    releases differ, and take that of float32."""
    eps, wide = torch.finfo(dtype).eps, torch.finfo(torch.float32).eps
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        output = F.rms_norm(torch.full((1,), 0.01, dtype=dtype), (1,))
    return eps if float(output) < 0.95 else wide


RMS_NORM_EPS: Final = {dtype: _rms_norm_eps(dtype) for dtype in FLOATS}


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """`torch.nn.functional.rms_norm` over the last dimension."""
    input, weight = _autocast_norm(input, weight)
    small = RMS_NORM_EPS[input.dtype] if eps is None else eps
    return torch.ops.wavecast.rms_norm(input, weight, small)


def _no_rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Reason:
    return floating(input) or floating(weight) or _last_only(normalized_shape)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`torch.nn.functional.layer_norm` over the last dimension."""
    return torch.ops.wavecast.layer_norm(*_autocast_norm(input, weight, bias), eps)


def _no_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Reason:
    return floating(input) or floating(weight, bias) or _last_only(normalized_shape)


def _last_only(shape: Sequence[int]) -> Reason:
    return None if len(shape) == 1 else "more dimensions than the last"


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`torch.nn.functional.scaled_dot_product_attention` of [batch, heads, tokens, width]."""
    q, k, v = (tensor.transpose(1, 2) for tensor in autocast_operands(query, key, value))
    mask = None if attn_mask is None else mask_operand(attn_mask, q.shape[1], k.shape[1])
    out, _ = torch.ops.wavecast.attention(q, k, v, causal=is_causal, scale=scale, mask=mask)
    return out.transpose(1, 2)


def mask_operand(mask: Tensor, queries: int, keys: int) -> Tensor:
    """A mask [batch or 1, heads or 1, queries, keys] of one that broadcasts to that."""
    return mask[(None,) * (4 - mask.dim())].expand(-1, -1, queries, keys)


def _no_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Reason:
    wrong = floating(*autocast_operands(query, key, value))
    if wrong:
        return wrong
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        return "a mask of numbers"
    if attn_mask is not None and is_causal:
        return "causal, and a mask"
    if dropout_p:
        return "dropout"
    if query.dim() != 4:
        return f"query of {query.dim()} dimensions"
    if is_causal and query.shape[2] != key.shape[2]:
        return "causal, with other numbers of queries and keys"  # torch aligns to the top left
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared and not enable_gqa:
        return "heads that broadcast"
    widths = (query.shape[3], value.shape[3])
    return None if max(widths) <= 256 else f"heads of {max(widths)}"


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """`torch.nn.functional.conv1d`, `conv2d`, `conv3d`."""
    spatial = weight.dim() - 2
    input, weight, bias = autocast_operands(input, weight, bias)
    return torch.ops.wavecast.convolution(
        input,
        weight,
        bias,
        _each(stride, spatial),
        _each(padding, spatial),
        _each(dilation, spatial),
        groups,
    )


def _no_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Reason:
    if isinstance(padding, str):
        return f"padding={padding!r}"
    wrong = floating(*autocast_operands(input, weight, bias))
    return wrong or (None if input.dim() == weight.dim() else "input without a batch")


def _each(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.silu`."""
    return torch.ops.wavecast.silu(input)


def _no_silu(input: Tensor, inplace: bool = False) -> Reason:
    return floating(input) or ("in place" if inplace else None)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """`torch.nn.functional.gelu`."""
    return torch.ops.wavecast.gelu(input, approximate)


def _no_gelu(input: Tensor, *, approximate: str = "none") -> Reason:
    return floating(input)


SUBSTITUTES: Final[Mapping[Any, Substitute]] = {
    F.linear: Substitute("matmul", linear, _no_linear),
    **{
        function: Substitute("matmul", matmul, _no_matmul)
        for function in (
            *(torch.matmul, torch.mm, operator.matmul),
            *(Tensor.matmul, Tensor.mm, Tensor.__matmul__),
        )
    },
    torch.bmm: Substitute("batched_matmul", matmul, _no_matmul),
    Tensor.bmm: Substitute("batched_matmul", matmul, _no_matmul),
    F.rms_norm: Substitute("rms_norm", rms_norm, _no_rms_norm),
    torch.rms_norm: Substitute("rms_norm", rms_norm, _no_rms_norm),
    F.layer_norm: Substitute("layer_norm", layer_norm, _no_layer_norm),
    F.scaled_dot_product_attention: Substitute("attention", attention, _no_attention),
    F.conv1d: Substitute("convolution", convolution, _no_convolution),
    F.conv2d: Substitute("convolution", convolution, _no_convolution),
    F.conv3d: Substitute("convolution", convolution, _no_convolution),
    F.silu: Substitute("silu", silu, _no_silu),
    F.gelu: Substitute("gelu", gelu, _no_gelu),
}
"""Function of PyTorch -> its substitute."""

SPARSE_SUBSTITUTES: Final[Mapping[Any, Substitute]] = {
    F.linear: Substitute("matmul_sparse24", semi_structured.linear, semi_structured.why_not_linear),
}
"""Function of PyTorch -> its substitute where an argument is a semi-structured sparse weight."""


def substitute_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Substitute:
    """The substitute of a function in the table for these arguments."""
    operands = (*args, *kwargs.values())
    if function in SPARSE_SUBSTITUTES and any(map(semi_structured.is_semi_structured, operands)):
        return SPARSE_SUBSTITUTES[function]
    return SUBSTITUTES[function]


def why_not(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Reason:
    """The reason against a call of a function in the table."""
    try:
        return substitute_of(function, args, kwargs).why_not(*args, **kwargs)
    except TypeError:
        return "arguments of another form"


__all__ = [
    "SPARSE_SUBSTITUTES",
    "SUBSTITUTES",
    "Reason",
    "Substitute",
    "autocast_operands",
    "floating",
    "mask_operand",
    "substitute_of",
    "why_not",
]
