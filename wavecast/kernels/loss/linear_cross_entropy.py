"""Cross entropy of logits that are a product, hidden · weightᵀ, without ever having all of them.

Forward, every tile of logits leaves the largest, the sum of exponentials and, where asked, the
plain sum of its rows; a second kernel joins the tiles of a row in their order. Backward, the
gradient of logits is made again for a part of the vocabulary at a time, from which two products
give the part's rows of the weight's gradient and its share of that of the hidden states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu, tiles
from wavecast.kernels.choice import launch
from wavecast.kernels.gemm.product import NAMES, Epilogue, product
from wavecast.kernels.inputs import Make
from wavecast.kernels.loss import terms
from wavecast.kernels.loss.terms import capped, loss_of, slope_of, weights_of
from wavecast.kernels.norm.rows import flat
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of
from wavecast.model.bounds import Work

_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""
_SLOPES = 2**28
"""Bytes that the gradient of a part's logits may take."""
_PARTS = 3
"""Where the tiles' results stand among the arguments of `linear_cross_entropy_kernel`."""


@triton.jit
def logits_of(
    hidden, weight, K, K_DIVISOR: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The logits of a tile; `hidden` and `weight` point to the rows of its rows and columns, the
    last one again where the tile reaches beyond it. K_DIVISOR is a power of two that divides K."""
    step = tl.arange(0, BLOCK_K)
    from_hidden = hidden + step[None, :]
    from_weight = weight + step[:, None]
    x = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if K_DIVISOR % BLOCK_K == 0:
            a = tl.load(from_hidden)
            b = tl.load(from_weight)
        else:
            left = start + step < K
            a = tl.load(from_hidden, mask=left[None, :], other=0.0)
            b = tl.load(from_weight, mask=left[:, None], other=0.0)
        x = tl.dot(a, b, x, input_precision=PRECISION, out_dtype=tl.float32)
        from_hidden += BLOCK_K
        from_weight += BLOCK_K
    return x


@triton.jit
def linear_cross_entropy_kernel(
    hidden_ptr, weight_ptr, targets_ptr, parts_ptr, chosen_ptr, M, N, K,
    hidden_row, weight_row, cap,
    SMOOTHED: tl.constexpr, CAPPED: tl.constexpr, K_DIVISOR: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """`parts_ptr` is [2 or 3, tiles across, M]: largest, sum of exponentials, plain sum."""
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), across, GROUP, XCDS)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    if WIDE:
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    x = logits_of(
        hidden_ptr + tl.minimum(rows, M - 1)[:, None] * hidden_row,
        weight_ptr + tl.minimum(columns, N - 1)[None, :] * weight_row,
        K, K_DIVISOR, PRECISION, BLOCK_M, BLOCK_N, BLOCK_K,
    )  # fmt: skip
    x = capped(x, cap, CAPPED)
    there = rows < M
    real = (columns < N)[None, :]
    to = parts_ptr + tile * M + rows
    if SMOOTHED:
        tl.store(to + 2 * across * M, tl.sum(tl.where(real, x, 0.0), axis=1), mask=there)
    target = tl.load(targets_ptr + rows, mask=there, other=-1) - tile * BLOCK_N
    here = there & (target >= 0) & (target < tl.minimum(BLOCK_N, N - tile * BLOCK_N))
    target = tl.where(here, target, -1).to(tl.int32)  # half the registers
    hit = tl.arange(0, BLOCK_N)[None, :] == target[:, None]
    tl.store(chosen_ptr + rows, tl.sum(tl.where(hit, x, 0.0), axis=1), mask=here)
    x = tl.where(real, x, -float("inf"))
    most = tl.maximum(tl.max(x, axis=1), _LOWEST)
    tl.store(to, most, mask=there)
    tl.store(to + across * M, tl.sum(tl.exp(x - most[:, None]), axis=1), mask=there)


@triton.jit
def linear_cross_entropy_join_kernel(
    parts_ptr, chosen_ptr, targets_ptr, loss_ptr, lse_ptr, rows, across, classes,
    ignored, smoothing, z_loss,
    BLOCK: tl.constexpr, TILES: tl.constexpr, SMOOTHED: tl.constexpr,
):  # fmt: skip
    """A block of rows per program, `TILES` tiles of them at a time."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = row < rows
    most = tl.full((TILES, BLOCK), _LOWEST, tl.float32)
    total = tl.zeros((TILES, BLOCK), tl.float32)
    plain = tl.zeros((TILES, BLOCK), tl.float32)
    for start in range(0, across, TILES):
        tile = start + tl.arange(0, TILES)
        inside = (tile < across)[:, None] & there[None, :]
        at = parts_ptr + tile[:, None] * rows + row[None, :]
        high = tl.load(at, mask=inside, other=_LOWEST)
        powers = tl.load(at + across * rows, mask=inside, other=0.0)
        before = most
        most = tl.maximum(most, high)
        total = total * tl.exp(before - most) + powers * tl.exp(high - most)
        if SMOOTHED:
            plain += tl.load(at + 2 * across * rows, mask=inside, other=0.0)
    top = tl.max(most, axis=0)
    lse = top + tl.log(tl.sum(total * tl.exp(most - tl.expand_dims(top, 0)), axis=0))
    target = tl.load(targets_ptr + row, mask=there, other=0)
    known = there & (target >= 0) & (target < classes)
    chosen = tl.load(chosen_ptr + row, mask=known, other=0.0)
    mean = tl.sum(plain, axis=0) / classes
    loss = loss_of(lse, chosen, mean, target, classes, ignored, smoothing, z_loss)
    tl.store(loss_ptr + row, loss, mask=there)
    tl.store(lse_ptr + row, lse, mask=there)


@triton.jit
def linear_cross_entropy_slopes_kernel(
    hidden_ptr, weight_ptr, targets_ptr, dloss_ptr, dlse_ptr, lse_ptr, slopes_ptr, M, N, K,
    first, classes, hidden_row, weight_row, ignored, smoothing, z_loss, cap,
    CAPPED: tl.constexpr, K_DIVISOR: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The gradient of the logits of N classes from `first` on."""
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), across, GROUP, XCDS)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    if WIDE:
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    x = logits_of(
        hidden_ptr + tl.minimum(rows, M - 1)[:, None] * hidden_row,
        weight_ptr + tl.minimum(columns, N - 1)[None, :] * weight_row,
        K, K_DIVISOR, PRECISION, BLOCK_M, BLOCK_N, BLOCK_K,
    )  # fmt: skip
    there = rows < M
    lse = tl.load(lse_ptr + rows, mask=there, other=0.0)
    target = tl.load(targets_ptr + rows, mask=there, other=-1)
    ignored = target == ignored
    target = tl.where((target >= 0) & (target < classes), target, -1).to(tl.int32)
    dloss = tl.load(dloss_ptr + rows, mask=there, other=0.0)
    dlse = tl.load(dlse_ptr + rows, mask=there, other=0.0) if dlse_ptr is not None else 0.0
    along, dloss = weights_of(lse, dloss, dlse, ignored, z_loss)
    slope = slope_of(
        x, (first + columns)[None, :], lse[:, None], target[:, None], along[:, None],
        dloss[:, None], classes, smoothing, cap, CAPPED,
    )  # fmt: skip
    inside = there[:, None] & (columns < N)[None, :]
    to = slopes_ptr + rows[:, None] * N + columns[None, :]
    tl.store(to, slope.to(slopes_ptr.dtype.element_ty), mask=inside)


def linear_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, lse) of every row of logits hidden · weightᵀ, which never exist as a whole.

    `hidden` is [rows, size], `weight` [classes, size], of one dtype: float32, float16 or bfloat16;
    logits are not rounded. `targets`, options and results are those of `cross_entropy`. Raises
    ArgumentError.
    """
    name = "linear_cross_entropy"
    _check(name, hidden, weight, targets)
    rows, size = hidden.shape
    classes = weight.shape[0]
    terms.check(name, rows, targets, label_smoothing, soft_cap)
    loss = torch.empty((rows,), dtype=torch.float32, device=hidden.device)
    lse = torch.empty_like(loss)
    if not rows:
        return loss, lse
    a, b, targets = flat(hidden), flat(weight), targets.contiguous()
    chosen = torch.empty_like(loss)
    smoothed = label_smoothing > 0
    arguments: list[Any] = [
        *(a, b, targets, loss, chosen, rows, classes, size),
        *(a.stride(0), b.stride(0), soft_cap),
    ]
    across: list[int] = []

    def grid(settings: Settings) -> tuple[int, ...]:
        # The launch takes the arguments after it has the grid: the workspace of these settings.
        across[:] = [triton.cdiv(classes, settings["BLOCK_N"])]
        arguments[_PARTS] = loss.new_empty((3 if smoothed else 2, across[0], rows))
        return (triton.cdiv(rows, settings["BLOCK_M"]) * across[0],)

    launch(
        linear_cross_entropy_kernel,
        grid,
        arguments,
        LOGITS,
        _problem(a, b, soft_cap, smoothed=smoothed),
        SMOOTHED=smoothed,
        CAPPED=soft_cap > 0,
        **_constants(a, b),
    )
    launch(
        linear_cross_entropy_join_kernel,
        lambda settings: (triton.cdiv(rows, settings["BLOCK"]),),
        (
            *(arguments[_PARTS], chosen, targets, loss, lse, rows, across[0], classes),
            *(ignore_index, label_smoothing, z_loss),
        ),
        JOIN,
        {"rows": rows, "across": across[0], "smoothed": smoothed},
        SMOOTHED=smoothed,
    )
    return loss, lse


def linear_cross_entropy_reference(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A product and the formula, in float32 at least."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    logits = hidden.to(kind) @ weight.to(kind).T
    return terms.reference(logits, targets, ignore_index, label_smoothing, z_loss, soft_cap)


def linear_cross_entropy_backward(
    dloss: torch.Tensor,
    dlse: torch.Tensor | None,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    lse: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `linear_cross_entropy` for `hidden` and `weight`, in their dtype.

    `dloss` and `dlse` (None: zeros) are [rows] of float32 like `lse`, which is that of the forward
    pass. The gradient of logits is rounded to that dtype, for part of the vocabulary at a time
    (256 MiB); shares of `hidden`'s are summed in float32 in a fixed order. Raises ArgumentError.
    """
    name = "linear_cross_entropy_backward"
    _check(name, hidden, weight, targets, dloss=dloss, dlse=dlse, lse=lse)
    rows, size = hidden.shape
    classes = weight.shape[0]
    terms.check(name, rows, targets, label_smoothing, soft_cap, dloss=dloss, dlse=dlse, lse=lse)
    dhidden = torch.zeros_like(hidden, memory_format=torch.contiguous_format)
    dweight = torch.zeros_like(weight, memory_format=torch.contiguous_format)
    if not rows:
        return dhidden, dweight
    a, b, targets = flat(hidden), flat(weight), targets.contiguous()
    dloss, lse = dloss.contiguous(), lse.contiguous()
    dlse = None if dlse is None else dlse.contiguous()
    part = _part(rows, classes, hidden.element_size())
    slopes = torch.empty((rows * part,), dtype=hidden.dtype, device=hidden.device)
    total = dhidden
    if part < classes and hidden.dtype != torch.float32:
        total = torch.empty(hidden.shape, dtype=torch.float32, device=hidden.device)
    for first in range(0, classes, part):
        ours = b[first : first + part]
        count = ours.shape[0]
        here = slopes[: rows * count].view(rows, count)
        launch(
            linear_cross_entropy_slopes_kernel,
            lambda s, n=count: (triton.cdiv(rows, s["BLOCK_M"]) * triton.cdiv(n, s["BLOCK_N"]),),
            (
                *(a, ours, targets, dloss, dlse, lse, here, rows, count, size),
                *(first, classes, a.stride(0), b.stride(0)),
                *(ignore_index, label_smoothing, z_loss, soft_cap),
            ),
            SLOPES,
            _problem(a, ours, soft_cap, dlse=dlse is not None),
            CAPPED=soft_cap > 0,
            **_constants(a, ours),
        )
        before = Epilogue(residual=total if first else None)
        last = first + part >= classes
        product(here[None], ours[None], (dhidden if last else total)[None], before)
        product(here.T[None], a[None], dweight[None, first : first + count], Epilogue())
    return dhidden, dweight


def linear_cross_entropy_backward_reference(
    dloss: torch.Tensor,
    dlse: torch.Tensor | None,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    lse: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Products and the formula, in float32 at least."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    a, b = hidden.to(kind), weight.to(kind)
    slope = terms.reference_slope(
        a @ b.T, targets, dloss, dlse, ignore_index, label_smoothing, z_loss, soft_cap
    )
    dhidden, dweight = (slope @ b).to(hidden.dtype), (slope.T @ a).to(weight.dtype)
    return dhidden.contiguous(), dweight.contiguous()


def _check(
    operator: str,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    **others: torch.Tensor | None,
) -> None:
    checks.dtype_in(operator, "hidden", hidden, checks.FLOATS)
    checks.shape_is(operator, "hidden", hidden, (-1, -1))
    checks.dtype_in(operator, "weight", weight, (hidden.dtype,))
    checks.shape_is(operator, "weight", weight, (-1, hidden.shape[1]))
    checks.require(weight.numel() > 0, operator, "weight is empty")
    checks.same_device(operator, hidden=hidden, weight=weight, targets=targets, **others)


def _part(rows: int, classes: int, size: int) -> int:
    """Classes whose logits' gradients are made at a time: parts of about one size."""
    count = triton.cdiv(classes * rows * size, _SLOPES)
    return min(classes, triton.cdiv(triton.cdiv(classes, count), 256) * 256)


def _constants(a: torch.Tensor, b: torch.Tensor) -> dict[str, Any]:
    k = a.shape[1]
    return {
        "K_DIVISOR": min(512, k & -k),
        "PRECISION": "ieee",
        "WIDE": checks.wide(a, b) or a.shape[0] * b.shape[0] >= 2**31,
        "XCDS": tiles.xcds(gpu.launching()),
    }


def _problem(a: torch.Tensor, b: torch.Tensor, soft_cap: float, **flags: bool) -> dict[str, Any]:
    return {
        "m": a.shape[0],
        "n": b.shape[0],
        "k": a.shape[1],
        "dtype": NAMES[a.dtype],
        "bytes": a.element_size(),
        "constants": str(_constants(a, b)),
        "aligned": (a.stride(0) | b.stride(0)) % 8 == 0,
        "capped": soft_cap > 0,
        **flags,
    }


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    hidden, weight, targets, *ctx.options = inputs
    ctx.save_for_backward(hidden, weight, targets, output[1])


def _gradient(ctx: Any, dloss: torch.Tensor, dlse: torch.Tensor) -> tuple[Any, ...]:
    found = torch.ops.wavecast.linear_cross_entropy_backward(
        dloss, dlse, *ctx.saved_tensors, *ctx.options
    )
    return (*found, None, None, None, None, None)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    """A step of 128 bytes of K reads whole cache lines; half of that on RDNA, whose LDS is small
    for its tiles. gfx950 copies to the LDS without registers and can be a step further ahead."""
    cdna = device.target.startswith("gfx9")
    rdna = device.target.startswith("gfx1")
    return {
        "BLOCK_M": _blocks(problem["m"], 128 if rdna else 256),
        "BLOCK_N": _blocks(problem["n"], 128 if rdna else 256),
        "BLOCK_K": ((64 if rdna else 128) // problem["bytes"],),
        "GROUP": (8,),
        "num_warps": (4, 8),
        "num_stages": (2, 3) if device.target == "gfx950" else (2,) if cdna or rdna else (3, 4),
        "matrix_instr_nonkdim": (16,) if cdna else (0,),
    }


def _blocks(size: int, largest: int) -> tuple[int, ...]:
    enough = min(largest, max(32, triton.next_power_of_2(size)))
    return tuple(block for block in (32, 64, 128, 256) if enough // 4 <= block <= enough)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """LDS, and registers of a lane: sums, and the operands of a step on their way to the LDS."""
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    stages = settings["num_stages"]
    if device.target.startswith("gfx") and device.target != "gfx950":
        stages = max(1, stages - 1)  # what is on its way is in registers
    limits = device.limits()
    step = (rows + columns) * settings["BLOCK_K"] * problem["bytes"]
    threads = settings["num_warps"] * limits.wave_lanes
    registers = rows * columns / threads + step / 4 / threads + 64
    return (
        step * stages <= limits.lds_max_per_workgroup
        and registers <= (200 if limits.wave_lanes == 32 else 320)
        and rows * columns >= 256 * settings["num_warps"]
    )


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """The product's, and by predictions of compiled code: a step further ahead pays, and so do
    fewer columns, each of which the epilogue adds up over."""
    ahead = 0.95 if settings["num_stages"] == 3 else 1.0
    flat_tile = 1.03 if settings["BLOCK_N"] > settings["BLOCK_M"] else 1.0
    return (
        ahead
        * flat_tile
        * estimates.tile(
            device,
            settings,
            m=problem["m"],
            n=problem["n"],
            k=problem["k"],
            dtype=problem["dtype"],
            rows=settings["BLOCK_M"],
            columns=settings["BLOCK_N"],
            depth=settings["BLOCK_K"],
        )
    )


def _join_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"BLOCK": (16, 32, 64), "TILES": (16, 32), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _join_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    block, held = settings["BLOCK"], settings["BLOCK"] * settings["TILES"]
    arrays = 2 + problem["smoothed"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["rows"], block),
        read=4.0 * arrays * problem["rows"] * problem["across"],
        written=8.0 * problem["rows"],
        elements=held,
        operations=16.0 * triton.cdiv(problem["across"], settings["TILES"]),
        held=4.0,
    )


LOGITS = Space(
    kernel="linear_cross_entropy_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("m",),
)
SLOPES = Space(
    kernel="linear_cross_entropy_slopes_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("m",),
)
JOIN = Space(
    kernel="linear_cross_entropy_join_kernel",
    axes=_join_axes,
    seconds=_join_seconds,
    classes=("rows", "across"),
)


def _inputs(
    make: Make, rows: int, size: int, classes: int, dtype: str, **options: Any
) -> dict[str, Any]:
    """The last of several targets is ignored."""
    targets = make.integers((rows,), 0, classes)
    if rows > 1:
        targets[-1] = -100
    return {
        "hidden": make.normal((rows, size), dtype),
        "weight": make.normal((classes, size), dtype, 2.0 / size**0.5),
        "targets": targets,
        **options,
    }


def _backward_inputs(
    make: Make, rows: int, size: int, classes: int, dtype: str, dlse: bool = True, **options: Any
) -> dict[str, Any]:
    given = _inputs(make, rows, size, classes, dtype, **options)
    kind = "float64" if dtype == "float64" else "float32"
    lse = make.normal((rows,), kind)
    if make.values:
        lse = linear_cross_entropy_reference(**given)[1]
    return {
        "dloss": make.normal((rows,), kind),
        "dlse": make.normal((rows,), kind) if dlse else None,
        **given,
        "lse": lse,
    }


def _work(products: int) -> Any:
    def work(rows: int, size: int, classes: int, dtype: str, **_: Any) -> Work:
        kind = getattr(torch, dtype)
        flops = {NAMES[kind]: 2.0 * products * rows * size * classes}
        factors = float((rows + classes) * size * kind.itemsize)
        written = factors if products > 1 else 8.0 * rows
        return Work(flops, factors, written, "formula", "formula")

    return work


_CASES = (
    {"rows": 5, "size": 24, "classes": 70, "dtype": "bfloat16"},
    {
        "rows": 70, "size": 40, "classes": 300, "dtype": "float16",
        "label_smoothing": 0.1, "z_loss": 0.01,
    },
    {"rows": 3, "size": 100, "classes": 513, "dtype": "float32", "soft_cap": 3.0},
)  # fmt: skip
_THOROUGH = (
    {"rows": 1, "size": 1, "classes": 1, "dtype": "float32"},
    {
        "rows": 130, "size": 72, "classes": 600, "dtype": "bfloat16",
        "label_smoothing": 0.2, "z_loss": 0.01, "soft_cap": 5.0,
    },
)  # fmt: skip
_SHAPES = ({"rows": 4096, "size": 4096, "classes": 128256, "dtype": "bfloat16"},)

OPERATORS = (
    Operator(
        name="linear_cross_entropy",
        summary="cross entropy of a product's logits, which never exist as a whole",
        call=linear_cross_entropy,
        reference=linear_cross_entropy_reference,
        inputs=_inputs,
        work=_work(1),
        batch=Batch(("hidden", "targets"), merged=True),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(LOGITS, JOIN),
        tolerance=Tolerance(ulps=8.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="linear_cross_entropy_backward",
        summary="gradients of linear_cross_entropy",
        call=linear_cross_entropy_backward,
        reference=linear_cross_entropy_backward_reference,
        inputs=_backward_inputs,
        work=_work(3),
        cases=_CASES,
        thorough=(
            *_THOROUGH,
            {"rows": 9, "size": 50, "classes": 90, "dtype": "bfloat16", "dlse": False},
        ),
        shapes=_SHAPES,
        spaces=(SLOPES,),
        tolerance=Tolerance(ulps=2.0, accumulated=3e-5),
    ),
)
