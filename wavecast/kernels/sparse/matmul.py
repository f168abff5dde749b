"""Products with compressed weights of which two in every four elements are zero."""

import math
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor

from wavecast.kernels import checks, describe
from wavecast.kernels.describe import Device, Make, Sizes, Work, sizes
from wavecast.kernels.gemm.product import rate_of
from wavecast.kernels.quantise import formats
from wavecast.kernels.quantised import operands, parts
from wavecast.kernels.sparse.compression import (
    POSITIONS,
    WORD_DEPTH,
    dense_columns,
    expand_sparse24,
)
from wavecast.kernels.sparse.instructions import A_WORDS, B_WORDS, SparseProduct, sparse_product
from wavecast.kernels.sparse.swizzle import row_swizzle
from wavecast.kernels.sparse.tiling import TILES
from wavecast.launch import gpu
from wavecast.launch.inputs import FP8

NAME: Final = "matmul_sparse24"
TENSORS = describe.Signature(
    "x: [..., k] half|fp8|int8",
    "values: [n, k / 2] half|fp8|int8",
    "index: [k / 32, n] int32",
    "bias?: [n] float",
    "x_scale?: [_...] float32",
    "weight_scale?: [_...] float32",
    returns=("y: [..., n]",),
    leading="m",
)
_ELEMENTS: Final = {
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e4m3fnuz: "fp8",
    torch.float8_e5m2: "bf8",
    torch.float8_e5m2fnuz: "bf8",
    torch.int8: "i8",
}
"""Element types as the instruction table names them."""
_FAMILIES: Final = (
    (torch.float8_e4m3fn, torch.float8_e5m2),
    (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
)
"""Formats that multiply with each other."""


def matmul_sparse24(
    x: Tensor, values: Tensor, index: Tensor, bias: Tensor | None = None,
    x_scale: Tensor | None = None, weight_scale: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """`x @ w.T * x_scale * weight_scale + bias`, where `w` [N, K] has at most two elements that are
    not zero in every four of a row, by instructions that multiply those only.

    `x` is [..., K] of bfloat16, float16, fp8 or int8. `values` [N, K / 2] and `index` [K / 32, N]
    of int32 are what `ops.compress_sparse24` makes of `w`: of the dtype of `x`, or e4m3 and e5m2
    of one kind. K is a multiple of 32, with 8-bit elements of 64. The positions of a group ascend.
    `bias` is [N]. Scales are for 8-bit elements: float32 of one element, or one per row of `x` and
    per row of `w`. Summed in float32 (int8 in int32, then rounded to float32); the result [..., N]
    is of `out_dtype` (bfloat16, float16 or float32; by default that of `x`, of 8-bit elements
    bfloat16).

    Elements of `x` at zeros that are not kept are not multiplied: where they are not finite, the
    result can be, unlike that of `matmul`.

    GPUs with sparse matrix instructions only: gfx942, gfx950, gfx12. There, fp8 formats a GPU does
    not multiply get the codes of one it does (e4m3fn on gfx942) or are widened to bfloat16,
    exactly, at every call. Elsewhere `ops.expand_sparse24` gives the weight for `matmul`. Raises
    ArgumentError.
    """
    dtype = _check(dict(locals()))
    n, k = values.shape[0], x.shape[-1]
    if not x.numel() or not values.numel():
        return matmul_sparse24_reference(x, values, index, bias, x_scale, weight_scale, out_dtype)
    device = gpu.launching()
    reason = "has no sparse matrix instructions; ops.expand_sparse24 gives the weight for matmul"
    checks.require(has_instructions(device), NAME, f"{device.id} {reason}")
    flat, weights, x_scale = _native(x.reshape(-1, k), values, x_scale, device)
    product = _product(flat, weights, device)
    checks.require(product is not None, NAME, f"{device.id} has no product of {x.dtype}")
    assert product is not None
    out = torch.empty((*x.shape[:-1], n), dtype=dtype, device=x.device)
    m = flat.shape[0]
    problem = {
        "m": m,
        "n": n,
        "k": k,
        "rate": rate_of(flat.dtype),
        "symbol": product.prefix,
        "step": product.depth * product.calls * product.groups,
        "terms": " ".join(
            name
            for name, term in (("x", x_scale), ("weight", weight_scale), ("bias", bias))
            if term is not None
        ),
        "even_k": k % (product.depth * product.calls * product.groups) == 0,
        "wide": checks.wide(flat, weights, out),
    }
    parts.run(
        TILES, problem, out,
        x=_words(flat).view(torch.int64), values=_words(weights).view(torch.int64),
        index=index.contiguous(), INDEX_WORDS=product.index_bits // 32,
        bias=None if bias is None else bias.contiguous(),
        x_scale=_scale(x_scale), weight_scale=_scale(weight_scale),
        X_SCALES=x_scale is not None and x_scale.numel() > 1,
        WEIGHT_SCALES=weight_scale is not None and weight_scale.numel() > 1,
        X_SWIZZLE=row_swizzle(device, product, B_WORDS),
        W_SWIZZLE=row_swizzle(device, product, A_WORDS),
        GROUPS=product.groups, CALLS=product.calls, SUM_WORDS=product.sum_words,
        INTEGER=product.integer, CHUNKS=k // product.depth,
    )  # fmt: skip
    return out


def matmul_sparse24_reference(
    x, values, index, bias=None, x_scale=None, weight_scale=None, out_dtype=None
):
    """A dense product; 8-bit elements in float64, where their products are exact."""
    narrow = x.dtype in FP8 or x.dtype == torch.int8
    wide = torch.float64 if narrow else describe.wide_dtype(x)
    total = x.to(wide) @ expand_sparse24(values.to(wide), index).T
    if x_scale is not None:
        total = total * x_scale.to(wide).reshape(*(x.shape[:-1] if x_scale.numel() > 1 else ()), 1)
    if weight_scale is not None:
        total = total * weight_scale.to(wide).reshape(-1)
    if bias is not None:
        total = total + bias.to(wide)
    return total.to(out_dtype or (torch.bfloat16 if narrow else x.dtype)).contiguous()


def _check(arguments: dict[str, Any]) -> torch.dtype:
    """The dtype of the result. Raises ArgumentError."""
    x, values = arguments["x"], arguments["values"]
    TENSORS.check(NAME, arguments)
    partners = next((family for family in _FAMILIES if x.dtype in family), (x.dtype,))
    checks.dtype_in(NAME, "values", values, partners)
    k, narrow = x.shape[-1], x.element_size() == 1
    least = 2 * WORD_DEPTH if narrow else WORD_DEPTH
    checks.require(k % least == 0, NAME, f"x has {k} columns, no multiple of {least}")
    counts = {"x_scale": math.prod(x.shape[:-1]), "weight_scale": values.shape[0]}
    for name, count in counts.items():
        scale = arguments[name]
        if scale is not None:
            checks.require(narrow, NAME, f"{name} is for 8-bit elements, not {x.dtype}")
            text = f"{name} has {scale.numel()} elements; it takes 1 or {count}"
            checks.require(scale.numel() in (1, count), NAME, text)
    dtype = arguments["out_dtype"] or (torch.bfloat16 if narrow else x.dtype)
    parts.check_output(NAME, dtype)
    return dtype


def has_instructions(device: Device) -> bool:
    """Whether a GPU has sparse matrix instructions."""
    return device.vendor == "amd" and sparse_product(device.target, "bf16", "bf16") is not None


def _product(x: Tensor, values: Tensor, device: Device) -> SparseProduct | None:
    """The weights are the sparse operand A."""
    return sparse_product(device.target, _ELEMENTS[values.dtype], _ELEMENTS[x.dtype])


def _native(
    x: Tensor, values: Tensor, x_scale: Tensor | None, device: Device
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Operands as the GPU multiplies them, and the scale that belongs to those."""
    pair = (x, values)
    if all(t.dtype not in FP8 or formats.native(formats.FP8[t.dtype], device) for t in pair):
        return x, values, x_scale
    if x.dtype == values.dtype:
        left, left_factor = operands.recode(x, device)
        right, right_factor = operands.recode(values, device)
    else:
        left, right = (t.to(torch.bfloat16) for t in pair)
        left_factor = right_factor = 1.0
    factor = left_factor * right_factor
    if factor != 1.0:
        one = torch.ones(1, dtype=torch.float32, device=x.device)
        x_scale = (one if x_scale is None else x_scale) * factor
    return left, right, x_scale


def _words(tensor: Tensor) -> Tensor:
    """A tensor whose memory is contiguous and can be loaded 16 bytes at a time."""
    if tensor.is_contiguous() and not tensor.data_ptr() % 16:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _scale(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.reshape(-1).contiguous()


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, values, index, bias, *_ = inputs
    ctx.save_for_backward(x, values, index)
    ctx.bias = None if bias is None else bias.dtype


def _gradient(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    """Dense products: of the weight, and one whose kept elements are those of `values`."""
    x, values, index = ctx.saved_tensors
    needs_grad = (*ctx.needs_input_grad, False, False)
    narrow = dy.to(x.dtype).reshape(-1, values.shape[0])
    dx = dvalues = dbias = None
    if needs_grad[0]:
        dx = torch.ops.wavecast.matmul(narrow, expand_sparse24(values, index)).reshape(x.shape)
    if needs_grad[1]:
        dense = torch.ops.wavecast.matmul(narrow.t(), x.reshape(-1, x.shape[-1]))
        dvalues = dense.gather(1, dense_columns(index))
    if needs_grad[3] and ctx.bias is not None:
        wide = describe.wide_dtype(dy)
        dbias = dy.reshape(-1, values.shape[0]).sum(0, dtype=wide).to(ctx.bias)
    return dx, dvalues, None, dbias, None, None, None


def _has_row_scales(x_scale: Tensor | None = None, **_: Any) -> bool:
    """Whether every row of `x` has another scale."""
    return x_scale is not None and x_scale.numel() > 1


def _random_index(make: Make, shape: tuple[int, ...]) -> Tensor:
    """An index [rows, words] of random positions that ascend."""
    codes = torch.tensor([first | second << 2 for first, second in POSITIONS])
    if not make.values:  # nobody reads it
        return torch.zeros(shape, dtype=torch.int32, device=make.device)
    chosen = codes[make.integers((*shape, 8), 0, len(POSITIONS)).cpu()]
    words = (chosen << torch.arange(0, 32, 4)).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32).to(make.device)


def _index(make: Make, shape: tuple[int, ...], dtype: torch.dtype, case: Sizes) -> Tensor:
    del dtype, case
    return _random_index(make, shape)


def _values(make: Make, shape: tuple[int, ...], dtype: torch.dtype, case: Sizes) -> Tensor:
    del case
    if dtype == torch.int8:
        return make.integers(shape, -128, 128, dtype)
    return make.normal(shape, dtype)


_INPUTS = TENSORS.inputs(
    absent=("bias", "x_scale", "weight_scale"),
    options={"out": "out_dtype"},
    x=_values,
    values=_values,
    index=_index,
)


def _inputs(make: Make, scales: str = "", **case: Any) -> dict[str, Any]:
    """`scales` are `rows`, `tensor`, or none; `other` is the dtype of the values where it is
    another."""
    case["values_dtype"] = case.pop("other", None) or case["dtype"]
    if case.get("bias"):
        case["bias_dtype"] = "float64" if case["dtype"] == "float64" else "bfloat16"
    arguments = _INPUTS(make, **case)
    if scales:
        for name, count in (("x_scale", case["m"]), ("weight_scale", case["n"])):
            shape = (count if scales == "rows" else 1,)
            arguments[name] = make.uniform(shape, "float32", 0.01, 0.1)
    return arguments


def _work(scales: str = "", out: str = "", **case: Any) -> Work:
    """The products of elements that are kept."""
    m, n, k, dtype = (case[name] for name in ("m", "n", "k", "dtype"))
    narrow = getattr(torch, dtype).itemsize == 1
    case["values_dtype"] = case.pop("other", None) or dtype
    case["y_dtype"] = out or ("bfloat16" if narrow else dtype)
    name = rate_of(getattr(torch, dtype))
    work = TENSORS.work(
        lambda **_: {name: 1.0 * m * n * k}, absent=("bias", "x_scale", "weight_scale")
    )(**case)
    scale_bytes = {"": 0, "rows": 4 * (m + n), "tensor": 8}[scales]
    return replace(work, bytes_read=(work.bytes_read or 0.0) + scale_bytes)


OPERATOR = describe.Operator(
    summary="product with weights of which two in four are zero, compressed",
    call=matmul_sparse24,
    tensors=TENSORS,
    inputs=_inputs,
    work=_work,
    batch=describe.Batch(("x",), unless=_has_row_scales),
    gradient=describe.Gradient(_setup, _gradient),
    tolerance=describe.Tolerance(ulps=1.0, accumulated=4e-6),
    targets=("gfx942", "gfx950", "gfx1200", "gfx1201", "gfx1250"),
    notes="gradients are dense products; that of `values` has the elements that are kept",
    cases=(
        *sizes("m n k dtype bias", (5, 48, 160, "bfloat16", True)),
        *sizes("m n k dtype", (70, 130, 288, "float16")),
        *sizes("m n k dtype scales", (33, 70, 320, "float8_e4m3fnuz", "tensor")),
        *sizes("m n k dtype scales bias", (20, 96, 192, "float8_e4m3fn", "rows", True)),
        *sizes("m n k dtype scales out", (65, 40, 448, "int8", "rows", "float32")),
    ),
    thorough=(
        *sizes("m n k dtype", (130, 260, 256, "bfloat16"), (1, 150, 2048, "bfloat16")),
        *sizes("m n k dtype", (24, 32, 128, "float8_e5m2"), (24, 32, 128, "float8_e5m2fnuz")),
        *sizes(
            "m n k dtype other",
            (24, 40, 128, "float8_e4m3fn", "float8_e5m2"),
            (24, 40, 128, "float8_e5m2fnuz", "float8_e4m3fnuz"),
        ),
        *sizes("m n k dtype out", (3, 64, 96, "float16", "float32")),
    ),
    shapes=sizes(
        "m n k dtype",
        (16, 28672, 4096, "bfloat16"),
        (1, 4096, 14336, "bfloat16"),
        (4096, 10240, 8192, "bfloat16"),
        (8192, 28672, 4096, "bfloat16"),
        (16, 28672, 4096, "float8_e4m3fn"),
        (4096, 10240, 8192, "float8_e4m3fn"),
        (4096, 10240, 8192, "int8"),
    ),
)
