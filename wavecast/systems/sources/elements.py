"""Element-wise calls, reductions, norms and movements of PyTorch as operations of `model.ops`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from wavecast.dtypes import lookup
from wavecast.perfmodel.ops import dtypes
from wavecast.perfmodel.ops.elementwise import Elementwise, Operand
from wavecast.perfmodel.ops.norm import Norm
from wavecast.perfmodel.ops.reduction import Reduction
from wavecast.perfmodel.ops.softmax import Softmax
from wavecast.systems.sources.calls import OperatorCall, TensorSizes
from wavecast.systems.sources.part import KernelPart, SameBytes
from wavecast.systems.sources.products import Kernels, tensor

_BY_BITS: Final = {8: "int8", 16: "int16", 32: "int32", 64: "int64", 128: "complex128"}
"""The element type of the predictors for others of as many bits."""

POINTWISE: Final[Mapping[str, str | tuple[str, str]]] = {
    "add": ("add_number", "add"),
    "sub": ("add_number", "sub"),
    "rsub": ("add_number", "sub"),
    "mul": ("scale", "mul"),
    "div": ("scale", "div"),
    "pow": ("pow_number", "pow"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), ("compare_number", "compare")),
    **dict.fromkeys(
        ("logical_and", "logical_or", "bitwise_and", "bitwise_or"), ("compare_number", "compare")
    ),
    **dict.fromkeys(("logical_not", "bitwise_not", "neg"), "neg"),
    **dict.fromkeys(("maximum", "minimum"), "maximum"),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max", "hardtanh"), "clamp"),
    **{name: name for name in ("abs", "relu", "square", "exp", "log", "rsqrt", "sqrt")},
    **{name: name for name in ("sigmoid", "silu", "tanh", "gelu", "erf", "elu", "sin", "cos")},
    **{name: name for name in ("where", "addcmul", "masked_fill", "threshold_backward")},
    "reciprocal": "scale",
    "addcdiv": "addcmul",
    "lerp": "add",
    "sigmoid_backward": "mul",
    "tanh_backward": "mul",
    "silu_backward": "silu_mul",
    "gelu_backward": "gelu_mul",
    "hardswish": "clamp",
    "mish": "tanh",
    "softplus": "log",
    "leaky_relu": "relu",
    "fill": "fill",
    "copy": "copy",
    "_to_copy": "copy",
    "clone": "copy",
    "zero": "fill",
}
"""Operator without `aten.` and the `_` of in-place ones -> element-wise function, or those with a
number and with a tensor as second operand."""

POWERS: Final[Mapping[float, str]] = {
    0.5: "sqrt",
    -0.5: "rsqrt",
    2.0: "square",
    3.0: "square",
    -2.0: "square",
    1.0: "copy",
}
"""Function of a power by a number that PyTorch does not compute as a power
(aten/src/ATen/native/cuda/PowKernel.cu)."""

_BY_OPERANDS: Final = ("fill", "scale", "mul", "where")
"""The function for other element-wise operators, by the number of tensors they read."""


def element_type(dtype: str) -> str:
    """The element type that predictors know for a dtype: itself, or one of as many bits."""
    return dtype if dtype in dtypes.KNOWN else _BY_BITS.get(lookup(dtype).bits, "int8")


def _operand(spec: TensorSizes) -> Operand:
    return spec.distinct, element_type(spec.dtype)


def base(name: str) -> str:
    """`aten.add_` without namespace and the mark of in-place operators."""
    plain = name.partition(".")[2]
    return plain[:-1] if plain.endswith("_") and not plain.endswith("__") else plain


def pointwise(call: OperatorCall) -> Iterator[KernelPart]:
    """An element-wise call; by its tensors where the operator is not in `POINTWISE`."""
    result = call.outputs[0]
    read = [spec for spec in call.inputs if spec.shape]
    plain = base(call.name)
    in_place = call.name.endswith("_") and not plain.endswith("_")
    entry = POINTWISE.get(plain)
    if plain == "copy":
        read = read[1:]
    elif plain in ("fill", "zero"):
        read = []
    if entry is None:
        function = _BY_OPERANDS[min(len(read), 3)]
    elif isinstance(entry, tuple):
        function = entry[len(read) > 1]
    else:
        function = entry
    if function == "pow_number":
        function = POWERS.get(_number(call.arguments.get("exponent")), function)
    operands = tuple(_operand(spec) for spec in read)
    layouts = {spec.strides for spec in (*read, result) if spec.shape == result.shape}
    dense = all(_dense(spec) for spec in (*read, result) if spec.distinct == spec.shape)
    op = Elementwise(
        function,
        operands,
        (result.shape, element_type(result.dtype)),
        indexed=len(layouts) > 1 or not dense,
        in_place=in_place,
    )
    yield KernelPart(function, op)


def _number(value: object) -> float:
    """An argument that is a number; NaN for any other."""
    return float(value) if isinstance(value, (int, float)) else math.nan


def _dense(spec: TensorSizes) -> bool:
    """Whether the elements fill a piece of memory, in any order of dimensions."""
    contiguous_stride = 1
    sizes = (
        (stride, size) for size, stride in zip(spec.shape, spec.strides, strict=True) if size > 1
    )
    for stride, size in sorted(sizes):
        if stride != contiguous_stride:
            return False
        contiguous_stride *= size
    return True


def _fill(call: OperatorCall) -> Iterator[KernelPart]:
    result = call.outputs[0]
    yield KernelPart("fill", Elementwise.of("fill", result.shape, element_type(result.dtype)))


def _random(call: OperatorCall) -> Iterator[KernelPart]:
    result = call.outputs[0]
    yield KernelPart("random", Elementwise.of("random", result.shape, element_type(result.dtype)))


def _dropout(call: OperatorCall) -> Iterator[KernelPart]:
    source = tensor(call, "input")
    mask = (source.shape, "bool")
    op = Elementwise("dropout", (_operand(source), mask), _operand(source))
    yield KernelPart("dropout", op)


def _cat(call: OperatorCall) -> Iterator[KernelPart]:
    result = _operand(call.outputs[0])
    count = max(1, sum(spec.elements > 0 for spec in call.inputs))
    yield KernelPart("copy", Elementwise("copy", (result,), result, indexed=True, launches=count))


def _resize(function: str) -> Kernels:
    def kernels(call: OperatorCall) -> Iterator[KernelPart]:
        source = tensor(call, "self", "input")
        operand = source.shape, element_type(source.dtype)
        yield KernelPart(function, Elementwise(function, (operand,), _operand(call.outputs[0])))

    return kernels


def _index(call: OperatorCall) -> Iterator[KernelPart]:
    """Elements or rows chosen by a tensor of indices: what is chosen is read once."""
    result = call.outputs[0]
    indices = sum(spec.bytes for spec in call.inputs[1:]) if len(call.inputs) > 1 else 0.0
    yield KernelPart("index", SameBytes(call.name, result.bytes + indices, result.bytes))


def _embedding(call: OperatorCall) -> Iterator[KernelPart]:
    result, indices = call.outputs[0], tensor(call, "indices")
    yield KernelPart("lookup", SameBytes(call.name, result.bytes + indices.bytes, result.bytes))


# --- rows -------------------------------------------------------------------------------------


def _reduction(call: OperatorCall) -> Iterator[KernelPart]:
    source, result = tensor(call, "self", "input"), call.outputs[0]
    rows = max(1, result.elements)
    columns = max(1, source.elements // rows)
    op = Reduction(
        rows,
        columns,
        element_type(source.dtype),
        inner=_inner(call, source.shape),
        function="argmax" if _gives_index(call) else "sum",
    )
    yield KernelPart("reduction", op)


def _inner(call: OperatorCall, shape: Sequence[int]) -> int:
    """Results between two elements that are reduced to one: the sizes after the last such
    dimension."""
    named = call.arguments.get("dim")
    dims = named if isinstance(named, (list, tuple)) else [] if named is None else [named]
    last = max((int(dim) % len(shape) for dim in dims), default=-1) if shape else -1
    return math.prod(shape[last + 1 :]) if dims and last >= 0 else 1


def _gives_index(call: OperatorCall) -> bool:
    """Whether a result is the index of an extreme."""
    name = call.name.removeprefix("aten.")
    return name in ("argmax", "argmin") or (name in ("max", "min") and len(call.outputs) > 1)


def _softmax(call: OperatorCall) -> Iterator[KernelPart]:
    source = tensor(call, "self")
    columns = source.shape[int(call.arguments["dim"])] if source.shape else 1
    op = Softmax(max(1, source.elements // columns), columns, element_type(source.dtype))
    yield KernelPart("softmax", op)


def _norm(function: str) -> Kernels:
    def kernels(call: OperatorCall) -> Iterator[KernelPart]:
        source = tensor(call, "input", "self")
        shape = call.arguments.get("normalized_shape")
        if function == "group_norm":
            batch, groups = source.shape[0], int(call.arguments.get("group") or 1)
            rows = batch * groups
        elif shape:
            rows = source.elements // math.prod(shape)
        else:
            rows = source.shape[1]
        op = Norm(function, rows, source.elements // rows, element_type(source.dtype))
        yield KernelPart(function, op)

    return kernels


def _batch_norm(call: OperatorCall) -> Iterator[KernelPart]:
    """With given statistics it is element-wise. Channels that are innermost in memory have separate
    kernels: a pass for the statistics and one that normalises, each by all workgroups."""
    source = tensor(call, "input", "self")
    if call.arguments.get("training") or call.arguments.get("train"):
        if source.channels_last:
            yield KernelPart("statistics", SameBytes(call.name, source.bytes, 0.0))
            yield KernelPart("normalise", SameBytes(call.name, source.bytes, source.bytes))
        else:
            yield from _norm("batch_norm")(call)
        return
    operand = _operand(source)
    channels = (1, source.shape[1], *(1 for _ in source.shape[2:])), "fp32"
    yield KernelPart("normalise", Elementwise("where", (operand, channels, channels), operand))


def _batch_norm_backward(call: OperatorCall) -> Iterator[KernelPart]:
    """A pass for the gradients of weight and bias, one for that of the input."""
    source = tensor(call, "input")
    if not source.channels_last:
        yield from _norm("batch_norm_backward")(call)
        return
    both = 2 * source.bytes
    yield KernelPart("weight gradient", SameBytes(call.name, both, 0.0))
    yield KernelPart("input gradient", SameBytes(call.name, both, source.bytes))


def _norm_backward(call: OperatorCall) -> Iterator[KernelPart]:
    """Gradient of the rows, then that of weight and bias: each reads the gradient and the input."""
    grad, source = tensor(call, "grad_out"), tensor(call, "input")
    output_mask = call.arguments.get("output_mask") or (True, True, True)
    both = grad.bytes + source.bytes
    if output_mask[0]:
        yield KernelPart("input gradient", SameBytes(call.name, both, source.bytes))
    if any(output_mask[1:]):
        written = sum(spec.bytes for spec in call.outputs if spec.elements < source.elements)
        yield KernelPart("weight gradient", SameBytes(call.name, both, written))


def _same_bytes(call: OperatorCall) -> Iterator[KernelPart]:
    yield KernelPart("kernel", SameBytes(call.name, call.bytes_read, call.bytes_written))


def _pooling(call: OperatorCall) -> Iterator[KernelPart]:
    """Reads its source and writes what it returns; overlapping windows come from a cache."""
    yield from _same_bytes(call)


# --- many tensors at once -----------------------------------------------------------------------

_LISTS: Final[Mapping[str, tuple[str, int]]] = {
    "add": ("add", 2),
    "sub": ("add", 2),
    "mul": ("mul", 2),
    "div": ("div", 2),
    "lerp": ("add", 2),
    "addcmul": ("addcmul", 3),
    "addcdiv": ("addcmul", 3),
    "sqrt": ("sqrt", 1),
    "neg": ("neg", 1),
    "zero": ("fill", 0),
    "copy": ("copy", 1),
}
"""`_foreach` operator -> element-wise function, most lists that it reads."""


def foreach(call: OperatorCall) -> Iterator[KernelPart]:
    """A `_foreach` call: its lists as tensors of their mean size. Raises LookupError for an
    operator or arguments that are not known."""
    plain = base(call.name).removeprefix("_foreach_")
    lists = [value for value in call.arguments.values() if _is_tensors(value)]
    if plain not in _LISTS or not lists:
        raise LookupError(f"{call.name} with other arguments")
    tensors = [spec for spec in lists[0] if spec.elements > 1]
    if not tensors:
        return
    function, most = _LISTS[plain]
    if plain in ("add", "sub", "mul", "div") and len(lists) == 1:
        function, most = "scale", 1
    elements = max(1, sum(spec.elements for spec in tensors) // len(tensors))
    size = ((elements,), element_type(tensors[0].dtype))
    in_place = call.name.endswith("_")
    op = Elementwise(
        function, (size,) * most, size, in_place=in_place and most > 0, tensors=len(tensors)
    )
    yield KernelPart("foreach", op)


def _is_tensors(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], TensorSizes)


ELEMENTS: Final[Mapping[str, Kernels]] = {
    **dict.fromkeys(
        (f"aten.{name}" for name in ("zeros", "ones", "full", "arange", "scalar_tensor")), _fill
    ),
    **dict.fromkeys((f"aten.{name}_like" for name in ("zeros", "ones", "full")), _fill),
    **dict.fromkeys(("aten.new_zeros", "aten.new_ones", "aten.new_full", "aten.eye"), _fill),
    **dict.fromkeys(
        (f"aten.{name}" for name in ("rand", "randn", "rand_like", "randn_like", "bernoulli_")),
        _random,
    ),
    "aten.normal_": _random,
    "aten.uniform_": _random,
    "aten.native_dropout": _dropout,
    "aten.cat": _cat,
    "aten.stack": _cat,
    "aten.constant_pad_nd": _resize("pad"),
    "aten.reflection_pad2d": _resize("pad"),
    "aten.upsample_nearest1d": _resize("upsample_nearest"),
    "aten.upsample_nearest2d": _resize("upsample_nearest"),
    **dict.fromkeys(("aten.index", "aten.index_select", "aten.gather"), _index),
    "aten.embedding": _embedding,
    **dict.fromkeys(
        (f"aten.{name}" for name in ("sum", "mean", "amax", "amin", "max", "min", "any", "all")),
        _reduction,
    ),
    **dict.fromkeys(
        (f"aten.{name}" for name in ("var", "std", "argmax", "argmin", "linalg_vector_norm")),
        _reduction,
    ),
    **dict.fromkeys(("aten.var_mean", "aten.norm", "aten.prod", "aten.logsumexp"), _reduction),
    **dict.fromkeys(("aten._softmax", "aten._log_softmax", "aten._safe_softmax"), _softmax),
    **dict.fromkeys(("aten.softmax", "aten.log_softmax"), _softmax),
    **dict.fromkeys(("aten.native_layer_norm", "aten.layer_norm"), _norm("layer_norm")),
    **dict.fromkeys(("aten._fused_rms_norm", "aten.rms_norm"), _norm("rms_norm")),
    "aten.native_group_norm": _norm("group_norm"),
    "aten.native_batch_norm": _batch_norm,
    "aten._native_batch_norm_legit": _batch_norm,
    "aten._native_batch_norm_legit_functional": _batch_norm,
    "aten._native_batch_norm_legit_no_training": _batch_norm,
    "aten.batch_norm": _batch_norm,
    "aten.native_batch_norm_backward": _batch_norm_backward,
    "aten.native_layer_norm_backward": _norm_backward,
    "aten.native_group_norm_backward": _norm_backward,
    "aten._fused_rms_norm_backward": _norm_backward,
    **dict.fromkeys(
        (
            f"aten.{name}"
            for name in (
                *("max_pool2d_with_indices", "max_pool2d_with_indices_backward", "avg_pool2d"),
                *("avg_pool2d_backward", "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"),
                *("max_pool3d_with_indices", "avg_pool3d", "max_pool2d", "adaptive_avg_pool2d"),
            )
        ),
        _pooling,
    ),
    **dict.fromkeys(
        (
            f"aten.{name}"
            for name in (
                *("_softmax_backward_data", "_log_softmax_backward_data", "nll_loss_forward"),
                *("nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "cumsum"),
                *("embedding_dense_backward", "scatter", "scatter_", "scatter_add", "index_add"),
                *("scatter_add_", "index_put", "index_put_", "_index_put_impl_", "index_copy"),
                *("index_add_", "index_copy_", "slice_backward", "select_backward", "mse_loss"),
                *("slice_scatter", "select_scatter", "upsample_bilinear2d", "upsample_bicubic2d"),
                *("roll", "flip", "tril", "triu", "repeat", "topk", "one_hot", "pixel_shuffle"),
                *("native_dropout_backward", "upsample_nearest2d_backward", "cumsum_", "im2col"),
                *("smooth_l1_loss", "binary_cross_entropy_with_logits", "mse_loss_backward"),
                *("upsample_bilinear2d_backward", "glu", "glu_backward", "native_channel_shuffle"),
                *("_fused_adamw_", "_fused_adam_", "_fused_sgd_", "constant_pad_nd_backward"),
                *("masked_scatter", "gather_backward", "unfold_backward", "_unsafe_index"),
                *("_unsafe_index_put", "pixel_unshuffle", "col2im", "adaptive_avg_pool1d"),
            )
        ),
        _same_bytes,
    ),
}
"""Operator -> its kernels. They raise LookupError for a form that they do not know."""

__all__ = ["ELEMENTS", "POINTWISE", "base", "element_type", "foreach", "pointwise"]
