"""Element-wise operations, norms, softmax and reductions: one row per measured call.

Rows of three kinds of source: eager calls between events on an idle GPU (column `neusight_split`),
kernels of profiled models (`dtype` and `shape` are tuples, one entry per argument), and fused norms
(`shape` is `B16 N1024 D2048`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.elementwise import FUNCTIONS, Elementwise, Operand
from wavecast.perfmodel.ops.norm import Norm
from wavecast.perfmodel.ops.reduction import Reduction
from wavecast.perfmodel.ops.softmax import Softmax

if TYPE_CHECKING:
    import pandas as pd

CALLS: Final = {
    "add": ("add", "eager"),
    "mul": ("mul", "eager"),
    "div": ("div", "eager"),
    "pow": ("pow", "eager"),
    "tanh": ("tanh", "eager"),
    "powu": ("pow_number", "eager, framed"),
    "gelu": ("gelu", "eager, framed"),
    "relu": ("relu", "eager, with a number"),
    "addu": ("add_number", "eager, with a number"),
    "mulu": ("scale", "eager, with a number"),
    "divu": ("scale", "eager, with a number"),
}
"""Op of an eager call -> function, how the call was timed."""

TYPES: Final = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "int": "int32",
    "long int": "int64",
    "bool": "bool",
    "unsigned char": "int8",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}

UNARY: Final = {
    "abs": "abs",
    "bitwise_not": "neg",
    "clamp_min": "clamp",
    "cos": "cos",
    "elu": "elu",
    "exp": "exp",
    "gelu": "gelu",
    "neg": "neg",
    "pow": "square",
    "relu": "relu",
    "rsqrt": "rsqrt",
    "sigmoid": "sigmoid",
    "silu": "silu",
    "sin": "sin",
    "tanh": "tanh",
}
BINARY: Final = {
    "add": ("add_number", "add"),
    "sub": ("add_number", "sub"),
    "mul": ("scale", "mul"),
    "div": ("scale", "div"),
    "eq": ("compare_number", "compare"),
    "ne": ("compare_number", "compare"),
    "gt": ("compare_number", "compare"),
    "lt": ("compare_number", "compare"),
    "min": ("compare_number", "maximum"),
    "max": ("compare_number", "maximum"),
    "masked_fill": ("scale", "masked_fill"),
    "threshold_backward": ("relu", "threshold_backward"),
}
REDUCTIONS: Final = ("mean", "sum", "linalg_vector_norm", "linalg_norm", "argmax", "all", "any")
INDEXED: Final = re.compile(r"(^|::)elementwise_kernel(<|_manual_unroll)")
NORM: Final = re.compile("norm(?!al)")
CHANNELS: Final = re.compile(r"reduce_kernel<\d+, [24],")
"""Several results per thread: not the last dimension is reduced; it is taken to be the channels."""
FUSED: Final = re.compile(r"B(\d+) N(\d+) D(\d+)")


class ElementwiseNorm(Importer):
    """Measurements of `elementwise_norm.parquet`."""

    name = "elementwise_norm"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset(
            {"op", "dtype", "shape", "library", "kernel", "grid", "block", "time_us", "bytes_min"}
        ),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(frame.to_dict("records"), case)


def case(row: dict[str, Any]) -> Case:
    """The case of a row, with a reason where the op cannot be built."""
    name = str(row["op"])
    device, doubt = device_of(str(row["arch"]), row.get("cu_count"), str(row["device"]))
    kind, op, reason = _op(name, row)
    return Case(
        kind=kind,
        op=op,
        device=device,
        seconds=float(row["time_us"]) * 1e-6,
        group=str(row.get("source_path", "")),
        labels={"function": name, "dtype": _dtype(op), "layout": _layout(op)},
        source=f"{row.get('source_repo', '')}:{row.get('source_path', '')}",
        reason=reason or ("" if device else doubt),
    )


def _dtype(op: Op | None) -> str:
    if op is None:
        return ""
    return op.result[1] if isinstance(op, Elementwise) else str(getattr(op, "dtype", ""))


def _layout(op: Op | None) -> str:
    """How the operands of an element-wise kernel lie, as far as the row tells."""
    if not isinstance(op, Elementwise):
        return ""
    if op.broadcast:
        return "broadcast"
    return "strides not recorded" if op.indexed else "contiguous"


def _op(name: str, row: dict[str, Any]) -> tuple[str, Op | None, str]:
    """Kind, op, and why there is none."""
    shape, dtype = str(row["shape"]), str(row["dtype"])
    if name in CALLS or name in ("ln", "softmax"):
        return _call(name, tuple(int(size) for size in shape.split("x")), dtype)
    if found := FUSED.fullmatch(shape):
        batch, length, width = map(int, found.groups())
        return _fused(str(row["library"]), batch * length, width, dtype)
    if name.startswith(("aten::", "aiter::")):
        return _profiled(name, shape, dtype, str(row["kernel"]))
    return "elementwise", None, f"{name} is not an operation of the model"


def _call(name: str, shape: tuple[int, ...], dtype: str) -> tuple[str, Op, str]:
    rows, columns = math.prod(shape[:-1]), shape[-1]
    if name == "softmax":
        return "softmax", Softmax(rows, columns, dtype, timing="eager, softmax"), ""
    if name == "ln":
        return "norm", Norm("layer_norm", rows, columns, dtype, timing="eager, norm"), ""
    function, timing = CALLS[name]
    return "elementwise", Elementwise.of(function, shape, dtype, timing=timing), ""


def _fused(library: str, rows: int, columns: int, dtype: str) -> tuple[str, Op | None, str]:
    if library == "torch.compile":
        return "norm", None, "what the compiler of torch fused is not known"
    fused = library != "torch"
    op = Norm(
        "layer_norm",
        rows,
        columns,
        dtype,
        residual=True,
        dropout=True,
        fused=fused,
        timing="launch",
    )
    return "norm", op, ""


def _profiled(name: str, shape: str, dtype: str, kernel: str) -> tuple[str, Op | None, str]:
    """An op of a profiled model: the arguments' types and shapes decide."""
    base = name.split("::")[1]
    short = base.removesuffix("_")
    kind = "reduction" if short in REDUCTIONS else "norm" if NORM.search(short) else "elementwise"
    if kernel.startswith("Memcpy"):
        return kind, None, "a copy between host and device, or by the copy engine"
    try:
        shapes, types = ast.literal_eval(shape), ast.literal_eval(dtype)
    except (ValueError, SyntaxError):
        return kind, None, f"{shape} of {dtype} are no arguments"
    if types and types[0] == "TensorList":
        return kind, *_list_op(short, shapes)
    tensors = _tensors(shapes, types)
    if not tensors:
        return kind, None, "no tensor among the arguments"
    if kind == "elementwise":
        return kind, *_elementwise(base, tensors, indexed=bool(INDEXED.search(kernel)))
    sizes, element = tensors[0]
    if kind == "reduction":
        place = 1 if CHANNELS.search(kernel) and len(sizes) >= 2 else len(sizes) - 1
        reduced, inner = sizes[place], math.prod(sizes[place + 1 :])
        function = "argmax" if short == "argmax" else "sum"
        rows = math.prod(sizes) // reduced
        return kind, Reduction(rows, reduced, element, inner=inner, function=function), ""
    return kind, *_norm(short, sizes, element)


def _norm(name: str, sizes: tuple[int, ...], dtype: str) -> tuple[Op | None, str]:
    if "rmsnorm" in name:
        residual = name.startswith("add_")
        return Norm("rms_norm", math.prod(sizes[:-1]), sizes[-1], dtype, residual=residual), ""
    if "groupnorm" in name:
        groups = 32 * sizes[0]
        return Norm("group_norm", groups, math.prod(sizes) // groups, dtype), ""
    if "batch_norm" in name:
        function = "batch_norm_backward" if name.endswith("backward") else "batch_norm"
        return Norm(function, sizes[1], math.prod(sizes) // sizes[1], dtype), ""
    if name == "layer_norm":
        return Norm("layer_norm", math.prod(sizes[:-1]), sizes[-1], dtype), ""
    return None, f"{name} is no norm the model knows"


def _elementwise(name: str, tensors: list[Operand], *, indexed: bool) -> tuple[Op | None, str]:
    in_place = name.endswith("_") and name != "copy_"
    short = name.removesuffix("_")
    if short == "copy" and len(tensors) > 1:
        return Elementwise("copy", (tensors[1],), tensors[0], indexed=indexed), ""
    if short in ("fill", "zero", "normal"):
        function = "random" if short == "normal" else "fill"
        return Elementwise(function, (), tensors[0], indexed=indexed), ""
    if short in UNARY and len(tensors) == 1:
        function, operands = UNARY[short], tensors[:1]
    elif short in BINARY:
        function, operands = BINARY[short][min(len(tensors), 2) - 1], tensors[:2]
    elif short == "where" and len(tensors) >= 2:
        function, operands = "where", tensors[:3]
    else:
        return None, f"{name} of {len(tensors)} tensors is not an operation of the model"
    shape = _broadcast([sizes for sizes, _ in operands])
    if shape is None:
        return None, "the shapes do not broadcast"
    dtype = "bool" if function.startswith("compare") else operands[0][1]
    op = Elementwise(function, tuple(operands), (shape, dtype), indexed=indexed, in_place=in_place)
    return op, ""


def _list_op(name: str, shapes: Any) -> tuple[Op | None, str]:
    """Concatenation: every input is copied to its place; `_foreach` calls of equal tensors. Types
    are not recorded, bf16 is taken."""
    if name.startswith("_foreach_") and name.removeprefix("_foreach_") in FUNCTIONS:
        tensors = {tuple(shape) for shape in shapes[0]}
        if len(tensors) != 1:
            return None, f"{name} of tensors of different sizes"
        function = name.removeprefix("_foreach_")
        tensor = (tensors.pop(), "bf16")
        operands = (tensor,) * FUNCTIONS[function][0]
        return Elementwise(function, operands, tensor, tensors=len(shapes[0])), ""
    if name != "cat":
        return None, f"{name} of lists is not an operation of the model"
    inputs = [tuple(shape) for shape in shapes[0]]
    total = sum(math.prod(shape) for shape in inputs)
    flat = ((total,), "bf16")
    return Elementwise("copy", (flat,), flat, indexed=True, launches=len(inputs)), ""


def _tensors(shapes: Any, types: Any) -> list[Operand]:
    """Arguments that are tensors: numbers have no sizes."""
    found = []
    for shape, name in zip(shapes, types, strict=False):
        if shape and name in TYPES and all(isinstance(size, int) and size > 0 for size in shape):
            found.append((tuple(shape), TYPES[name]))
    return found


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    length = max(len(shape) for shape in shapes)
    result = []
    for sizes in zip(*((1,) * (length - len(shape)) + shape for shape in shapes), strict=True):
        largest = max(sizes)
        if any(size not in (1, largest) for size in sizes):
            return None
        result.append(largest)
    return tuple(result)


__all__ = ["ElementwiseNorm"]
