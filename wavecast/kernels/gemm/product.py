"""Launches a dense product: strides, constants and workspace of its kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from wavecast.arch import Device
from wavecast.kernels import checks, gpu, tiles
from wavecast.kernels.choice import launch
from wavecast.kernels.gemm.epilogue import Terms
from wavecast.kernels.gemm.kernels import (
    matmul_kernel,
    matmul_rest_kernel,
    matmul_sum_kernel,
    matmul_vector_kernel,
)
from wavecast.kernels.gemm.space import REST, SUM, TILES, VECTOR
from wavecast.kernels.space import Settings

NAMES: Final = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int8: "int8",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e4m3fnuz: "fp8",
    torch.float8_e5m2: "fp8",
    torch.float8_e5m2fnuz: "fp8",
}
"""Operands by the names of `wavecast.model`."""
FP8: Final = tuple(kind for kind, name in NAMES.items() if name == "fp8")
PRECISIONS: Final = ("ieee", "tf32")

_NATIVE_FP8: Final = {
    "gfx942": (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    "gfx950": (torch.float8_e4m3fn, torch.float8_e5m2),
    "gfx1200": (torch.float8_e4m3fn, torch.float8_e5m2),
    "gfx1201": (torch.float8_e4m3fn, torch.float8_e5m2),
}
"""What matrix instructions take; the others are widened to bfloat16, which holds all their values.
NVIDIA's take the formats without `uz`, and its compiler knows no others."""
VECTORS: Final = ("fp32", "fp16", "bf16")
"""Operands that vector instructions multiply where there is one row of them."""
_DIVISOR: Final = 4096 * 3 * 5 * 7
_CUT: Final = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "PROGRAMS", "GROUP")
_PART: Final = 3
_TILES: Final = slice(4, 6)
"""Where the workspace and the descriptors stand among the arguments of `matmul_kernel`."""
_TMA: Final = 16
"""Bytes that a matrix's address and strides must be multiples of for TMA to load it."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What follows the sums (`wavecast.kernels.gemm.epilogue`). `gate` and `residual` are
    [rows, columns], scales are float32 of one element or one per row or column."""

    bias: torch.Tensor | None = None
    residual: torch.Tensor | None = None
    gate: torch.Tensor | None = None
    activation: str = "none"
    scale_a: torch.Tensor | None = None
    scale_b: torch.Tensor | None = None
    out_scale: torch.Tensor | None = None

    @property
    def name(self) -> str:
        """The terms there are, for the key of a configuration."""
        terms = ("bias", "residual", "gate", "scale_a", "scale_b", "out_scale")
        given = [term for term in terms if getattr(self, term) is not None]
        return " ".join([*given, *([self.activation] if self.activation != "none" else [])])

    def terms(self) -> Terms:
        """As the kernels take them."""
        return Terms(
            None if self.bias is None else self.bias.contiguous(),
            *_strided(self.gate),
            *_strided(self.residual),
            *_scale(self.scale_a),
            *_scale(self.scale_b),
            self.out_scale,
        )


def product(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    epilogue: Epilogue,
    precision: str = "ieee",
) -> None:
    """`out` = `a` [batch, M, K] times `b` [batch, K, N], any strides, then the epilogue. `out` is
    contiguous; a batch of one serves all."""
    device = gpu.launching()
    batch, m, n = out.shape
    k = a.shape[2]
    fp8_native = multiplies(a.dtype, device) and multiplies(b.dtype, device)
    rate, kept = _rate(a.dtype, precision, fp8_native, device)
    limit = torch.finfo(out.dtype).max if out.dtype in FP8 else 0.0
    wide = checks.wide(a, b, out, epilogue.gate, epilogue.residual)
    a_rows = a.stride(2) != 1 and a.stride(1) == 1
    b_columns = b.stride(1) != 1 and b.stride(2) == 1
    terms = epilogue.terms()
    if m == 1 and kept == "ieee" and NAMES[a.dtype] in VECTORS and not wide:
        _vector(a, b, out, epilogue, limit)
        return
    arguments: list[Any] = [
        *(a, b, out, torch.empty(1, dtype=_sums(a.dtype), device=a.device)),
        *(None, None, m, n, k),
        *(a.stride(0) if a.shape[0] > 1 else 0, a.stride(1), a.stride(2)),
        *(b.stride(0) if b.shape[0] > 1 else 0, b.stride(1), b.stride(2)),
        terms,
    ]
    taken: dict[str, Any] = {}

    def grid(settings: Settings) -> tuple[int, ...]:
        # The launch takes the arguments after it has the grid: workspace and descriptors are those
        # of these settings.
        taken.update(settings)
        arguments[_TILES] = [None, None]
        if settings["TMA"]:
            depth = settings["BLOCK_K"]
            arguments[_TILES] = [
                _descriptor(a, settings["BLOCK_M"], depth),
                _descriptor(b.transpose(1, 2), settings["BLOCK_N"], depth),
            ]
        shape = _parts(settings, m, n)
        if shape:
            arguments[_PART] = torch.empty(shape, dtype=_sums(a.dtype), device=a.device)
        return settings["PROGRAMS"] or _count(settings, m, n), settings["SPLIT_K"], batch

    problem = {
        "m": m,
        "n": n,
        "k": k,
        "batch": batch,
        "dtype": NAMES[a.dtype],
        "rate": rate,
        "types": f"{_short(a)} {_short(b)} {_short(out)}",
        "layout": ("T" if a_rows else "N") + ("N" if b_columns else "T"),
        "epilogue": epilogue.name,
        "precision": kept,
        "aligned": _aligned(a) and _aligned(b),
        "tma": rate != "fp32" and _in_tiles(a) and _in_tiles(b.transpose(1, 2)),
        "wide": wide,
    }
    launch(
        matmul_kernel,
        grid,
        arguments,
        TILES,
        problem,
        ACTIVATION=epilogue.activation,
        LIMIT=limit,
        A_ROWS=a_rows,
        B_COLUMNS=b_columns,
        M_DIVISOR=_divisor(m) if a_rows else 1,
        N_DIVISOR=_divisor(n),
        K_DIVISOR=_divisor(k),
        WIDEN=NAMES[a.dtype] == "fp8" and not fp8_native,
        PRECISION=kept,
        WIDE=wide,
        XCDS=tiles.xcds(device),
    )
    finish = {"ACTIVATION": epilogue.activation, "LIMIT": limit}
    kind = {"m": m, "n": n, "types": problem["types"], "epilogue": epilogue.name}
    if taken["SPLIT_K"] > 1:
        launch(
            matmul_sum_kernel,
            lambda s: (triton.cdiv(m, s["BLOCK_M"]), triton.cdiv(n, s["BLOCK_N"])),
            (arguments[_PART], out, m, n, terms),
            SUM,
            {**kind, "splits": taken["SPLIT_K"]},
            SPLITS=taken["SPLIT_K"],
            **finish,
        )
    elif _parts(taken, m, n):
        cut = {name: taken[name] for name in _CUT}
        rest = _count(taken, m, n) % taken["PROGRAMS"]
        launch(
            matmul_rest_kernel,
            lambda s: (rest, triton.cdiv(taken["BLOCK_M"], s["ROWS"])),
            (arguments[_PART], out, m, n, k, terms),
            REST,
            {**kind, "k": k, **cut},
            XCDS=tiles.xcds(device),
            **cut,
            **finish,
        )


def _vector(
    a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, epilogue: Epilogue, limit: float
) -> None:
    """A product with one row of A."""
    batch, _, n = out.shape
    k = a.shape[2]
    launch(
        matmul_vector_kernel,
        lambda settings: (triton.cdiv(n, settings["BLOCK_N"]), batch),
        (
            *(a, b, out, n, k, a.stride(0) if a.shape[0] > 1 else 0, a.stride(2)),
            *(b.stride(0) if b.shape[0] > 1 else 0, b.stride(1), b.stride(2)),
            epilogue.terms(),
        ),
        VECTOR,
        {
            "n": n,
            "k": k,
            "batch": batch,
            "dtype": NAMES[a.dtype],
            "types": f"{_short(a)} {_short(b)} {_short(out)}",
            "rows": b.stride(1) != 1 and b.stride(2) == 1,
            "epilogue": epilogue.name,
            "aligned": _aligned(b),
        },
        ACTIVATION=epilogue.activation,
        LIMIT=limit,
        N_DIVISOR=_divisor(n),
        K_DIVISOR=_divisor(k),
    )


def _count(settings: Settings, m: int, n: int) -> int:
    """Tiles of a result."""
    return triton.cdiv(m, settings["BLOCK_M"]) * triton.cdiv(n, settings["BLOCK_N"])


def _parts(settings: Settings, m: int, n: int) -> tuple[int, ...]:
    """The shape of the workspace, () where there is none."""
    if settings["SPLIT_K"] > 1:
        return settings["SPLIT_K"], m, n
    programs = settings["PROGRAMS"]
    if programs and _count(settings, m, n) % programs:
        return programs, 2, settings["BLOCK_M"], settings["BLOCK_N"]
    return ()


def refuse(operator: str, *kinds: torch.dtype) -> None:
    """Raise ArgumentError for a format the GPU's compiler does not know."""
    device = gpu.launching()
    for kind in kinds:
        known = device.target.startswith("gfx") or "fnuz" not in str(kind)
        checks.require(known, operator, f"{_name(kind)} is no format of {device.id}")


def multiplies(kind: torch.dtype, device: Device) -> bool:
    """Whether a device's matrix instructions take an fp8 format."""
    if not device.target.startswith("gfx"):
        return True
    return kind in _NATIVE_FP8.get(device.target, ())


def _rate(kind: torch.dtype, precision: str, fp8_native: bool, device: Device) -> tuple[str, str]:
    """The dtype the matrix pipes multiply, and Triton's name of the precision. Where there is no
    instruction for tf32, three products of bfloat16 halves, which are more exact, take its place.
    """
    if kind == torch.float32 and precision == "tf32":
        if device.target == "gfx942" or not device.target.startswith("gfx"):
            return "xf32", "tf32"
        return "bf16", "bf16x3"
    if kind in FP8 and not fp8_native:
        return "bf16", "ieee"
    return NAMES[kind], "ieee"


def _sums(kind: torch.dtype) -> torch.dtype:
    return torch.int32 if kind == torch.int8 else torch.float32


def _aligned(matrices: torch.Tensor) -> bool:
    """Whether rows (or columns) can be loaded 16 bytes at a time."""
    along = [s for s in matrices.stride()[1:] if s != 1]
    return len(along) < 2 and all(step * matrices.element_size() % 16 == 0 for step in along)


def _in_tiles(matrices: torch.Tensor) -> bool:
    """Whether TMA can load tiles of [batch, size, K] in the order tensor cores take them: 16-bit
    elements contiguous along either dimension, others along K."""
    if matrices.stride(2) != 1 and matrices.element_size() == 2:
        matrices = matrices.transpose(1, 2)
    steps = matrices.stride()[1 if matrices.shape[0] == 1 else 0 : 2]
    return (
        matrices.stride(2) == 1
        and matrices.stride(1) >= matrices.shape[2]
        and all(step > 0 and step * matrices.element_size() % _TMA == 0 for step in steps)
        and matrices.data_ptr() % _TMA == 0
    )


def _descriptor(matrices: torch.Tensor, size: int, depth: int) -> TensorDescriptor:
    """Of [batch, size, K], the contiguous dimension last, in tiles of `size` by `depth`."""
    tile = [1, size, depth]
    if matrices.stride(2) != 1:
        matrices, tile = matrices.transpose(1, 2), [1, depth, size]
    batch, rows, _ = matrices.shape
    step = matrices.stride(1)
    steps = [matrices.stride(0) if batch > 1 else rows * step, step, 1]
    return TensorDescriptor(matrices, list(matrices.shape), steps, tile)


def _divisor(size: int) -> int:
    """What a size shares with those of blocks: a block that divides it divides this."""
    return math.gcd(size, _DIVISOR)


def _strided(tensor: torch.Tensor | None) -> tuple[Any, int, int]:
    return (None, 0, 0) if tensor is None else (tensor, tensor.stride(0), tensor.stride(1))


def _scale(tensor: torch.Tensor | None) -> tuple[Any, int]:
    if tensor is None:
        return None, 0
    flat = tensor.reshape(-1)
    return flat, flat.stride(0) if flat.numel() > 1 else 0


def _short(tensor: torch.Tensor) -> str:
    return _name(tensor.dtype)


def _name(kind: torch.dtype) -> str:
    return str(kind).removeprefix("torch.")


__all__ = ["FP8", "NAMES", "PRECISIONS", "Epilogue", "multiplies", "product", "refuse"]
