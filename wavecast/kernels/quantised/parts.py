"""What the products of this family share: tiles to choose from, and sums of a split K."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe, tiles
from wavecast.kernels.describe import Device, KernelSpec, Problem, Settings, coefficient
from wavecast.perfmodel.ranking import SkinnyProduct

OUTPUTS: Final = (torch.bfloat16, torch.float16, torch.float32)
"""Dtypes of results."""
_MOST_PARTS_BYTES: Final = 2**27
"""Bytes that the parts of a split K may take."""
SKINNY: Final = 64
"""Rows of A up to which reading B takes most of the time."""


@triton.jit
def add_parts_kernel(part_ptr, out_ptr, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Adds up the parts of a result in their order."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < count
    acc = tl.load(part_ptr + offs, mask=mask, other=0.0)
    for part in tl.static_range(1, PARTS):  # pyright: ignore[reportGeneralTypeIssues]
        acc += tl.load(part_ptr + part * count + offs, mask=mask, other=0.0)
    tl.store(out_ptr + offs, acc.to(out_ptr.dtype.element_ty), mask=mask)


def run(spec: describe.KernelSpec, problem: Problem, out: Tensor, **arguments: Any) -> None:
    """Launch a kernel whose programs write tiles of `out`, or with `SPLIT_K` in its settings parts
    of them to its parameter `part_ptr`, which are then added up in their order."""
    launched = choice.run(spec, problem, out=out, **arguments)
    parts = launched.settings["SPLIT_K"]
    if parts > 1:
        adding = {"count": out.numel(), "parts": parts, "bytes": out.element_size()}
        choice.run(ADD, adding, part=launched.workspaces["part"], out=out)


ADD = KernelSpec.streaming(
    add_parts_kernel,
    grid="cdiv(count, BLOCK)",
    axes={"BLOCK": (64, 128, 256, 512, 1024), "num_warps": (1, 2, 4)},
    read="4.0 * count * parts",
    written="count * bytes",
    elements="BLOCK",
    instructions="3.0 + 2.0 * parts",
    live_registers="1.0 + parts",
    rounded=("count",),
)


def splits(problem: Problem) -> tuple[int, ...]:
    """Parts that K may be split into: for results of few tiles."""
    if problem["m"] * problem["n"] > 2**21:
        return (1,)
    return (1, 2, 4, 8, 16)


def splits_fit(problem: Problem, settings: Settings, depth: int) -> bool:
    """Whether every part has two steps of `depth` at least, and the parts have room."""
    splits = settings["SPLIT_K"]
    if splits == 1:
        return True
    room = splits * problem["m"] * problem["n"] * 4 <= _MOST_PARTS_BYTES
    return room and splits * depth * 2 <= problem["k"]


def split_kernel(
    function: Any, axes: Any, fits: Any, demand: Any, **fields: Any
) -> describe.KernelSpec:
    """A kernel whose programs compute a tile, or one of `SPLIT_K` parts of it."""

    def workspaces(problem: Problem, settings: Settings) -> Mapping[str, describe.Workspace]:
        number = settings["SPLIT_K"]
        shape = (number, problem["m"], problem["n"]) if number > 1 else (1,)
        return {"part": describe.Workspace(shape)}

    return describe.KernelSpec(
        function=function,
        grid="cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N), SPLIT_K",
        workspaces=workspaces,
        axes=axes,
        fits=fits,
        demand=demand,
        rounded=("m",),
        **fields,
    )


def fits(
    problem: Problem, settings: Settings, device: Device, step: float, sums: int, depth: int
) -> bool:
    """Whether a tile fits that has `step` bytes of operands in a step of `depth` elements, and
    `sums` accumulators per element: into the LDS, the registers, and the parts of K."""
    if step * tiles.buffers(settings, device) > device.limits().lds_max_per_workgroup:
        return False
    return fits_lanes(settings, device, sums) and splits_fit(problem, settings, depth)


def fits_lanes(settings: Settings, device: Device, sums: int) -> bool:
    """Whether every wave of a tile has a square of 16 at least, and no lane more accumulators than
    registers, of which a tile has `sums` at once."""
    elements, waves = settings["BLOCK_M"] * settings["BLOCK_N"], settings["num_warps"]
    most = coefficient("ranking_product", "accumulators").of(device)
    return 256 * waves <= elements and elements * sums / (waves * device.wave_lanes) <= most


def half_axes(device: Device) -> Mapping[str, Sequence[Any]]:
    """Axes of bfloat16 and float16 products by AMD's generation. On CDNA a step of 64 elements
    reads whole cache lines of every row; before gfx950 operands come from the LDS by 16 bytes with
    `kpack`."""
    if device.wave_lanes != 64:
        return {"BLOCK_K": (32, 64), "matrix_instr_nonkdim": (0,)}
    axes = {"BLOCK_K": (64,), "matrix_instr_nonkdim": (16,)}
    return {**axes, "kpack": (2,)} if device.capabilities.matrix_half_k else axes


def most_columns(device: Device) -> int:
    """Columns of a tile of bfloat16 or float16: 128 on CDNA where operands wait in registers."""
    capabilities = device.capabilities
    staged = capabilities.matrix_unit == "mfma" and not capabilities.direct_to_lds
    return 128 if staged else 256


def skinny(
    problem: Problem, settings: Settings, weights: float, size: float, depth: int = 128
) -> SkinnyProduct:
    """The demand of a product of at most `SKINNY` rows of elements of `size` bytes, which reads
    `weights` bytes of the other operand."""
    sizes = {name: problem[name] for name in "mnk"} | tiles.sides(settings) | {"tile_k": depth}
    return SkinnyProduct(**sizes, weights=weights, size=size, splits=settings["SPLIT_K"])


def tiled_product(
    problem: Problem, settings: Settings, dtype: str, depth: int, **more: Any
) -> describe.TiledProduct:
    """The demand of a product of many rows in `dtype`, with steps of `depth` elements."""
    splits = settings.get("SPLIT_K", 1)
    return tiles.product(problem, settings, dtype, tile_k=depth, splits=splits, **more)


def check_output(operator: str, dtype: torch.dtype) -> None:
    """Raise ArgumentError for a dtype that products do not return."""
    names = ", ".join(str(output_dtype).removeprefix("torch.") for output_dtype in OUTPUTS)
    checks.require(dtype in OUTPUTS, operator, f"out_dtype is none of {names}")


def output_work(
    signature: describe.Signature, flops: Callable[..., Any]
) -> Callable[..., describe.Work]:
    """`Operator.work` of a product that takes `out_dtype`, which sizes name `out`."""
    work = signature.work(flops)
    return lambda out="bfloat16", **sizes: work(out_dtype=out, **sizes)
