"""Launches a dense product: strides, constants and workspace of its kernels."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from wavecast.dtypes import lookup
from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import Device, KernelSpec, Make, Problem, Settings
from wavecast.kernels.gemm import kernels, tiling
from wavecast.kernels.gemm.epilogue import Terms
from wavecast.launch import gpu
from wavecast.launch.inputs import FP8

PRECISIONS: Final = ("ieee", "tf32")

_VECTORS: Final = ("fp32", "fp16", "bf16")
"""Operands that vector instructions multiply where there is one row of them."""
_DIVISOR: Final = 4096 * 3 * 5 * 7
_CUT: Final = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "PROGRAMS", "GROUP")
_TMA_ALIGNMENT: Final = 16
"""Bytes that a matrix's address and strides must be multiples of for TMA to load it."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What follows the sums (`wavecast.kernels.gemm.epilogue`). `gate` and `residual` are
    [..., columns] like the result, scales are float32 of one element or one per row or column."""

    bias: Tensor | None = None
    residual: Tensor | None = None
    gate: Tensor | None = None
    activation: str = "none"
    scale_a: Tensor | None = None
    scale_b: Tensor | None = None
    out_scale: Tensor | None = None

    @property
    def name(self) -> str:
        """The terms there are, for the key of a configuration."""
        terms = ("bias", "residual", "gate", "scale_a", "scale_b", "out_scale")
        operands = [term for term in terms if getattr(self, term) is not None]
        return " ".join([*operands, *([self.activation] if self.activation != "none" else [])])

    def terms(self) -> Terms:
        """As the kernels take them."""
        return Terms(
            None if self.bias is None else self.bias.contiguous(),
            *_tensor_strides(self.gate),
            *_tensor_strides(self.residual),
            *_scale(self.scale_a),
            *_scale(self.scale_b),
            self.out_scale,
        )


def _tensor_strides(tensor: Tensor | None) -> tuple[Any, int, int]:
    if tensor is None:
        return None, 0, 0
    flat = tensor.reshape(-1, tensor.shape[-1])
    return flat, flat.stride(0), flat.stride(1)


def _scale(tensor: Tensor | None) -> tuple[Any, int]:
    if tensor is None:
        return None, 0
    flat = tensor.reshape(-1)
    return flat, flat.stride(0) if flat.numel() > 1 else 0


def product(
    a: Tensor, b: Tensor, out: Tensor, epilogue: Epilogue, precision: str = "ieee"
) -> Tensor:
    """`out`, which is `a` [batch, M, K] times `b` [batch, K, N], any strides, then the epilogue.

    `out` is contiguous, of any shape with as many elements; a batch of one serves all.
    """
    device, result = gpu.launching(), out
    m, k, n = a.shape[1], a.shape[2], b.shape[2]
    out = out.view(-1, m, n)
    batch = out.shape[0]
    fp8_native = multiplies(a.dtype, device) and multiplies(b.dtype, device)
    rate, triton_precision = _rate(a.dtype, precision, fp8_native, device)
    wide = checks.wide(a, b, out, epilogue.gate, epilogue.residual)
    a_rows = a.stride(2) != 1 and a.stride(1) == 1
    b_columns = b.stride(1) != 1 and b.stride(2) == 1
    types = " ".join(str(tensor.dtype).removeprefix("torch.") for tensor in (a, b, out))
    finish: dict[str, Any] = {
        "terms": epilogue.terms(),
        "ACTIVATION": epilogue.activation,
        "LIMIT": torch.finfo(out.dtype).max if out.dtype in FP8 else 0.0,
    }
    strides = {
        "a_batch": a.stride(0) if a.shape[0] > 1 else 0,
        "a_step": a.stride(2),
        "b_batch": b.stride(0) if b.shape[0] > 1 else 0,
        "b_step": b.stride(1),
        "b_column": b.stride(2),
    }
    divisors = {"N_DIVISOR": math.gcd(n, _DIVISOR), "K_DIVISOR": math.gcd(k, _DIVISOR)}
    operands = {"a": a, "b": b, "out": out, **strides, **divisors, **finish}
    problem = {"n": n, "k": k, "batch": batch, "dtype": rate_of(a.dtype), "types": types}
    problem["epilogue"] = epilogue.name
    if m == 1 and triton_precision == "ieee" and rate_of(a.dtype) in _VECTORS and not wide:
        choice.run(VECTOR, {**problem, "rows": b_columns, "aligned": _is_aligned(b)}, **operands)
        return result
    problem |= {
        "m": m,
        "rate": rate,
        "layout": ("T" if a_rows else "N") + ("N" if b_columns else "T"),
        "precision": triton_precision,
        "aligned": _is_aligned(a) and _is_aligned(b),
        "tma": rate != "fp32" and _in_tiles(a) and _in_tiles(b.transpose(1, 2)),
        "wide": wide,
    }
    launch = choice.run(
        TILES, problem, **operands, a_row=a.stride(1), A_ROWS=a_rows, B_COLUMNS=b_columns,
        M_DIVISOR=math.gcd(m, _DIVISOR) if a_rows else 1,
        WIDEN=rate_of(a.dtype) == "fp8" and not fp8_native,
    )  # fmt: skip
    settings, parts = launch.settings, launch.workspaces["part"]
    adding = {"part": parts, "out": out, **finish}
    problem = {"m": m, "n": n, "types": types, "epilogue": epilogue.name}
    if settings["SPLIT_K"] > 1:
        choice.run(SUM, {**problem, "splits": settings["SPLIT_K"]}, **adding)
    elif parts.numel() > 1:
        cut = {name: settings[name] for name in _CUT}
        choice.run(REST, {**problem, "k": k, **cut}, **adding)
    return result


def rate_of(dtype: torch.dtype) -> str:
    """The name of the rate at which a GPU multiplies a dtype, in `wavecast.perfmodel`."""
    return lookup(str(dtype)).rate


def refuse(operator: str, *dtypes: torch.dtype) -> None:
    """Raise ArgumentError for a format the GPU's compiler does not know."""
    device = gpu.launching()
    for dtype in dtypes:
        name = str(dtype).removeprefix("torch.")
        is_supported = device.vendor == "amd" or "fnuz" not in name
        checks.require(is_supported, operator, f"{device.id} does not support {name}")


def multiplies(dtype: torch.dtype, device: Device) -> bool:
    """Whether a device's matrix instructions take an fp8 format. NVIDIA's compiler, which knows
    those without `uz` only, widens them where they do not."""
    name = str(dtype).removeprefix("torch.")
    return device.vendor != "amd" or name in device.capabilities.matrix_fp8


def _rate(dtype: torch.dtype, precision: str, fp8_native: bool, device: Device) -> tuple[str, str]:
    """The dtype the matrix pipes multiply, and Triton's name of the precision. Where there is no
    instruction for tf32, three products of bfloat16 halves, which are more exact, take its place.
    """
    if dtype == torch.float32 and precision == "tf32":
        has_tf32 = device.capabilities.matrix_tf32
        return ("xf32", "tf32") if has_tf32 else ("bf16", "bf16x3")
    if dtype in FP8 and not fp8_native:
        return "bf16", "ieee"
    return rate_of(dtype), "ieee"


def _is_aligned(matrices: Tensor) -> bool:
    """Whether rows (or columns) can be loaded 16 bytes at a time."""
    steps = [step for step in matrices.stride()[1:] if step != 1]
    return len(steps) < 2 and all(step * matrices.element_size() % 16 == 0 for step in steps)


def _in_tiles(matrices: Tensor) -> bool:
    """Whether TMA can load tiles of [batch, size, K] in the order tensor cores take them: 16-bit
    elements contiguous along either dimension, others along K."""
    if matrices.stride(2) != 1 and matrices.element_size() == 2:
        matrices = matrices.transpose(1, 2)
    steps = matrices.stride()[1 if matrices.shape[0] == 1 else 0 : 2]
    return (
        matrices.stride(2) == 1
        and matrices.stride(1) >= matrices.shape[2]
        and all(step > 0 and step * matrices.element_size() % _TMA_ALIGNMENT == 0 for step in steps)
        and matrices.data_ptr() % _TMA_ALIGNMENT == 0
    )


def _descriptors(values: Mapping[str, Any]) -> Mapping[str, TensorDescriptor | None]:
    if not values["TMA"]:
        return {"a_tiles": None, "b_tiles": None}
    depth = values["BLOCK_K"]
    return {
        "a_tiles": _descriptor(values["a"], values["BLOCK_M"], depth),
        "b_tiles": _descriptor(values["b"].transpose(1, 2), values["BLOCK_N"], depth),
    }


def _descriptor(matrices: Tensor, size: int, depth: int) -> TensorDescriptor:
    """A descriptor of [batch, size, K], the contiguous dimension last, in tiles of `size` by
    `depth`."""
    tile = [1, size, depth]
    if matrices.stride(2) != 1:
        matrices, tile = matrices.transpose(1, 2), [1, depth, size]
    batch, rows, _ = matrices.shape
    step = matrices.stride(1)
    steps = [matrices.stride(0) if batch > 1 else rows * step, step, 1]
    return TensorDescriptor(matrices, list(matrices.shape), steps, tile)


def _workspaces(problem: Problem, settings: Settings) -> Mapping[str, describe.Workspace]:
    """The parts of sums, one element where there are none."""
    shape: tuple[int, ...] = (1,)
    programs = settings["PROGRAMS"]
    if settings["SPLIT_K"] > 1:
        shape = settings["SPLIT_K"], problem["m"], problem["n"]
    elif programs and tiling.count(problem, settings) % programs:
        shape = programs, 2, settings["BLOCK_M"], settings["BLOCK_N"]
    dtype = torch.int32 if problem["dtype"] == "int8" else torch.float32
    return {"part": describe.Workspace(shape, dtype)}


VECTOR: Final = KernelSpec.streaming(
    kernels.matmul_vector_kernel,
    grid="cdiv(n, BLOCK_N), batch",
    axes={  # with `rows`, B is contiguous along N
        "BLOCK_N": "(32, 64, 128, 256) if rows else (2, 4, 8, 16)",
        "BLOCK_K": "(8, 16, 32, 64) if rows else (256, 512, 1024, 2048)",
        "num_warps": (1, 2, 4),
    },
    fits="8 <= BLOCK_N * BLOCK_K / lanes <= (32 if aligned else 16)",
    read="batch * n * k * element_bytes(dtype)",
    written="batch * n * element_bytes(dtype)",
    elements="BLOCK_N * BLOCK_K",
    instructions="4.0 * cdiv(k, BLOCK_K)",
    live_registers=2.0,
)
TILES: Final = KernelSpec(
    function=kernels.matmul_kernel,
    grid="PROGRAMS or cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N), SPLIT_K, batch",
    axes=tiling.axes,
    fits=tiling.fits,
    demand=tiling.demand,
    workspaces=_workspaces,
    derived=_descriptors,
    rounded=("m",),
)
SUM: Final = KernelSpec.streaming(
    kernels.matmul_sum_kernel,
    grid="cdiv(m, BLOCK_M), cdiv(n, BLOCK_N)",
    axes={
        "BLOCK_M": "(1,) if m == 1 else (1, 4, 16)",
        "BLOCK_N": (64, 128, 256, 512),
        "num_warps": (1, 2, 4),
    },
    read="4.0 * m * n * splits",
    written="4.0 * m * n",
    elements="BLOCK_M * BLOCK_N",
    instructions="4.0 + 2.0 * splits",
    live_registers="1.0 + splits",
    rounded=("m",),
)
_LEFT_OVER: Final = "(cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N) % PROGRAMS)"
REST: Final = KernelSpec.streaming(
    kernels.matmul_rest_kernel,
    grid=f"{_LEFT_OVER}, cdiv(BLOCK_M, ROWS)",
    axes={"ROWS": (2, 4, 8, 16), "num_warps": (1, 2, 4)},
    read=f"4.0 * BLOCK_M * BLOCK_N * (PROGRAMS + {_LEFT_OVER})",
    written=f"4.0 * BLOCK_M * BLOCK_N * {_LEFT_OVER}",
    elements="ROWS * BLOCK_N",
    instructions=f"4.0 + 2.0 * cdiv(PROGRAMS, {_LEFT_OVER})",
    live_registers=3.0,
    rounded=("m",),
)


def matrices(
    make: Make, dtype: str, shape: tuple[int, ...], transposed: bool, precision: str = "ieee"
) -> Tensor:
    """An operand for tests, of any dtype, stored transposed if wanted. Values for tf32 are some
    that it can hold, so that only sums are rounded."""
    stored = (*shape[:-2], shape[-1], shape[-2]) if transposed else shape
    if dtype == "int8":
        matrix = make.integers(stored, -128, 128, dtype)
    elif precision == "tf32":
        matrix = make.normal(stored, "bfloat16").to(make.dtype(dtype))
    else:
        matrix = make.normal(stored, dtype)
    return matrix.transpose(-1, -2) if transposed else matrix


def flops(count: float, dtype: str, precision: str = "ieee") -> dict[str, float]:
    """Operations of a product with `count` multiplications, by the dtype that is multiplied."""
    return {"xf32" if precision == "tf32" else lookup(dtype).rate: 2.0 * count}
