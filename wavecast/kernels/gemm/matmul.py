"""Matrix products: one with what follows it, activation(a b + bias) · gate + residual, and those of
a batch."""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import checks, describe
from wavecast.kernels.describe import Make, Sizes, sizes, wide_dtype
from wavecast.kernels.gemm import epilogue
from wavecast.kernels.gemm.epilogue import ACTIVATIONS
from wavecast.kernels.gemm.product import PRECISIONS, Epilogue, flops, matrices, product

TENSORS = describe.Signature(
    "a: [..., k] float|int8",
    "b: [k, n] =a",
    "bias?: [n] float",
    "residual?: [..., n] float",
    "gate?: [..., n] float",
    returns=("y: [..., n] =a",),
    leading="m",
)
BATCHED_TENSORS = describe.Signature(
    "a: [a_batch, m, k] float|int8", "b: [b_batch, k, n] =a", returns=("y: [batch, m, n] =a",)
)
FURTHER = ("bias", "residual", "gate")


@TENSORS.checked
def matmul(
    a: Tensor, b: Tensor, bias: Tensor | None = None, residual: Tensor | None = None,
    gate: Tensor | None = None, activation: str = "none", out_dtype: torch.dtype | None = None,
    precision: str = "ieee",
) -> Tensor:  # fmt: skip
    """`activation(a @ b + bias) * gate + residual`.

    `a` is [..., K] and `b` [K, N], of one dtype, with any strides, so that transposed operands need
    no copy. float32, float16 and bfloat16 are summed in float32, int8 in int32. `bias` is [N],
    `residual` and `gate` are [..., N] like the result, of any floating dtype. `activation` is one
    of none, relu, gelu, gelu_tanh and silu. The result is of `out_dtype`, by default that of `a`
    (int32 for int8), and contiguous.

    `precision` concerns float32: `ieee` multiplies it as it is, `tf32` rounds operands to ten bits
    of mantissa on GPUs with such matrix instructions (gfx942, NVIDIA) and to sixteen or more
    elsewhere (three products of bfloat16). Raises ArgumentError.
    """
    dtype = result_dtype("matmul", a, out_dtype, precision)
    checks.one_of("matmul", "activation", activation, ACTIVATIONS)
    after = Epilogue(bias, residual, gate, activation)
    integers = dtype == torch.int32 and after != Epilogue()
    checks.require(not integers, "matmul", "int32 results take no bias, gate or activation")
    if not a.numel() or not b.numel():
        return matmul_reference(a, b, bias, residual, gate, activation, out_dtype, precision)
    out = torch.empty((*a.shape[:-1], b.shape[1]), dtype=dtype, device=a.device)
    return product(a.reshape(1, -1, a.shape[-1]), b.unsqueeze(0), out, after, precision)


def matmul_reference(
    a, b, bias=None, residual=None, gate=None, activation="none", out_dtype=None, precision="ieee"
):
    """`torch.matmul`, in float32 at least; int8 in float64, where its sums are exact."""
    integers = a.dtype == torch.int8
    wide = torch.float64 if integers else wide_dtype(a)
    total = epilogue.reference(a.to(wide) @ b.to(wide), bias, residual, gate, activation)
    return total.to(out_dtype or (torch.int32 if integers else a.dtype)).contiguous()


@BATCHED_TENSORS.checked
def batched_matmul(
    a: Tensor, b: Tensor, out_dtype: torch.dtype | None = None, precision: str = "ieee"
) -> Tensor:
    """`a @ b` for every matrix of a batch.

    `a` is [B, M, K] and `b` [B, K, N], with any strides; either may have a batch of one, which then
    serves all. Dtypes, `out_dtype` and `precision` are those of `matmul`. The result [B, M, N] is
    contiguous. Raises ArgumentError.
    """
    name = "batched_matmul"
    dtype = result_dtype(name, a, out_dtype, precision)
    several = {a.shape[0], b.shape[0]} - {1}
    checks.require(len(several) <= 1, name, f"a has a batch of {a.shape[0]}, b one of {b.shape[0]}")
    if not a.numel() or not b.numel():
        return batched_matmul_reference(a, b, out_dtype, precision)
    shape = (max(a.shape[0], b.shape[0]), a.shape[1], b.shape[2])
    checks.require(shape[0] < 2**16, name, f"a batch of {shape[0]} is more than 65535")
    out = torch.empty(shape, dtype=dtype, device=a.device)
    return product(a, b, out, Epilogue(), precision)


def batched_matmul_reference(a, b, out_dtype=None, precision="ieee"):
    return matmul_reference(a, b, out_dtype=out_dtype, precision=precision)


def result_dtype(
    operator: str, a: Tensor, out_dtype: torch.dtype | None, precision: str
) -> torch.dtype:
    """The dtype of a product. Raises ArgumentError for one that it cannot have."""
    checks.one_of(operator, "precision", precision, PRECISIONS)
    integers = a.dtype == torch.int8
    dtype = out_dtype or (torch.int32 if integers else a.dtype)
    is_valid = dtype in checks.FLOATS or (integers and dtype == torch.int32)
    checks.require(is_valid, operator, f"no result of {dtype} for operands of {a.dtype}")
    return dtype


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, bias, residual, gate, activation, _, precision = inputs
    ctx.save_for_backward(a, b, bias, gate)
    ctx.residual = None if residual is None else residual.dtype
    ctx.activation, ctx.precision = activation, precision


def _gradient(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    """The sums before the activation are recomputed, in float32 at least."""
    a, b, bias, gate = ctx.saved_tensors
    ops = torch.ops.wavecast
    needs_grad = (*ctx.needs_input_grad, False, False)  # of the arguments given, perhaps two only
    dz, dgate = dy, None
    if gate is not None or ctx.activation != "none":
        z = ops.matmul(a, b, bias, out_dtype=wide_dtype(a), precision=ctx.precision)
        dz, dgate = ops.matmul_epilogue_backward(dy, z, gate, ctx.activation)
    columns = b.shape[1]
    narrow = dz.to(a.dtype)
    da = db = dbias = dresidual = None
    if needs_grad[0]:
        da = ops.matmul(narrow, b.t(), precision=ctx.precision)
    if needs_grad[1]:
        flat = a.reshape(-1, a.shape[-1])
        db = ops.matmul(flat.t(), narrow.reshape(-1, columns), precision=ctx.precision)
    if needs_grad[2] and bias is not None:
        dbias = dz.reshape(-1, columns).sum(0, dtype=wide_dtype(dz)).to(bias.dtype)
    if needs_grad[3] and ctx.residual is not None:
        dresidual = dy.to(ctx.residual)
    return da, db, dbias, dresidual, dgate, None, None, None


def _batched_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, _, ctx.precision = inputs
    ctx.save_for_backward(a, b)


def _batched_gradient(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    """A matrix that served the whole batch gets the gradient of all its rows at once."""
    a, b = ctx.saved_tensors
    ops = torch.ops.wavecast
    dy = dy.to(a.dtype)
    da = db = None
    if ctx.needs_input_grad[0]:
        if a.shape[0] < dy.shape[0]:
            left = dy.transpose(0, 1).reshape(dy.shape[1], -1)
            right = b.transpose(1, 2).reshape(-1, b.shape[1])
            da = ops.matmul(left, right, precision=ctx.precision).unsqueeze(0)
        else:
            da = ops.batched_matmul(dy, b.transpose(1, 2), precision=ctx.precision)
    if ctx.needs_input_grad[1]:
        if b.shape[0] < dy.shape[0]:
            left = a.reshape(-1, a.shape[2]).t()
            right = dy.reshape(-1, dy.shape[2])
            db = ops.matmul(left, right, precision=ctx.precision).unsqueeze(0)
        else:
            db = ops.batched_matmul(a.transpose(1, 2), dy, precision=ctx.precision)
    return da, db, None, None


def _sizes(case: Sizes) -> dict[str, Any]:
    """Sizes with the dtypes of the result and of what follows a product of integers, and with the
    batches of operands, of which `shared` names one that has a single matrix."""
    integers, dtype = case["dtype"] == "int8", case["dtype"]
    operand_sizes = {
        name: value for name, value in case.items() if name not in ("layout", "shared")
    }
    operand_sizes["y_dtype"] = case.get("out") or ("int32" if integers else dtype)
    if "batch" in case:
        shared = case.get("shared")
        return operand_sizes | {
            f"{operand}_batch": 1 if operand == shared else case["batch"] for operand in "ab"
        }
    return operand_sizes | {f"{name}_dtype": "float32" if integers else dtype for name in FURTHER}


def _has_epilogue(activation: str = "none", **options: Any) -> bool:
    """Whether the result is more than the product."""
    return activation != "none" or any(options.get(name) is not None for name in FURTHER)


def _inputs(tensors: describe.Signature) -> Any:
    """Inputs from sizes whose `layout` is that of `a` and `b`: N as they are multiplied, T
    transposed."""

    def inputs(make: Make, **case: Any) -> dict[str, Any]:
        def operand(
            stored: str, make: Make, shape: Any, dtype: Any, operand_sizes: Sizes
        ) -> Tensor:
            precision = case.get("precision", "ieee")
            return matrices(make, operand_sizes["dtype"], shape, stored == "T", precision)

        a, b = (partial(operand, stored) for stored in case.get("layout", "NT"))
        options = {"out": "out_dtype"}
        return tensors.inputs(absent=FURTHER, options=options, a=a, b=b)(make, **_sizes(case))

    return inputs


def _work(tensors: describe.Signature) -> Any:
    def work(**case: Any) -> describe.Work:
        count = case.get("batch", 1) * math.prod(case[name] for name in "mnk")
        rate = flops(count, case["dtype"], case.get("precision", "ieee"))
        return tensors.work(lambda **_: rate, absent=FURTHER)(**_sizes(case))

    return work


MATMUL = describe.Operator(
    summary="matrix product with bias, activation, gate and residual",
    call=matmul,
    inputs=_inputs(TENSORS),
    work=_work(TENSORS),
    batch=describe.Batch(("a", "residual", "gate")),
    independent=("n",),
    summed={"k": _has_epilogue},
    gradient=describe.Gradient(_setup, _gradient),
    tolerance=describe.Tolerance(ulps=1.0, accumulated=4e-6),
    notes="tf32 is bfloat16x3 where the GPU has no instruction for it, which is more exact",
    cases=(
        *sizes(
            "m n k dtype layout bias residual gate activation",
            (5, 17, 19, "float32", "NN", True, True, True, "silu"),
        ),
        *sizes("m n k dtype bias activation", (70, 150, 200, "bfloat16", True, "gelu_tanh")),
        *sizes("m n k dtype residual", (3, 200, 1024, "float16", True)),
        *sizes("m n k dtype layout", (40, 72, 264, "bfloat16", "TN"), (33, 48, 160, "int8", "NN")),
    ),
    thorough=(
        *sizes("m n k dtype layout", (144, 96, 256, "bfloat16", "NN")),
        *sizes("m n k dtype layout activation", (96, 130, 128, "float16", "TT", "relu")),
        *sizes("m n k dtype activation out", (20, 64, 96, "bfloat16", "gelu", "float32")),
        *sizes("m n k dtype precision layout", (48, 40, 72, "float32", "tf32", "NN")),
        *sizes("m n k dtype precision", (48, 64, 136, "float32", "tf32")),
        *sizes("m n k dtype layout activation", (64, 64, 64, "float32", "TN", "relu")),
        *sizes("m n k dtype out bias", (17, 64, 136, "int8", "bfloat16", True)),
        *sizes("m n k dtype layout", (64, 32, 64, "int8", "TN")),
        *sizes("m n k dtype bias activation", (1, 96, 2048, "bfloat16", True, "silu")),
        *sizes("m n k dtype layout gate", (1, 257, 515, "float16", "NN", True)),
    ),
    shapes=sizes(
        "m n k dtype layout",
        (1, 4096, 4096, "bfloat16"),
        (16, 28672, 4096, "bfloat16"),
        (16, 4096, 14336, "bfloat16"),
        (64, 2112, 7168, "bfloat16"),
        (64, 8192, 28672, "bfloat16"),
        (512, 5120, 2880, "bfloat16"),
        (512, 6144, 4096, "bfloat16"),
        (4096, 10240, 8192, "bfloat16"),
        (4096, 2880, 4096, "bfloat16"),
        (4096, 7168, 2048, "bfloat16"),
        (8192, 28672, 4096, "bfloat16"),
        (4096, 4096, 4096, "bfloat16", "TN"),
    ),
)
BATCHED = describe.Operator(
    summary="products of a batch of matrices",
    call=batched_matmul,
    inputs=_inputs(BATCHED_TENSORS),
    work=_work(BATCHED_TENSORS),
    batch=describe.Batch(
        ("a", "b"), merged=True, unless=lambda a, b, **_: a.shape[0] != b.shape[0]
    ),
    gradient=describe.Gradient(_batched_setup, _batched_gradient),
    tolerance=describe.Tolerance(ulps=1.0, accumulated=4e-6),
    cases=(
        *sizes("batch m n k dtype layout", (3, 5, 18, 33, "float32", "NN")),
        *sizes("batch m n k dtype", (2, 40, 70, 136, "bfloat16")),
        *sizes("batch m n k dtype layout shared", (3, 33, 24, 64, "float16", "TN", "b")),
    ),
    thorough=(
        *sizes("batch m n k dtype shared", (2, 16, 64, 72, "int8", "a")),
        *sizes("batch m n k dtype layout out", (2, 7, 64, 72, "bfloat16", "TT", "float32")),
        *sizes("batch m n k dtype precision", (2, 17, 40, 72, "float32", "tf32")),
        *sizes("batch m n k dtype shared", (3, 1, 40, 300, "float32", "b")),
    ),
    shapes=sizes(
        "batch m n k dtype layout",
        (128, 512, 512, 128, "bfloat16"),
        (16, 2048, 2048, 2048, "bfloat16"),
        (128, 16, 512, 128, "bfloat16", "NN"),
    ),
)
OPERATORS = (MATMUL, BATCHED)
