"""Matrix products, convolutions and attention of PyTorch as operations of `model.ops`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from wavecast.perfmodel.ops.attention import Attention
from wavecast.perfmodel.ops.convolution import Convolution
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.reduction import Reduction
from wavecast.perfmodel.ops.softmax import Softmax
from wavecast.systems.sources.calls import OperatorCall, TensorSizes
from wavecast.systems.sources.part import KernelPart, SameBytes

Kernels = Callable[[OperatorCall], Iterator[KernelPart]]


def tensor(call: OperatorCall, *names: str) -> TensorSizes:
    """The argument of one of these names. Raises LookupError where the call has none."""
    for name in names:
        argument = call.arguments.get(name)
        if isinstance(argument, TensorSizes):
            return argument
    raise LookupError(f"{call.name} has no tensor {' or '.join(names)}")


LIBRARY: Final = "blas"
"""What PyTorch multiplies with."""


def _product(
    a: TensorSizes, b: TensorSizes, m: int, n: int, k: int, *, batch: int = 1, **options: Any
) -> KernelPart:
    """The product of `a`, whose rows are along k, and `b`, whose columns are."""
    along_k = a.strides[-1] == 1, b.strides[0 if len(b.shape) == 1 else -2] == 1
    transposed = ("T" if along_k[0] else "N") + ("N" if along_k[1] else "T")
    product = Gemm(
        m=m,
        n=n,
        k=k,
        batch=batch,
        dtype=a.dtype,
        transposed=transposed,
        library=LIBRARY,
        **options,
    )
    return KernelPart("product", product)


def _mm(call: OperatorCall) -> Iterator[KernelPart]:
    bias = call.name == "aten.addmm"
    a, b = tensor(call, "mat1" if bias else "self"), tensor(call, "mat2")
    yield _product(a, b, a.shape[0], b.shape[1], a.shape[1], bias=bias)


def _bmm(call: OperatorCall) -> Iterator[KernelPart]:
    has_bias = call.name == "aten.baddbmm"
    a, b = tensor(call, "batch1" if has_bias else "self"), tensor(call, "batch2", "mat2")
    batch, m, k = a.shape
    yield _product(a, b, m, b.shape[2], k, batch=batch, bias=has_bias)


def _linear(call: OperatorCall) -> Iterator[KernelPart]:
    a, weight = tensor(call, "input"), tensor(call, "weight")
    bias = isinstance(call.arguments.get("bias"), TensorSizes)
    rows = math.prod(a.shape[:-1])
    yield _product(a, _transposed(weight), rows, weight.shape[0], a.shape[-1], bias=bias)


def _transposed(matrix: TensorSizes) -> TensorSizes:
    """A matrix with its dimensions exchanged, in the same memory."""
    return replace(matrix, shape=matrix.shape[::-1], strides=matrix.strides[::-1])


def _vector(call: OperatorCall) -> Iterator[KernelPart]:
    matrix = tensor(call, "mat" if call.name == "aten.addmv" else "self")
    if len(matrix.shape) == 1:
        yield KernelPart("dot", Reduction(1, matrix.elements, matrix.dtype))
        return
    vector = tensor(call, "vec")
    yield _product(matrix, vector, matrix.shape[0], 1, matrix.shape[1])


def _matmul(call: OperatorCall) -> Iterator[KernelPart]:
    """`matmul` that an exported program has kept whole."""
    a, b = tensor(call, "self"), tensor(call, "other")
    if len(b.shape) == 2 and len(a.shape) >= 2:
        yield _product(a, b, math.prod(a.shape[:-1]), b.shape[1], a.shape[-1])
    elif len(a.shape) >= 2 and len(b.shape) >= 2:
        batch = math.prod(call.outputs[0].shape[:-2])
        yield _product(a, b, a.shape[-2], b.shape[-1], a.shape[-1], batch=batch)
    else:
        raise LookupError("a product with a vector")


def _scaled_mm(call: OperatorCall) -> Iterator[KernelPart]:
    a, b = tensor(call, "self"), tensor(call, "mat2")
    bias = isinstance(call.arguments.get("bias"), TensorSizes)
    scale = call.arguments.get("scale_a")
    by_token = isinstance(scale, TensorSizes) and scale.elements > 1
    yield KernelPart(
        "product",
        Gemm(
            m=a.shape[0],
            n=b.shape[1],
            k=a.shape[1],
            dtype="fp8",
            bias=bias,
            scaling="token" if by_token else "",
        ),
    )


def _grouped_mm(call: OperatorCall) -> Iterator[KernelPart]:
    """Products of groups of rows, each with its own matrix; groups are taken to be equal."""
    a, b = tensor(call, "self"), tensor(call, "mat2")
    if len(a.shape) != 2 or len(b.shape) != 3:
        raise LookupError("groups along another dimension")
    experts, rows = b.shape[0], a.shape[0]
    groups = tuple(rows // experts + (number < rows % experts) for number in range(experts))
    yield KernelPart(
        "product", Gemm(m=rows, n=b.shape[2], k=a.shape[1], dtype=a.dtype, groups=groups)
    )


# --- convolution ------------------------------------------------------------------------------


def _convolution(call: OperatorCall) -> Iterator[KernelPart]:
    source, weight = tensor(call, "input"), tensor(call, "weight")
    transposed = bool(call.arguments.get("transposed"))
    direction = "data" if transposed else "forward"
    yield _convolution_part(call, source, call.outputs[0], weight, direction, transposed=transposed)
    if isinstance(call.arguments.get("bias"), TensorSizes):
        size = call.outputs[0].bytes
        yield KernelPart("add bias", SameBytes("bias of a convolution", size, size))


def _convolution_backward(call: OperatorCall) -> Iterator[KernelPart]:
    grad, source, weight = (tensor(call, n) for n in ("grad_output", "input", "weight"))
    transposed = bool(call.arguments.get("transposed"))
    output_mask = call.arguments.get("output_mask") or (True, True, True)
    if output_mask[0]:
        direction = "forward" if transposed else "data"
        yield _convolution_part(call, source, grad, weight, direction, transposed=transposed)
    if output_mask[1]:
        yield _convolution_part(call, source, grad, weight, "weights", transposed=transposed)
    if output_mask[2]:
        channels = grad.shape[1]
        yield KernelPart(
            "bias gradient", Reduction(channels, grad.elements // channels, grad.dtype)
        )


def _convolution_part(
    call: OperatorCall,
    source: TensorSizes,
    result: TensorSizes,
    weight: TensorSizes,
    direction: str,
    *,
    transposed: bool,
) -> KernelPart:
    """A direction of a convolution. The transposed one is the gradient of another convolution's
    data: its source is that one's result."""
    if transposed:
        source, result = result, source
    rank = len(source.shape) - 2
    steps = [_each(call.arguments.get(n), rank) for n in ("stride", "padding", "dilation")]
    image, taps, groups = source.shape[2:], weight.shape[2:], int(call.arguments["groups"])
    if rank == 1:
        image, taps = (1, *image), (1, *taps)
        stride, padding, dilation = (
            (neutral, *step) for neutral, step in zip((1, 0, 1), steps, strict=True)
        )
    else:
        stride, padding, dilation = steps
    op = Convolution(
        n=source.shape[0],
        c=source.shape[1],
        image=image,
        k=result.shape[1],
        filter=taps,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        direction=direction,
        dtype=source.dtype,
        layout="nhwc" if source.channels_last or weight.channels_last else "nchw",
    )
    pixels, depth = op.n * math.prod(op.output), (op.c // groups) * math.prod(taps)
    sizes = {
        "forward": (pixels, op.k // groups, depth),
        "data": (pixels, depth, op.k // groups),
        "weights": (op.k // groups, depth, pixels),
    }
    m, n, k = sizes[direction]
    product = KernelPart("convolution", Gemm(m=m, n=n, k=k, batch=groups, dtype=source.dtype))
    why = "a convolution is priced as a matrix product of its size (implicit GEMM)"
    return KernelPart(f"convolution {direction}", op, (product,), why)


def _each(value: Any, rank: int) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in value)
    return sizes * rank if len(sizes) == 1 else sizes


# --- attention --------------------------------------------------------------------------------


def _attention(*, backward: bool) -> Kernels:
    def kernels(call: OperatorCall) -> Iterator[KernelPart]:
        query, key, value = (tensor(call, name) for name in ("query", "key", "value"))
        if len(query.shape) < 4:
            raise LookupError("attention without heads")
        batch, heads, queries, head = math.prod(query.shape[:-3]), *query.shape[-3:]
        keys, kv_heads, head_v = key.shape[-2], key.shape[-3], value.shape[-1]
        op = Attention(
            batch=batch,
            heads=heads,
            kv_heads=kv_heads,
            seq_q=queries,
            seq_k=keys,
            head=head,
            head_v=head_v,
            dtype=query.dtype,
            causal=bool(call.arguments.get("is_causal")),
            backward=backward,
            library=_attention_library(call),
        )
        scores = batch * heads * queries
        product = {"batch": batch * heads, "dtype": query.dtype, "library": LIBRARY}
        unfused = [
            KernelPart("scores", Gemm(m=queries, n=keys, k=head, transposed="TN", **product)),
            KernelPart("softmax", Softmax(scores, keys, query.dtype)),
            KernelPart("values", Gemm(m=queries, n=head_v, k=keys, transposed="TT", **product)),
        ]
        why = "attention is priced as two products and a softmax"
        name = "attention backward" if backward else "attention"
        parts = tuple(unfused) if not backward else _unfused_backward(unfused)
        yield KernelPart(name, op, parts, why)

    return kernels


def _attention_library(call: OperatorCall) -> str:
    """What the operator runs, as a choice of `attention/libraries.toml`."""
    masks = (call.arguments.get(name) for name in ("attn_mask", "attn_bias"))
    if any(isinstance(mask, TensorSizes) for mask in masks):
        return "sdpa_masked"
    if "efficient" in call.name:
        return "sdpa_efficient"
    return "sdpa_cudnn" if "cudnn" in call.name else "sdpa"


def _unfused_backward(forward: list[KernelPart]) -> tuple[KernelPart, ...]:
    """Scores again, then two products for every one of the forward pass."""
    scores, softmax, values = forward
    return (scores, softmax, values, values, scores, scores, softmax)


_FORWARD: Final = _attention(backward=False)
_BACKWARD: Final = _attention(backward=True)

PRODUCTS: Final[Mapping[str, Kernels]] = {
    "aten.mm": _mm,
    "aten.addmm": _mm,
    "aten.bmm": _bmm,
    "aten.baddbmm": _bmm,
    "aten.linear": _linear,
    "aten.matmul": _matmul,
    "aten.mv": _vector,
    "aten.addmv": _vector,
    "aten.dot": _vector,
    "aten._scaled_mm": _scaled_mm,
    "aten._grouped_mm": _grouped_mm,
    "aten.convolution": _convolution,
    "aten.convolution_backward": _convolution_backward,
    **dict.fromkeys(
        (
            "aten.scaled_dot_product_attention",
            "aten._scaled_dot_product_flash_attention",
            "aten._scaled_dot_product_efficient_attention",
            "aten._scaled_dot_product_cudnn_attention",
            "aten._scaled_dot_product_fused_attention_overrideable",
        ),
        _FORWARD,
    ),
    **dict.fromkeys(
        (
            "aten._scaled_dot_product_flash_attention_backward",
            "aten._scaled_dot_product_efficient_attention_backward",
            "aten._scaled_dot_product_cudnn_attention_backward",
            "aten._scaled_dot_product_fused_attention_overrideable_backward",
        ),
        _BACKWARD,
    ),
}
"""Operator -> its kernels. They raise LookupError for a form that they do not know."""

__all__ = ["PRODUCTS", "Kernels", "tensor"]
