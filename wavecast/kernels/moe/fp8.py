"""Experts with fp8 weights: a scale per 128x128 of the weights, one per 128 of every activation.

Codes are e4m3fn on every GPU, so that results differ by no more than sums in float32 do. Where the
matrix pipes have no e4m3fn they multiply what stands for it exactly: on gfx942 its own e4m3fnuz,
in which a code is worth half (and one code, that of -0, is another); elsewhere float16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe import activations, experts, products, steps
from wavecast.kernels.moe.activations import activate
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.quantise.group import quantise_fp8_group, quantise_fp8_group_reference
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of, xcds
from wavecast.model.bounds import Work

_SQUARE: Final = 128
"""Rows and columns of weights, and channels of activations, that share a scale."""
_DIRECT: Final = 0
_HALVED: Final = 1
_WIDENED: Final = 2


@triton.jit
def _operand(code, WAY: tl.constexpr):
    """What the matrix pipes multiply for e4m3fn codes (uint8); half the value for _HALVED."""
    if WAY == 0:
        value = code.to(tl.float8e4nv, bitcast=True)
    elif WAY == 1:
        cleared = tl.where(code == 0x80, 0, code).to(tl.uint8)
        value = cleared.to(tl.float8e4b8, bitcast=True)
    else:
        bits = code.to(tl.uint16)
        half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
        value = half.to(tl.float16, bitcast=True) * 256.0
    return value


@triton.jit
def moe_up_fp8_kernel(
    x_ptr, x_scale_ptr, order_ptr, owners_ptr, used_ptr, w_ptr, w_scale_ptr, y_ptr, slots, top_k,
    alpha, limit, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, WAY: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr, XCDS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """As `moe_up_kernel`, in steps of 128 of K. Where 128 divides N a tile has one scale of gates
    and one of ups."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    DEEP: tl.constexpr = (K + 127) // 128
    UNIFORM: tl.constexpr = N % 128 == 0
    TIMES: tl.constexpr = 4.0 if WAY == 1 else 1.0
    number = tl.program_id(0)
    down = tl.load(used_ptr) // BLOCK_M
    if number >= down * across:
        return
    line, column = tile_of(number, down, across, GROUP, XCDS)
    expert = tl.load(owners_ptr + line).to(tl.int64)
    slot = tl.load(order_ptr + line * BLOCK_M + tl.arange(0, BLOCK_M))
    token = tl.where(slot < slots, slot // top_k, 0)
    at = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = at < N
    if WIDE:
        slot = slot.to(tl.int64)
        token = token.to(tl.int64)
    w_ptr += expert * (2 * N * K)
    w_scale_ptr += expert * (((2 * N + 127) // 128) * DEEP)
    safe = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    place = tl.arange(0, 128)
    from_x = token[:, None] * K + place[None, :]
    from_gate = safe[None, :] * K + place[:, None]
    from_up = from_gate + N * K
    if UNIFORM:
        gate_scales = w_scale_ptr + (column * BLOCK_N // 128) * DEEP
        up_scales = gate_scales + (N // 128) * DEEP
    else:
        gate_scales = w_scale_ptr + (safe // 128) * DEEP
        up_scales = w_scale_ptr + ((safe + N) // 128) * DEEP
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, DEEP):
        start = step * 128
        if K % 128 == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_gate + start)
            v = tl.load(w_ptr + from_up + start)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0)
            w = tl.load(w_ptr + from_gate + start, mask=valid[:, None], other=0)
            v = tl.load(w_ptr + from_up + start, mask=valid[:, None], other=0)
        scale = tl.load(x_scale_ptr + token * DEEP + step) * TIMES
        gate_scale = tl.load(gate_scales + step)
        up_scale = tl.load(up_scales + step)
        a = _operand(x, WAY)
        one = tl.dot(a, _operand(w, WAY), out_dtype=tl.float32)
        if UNIFORM:
            gate += one * (scale * gate_scale)[:, None]
        else:
            gate += one * (scale[:, None] * gate_scale[None, :])
        two = tl.dot(a, _operand(v, WAY), out_dtype=tl.float32)
        if UNIFORM:
            up += two * (scale * up_scale)[:, None]
        else:
            up += two * (scale[:, None] * up_scale[None, :])
    y = activate(gate, up, alpha, limit, KIND).to(y_ptr.dtype.element_ty)
    to = y_ptr + slot[:, None] * N + at[None, :]
    tl.store(to, y, mask=(slot < slots)[:, None] & inside[None, :])


@triton.jit
def moe_product_fp8_kernel(
    x_ptr, x_scale_ptr, order_ptr, owners_ptr, used_ptr, w_ptr, w_scale_ptr, y_ptr, slots,
    N: tl.constexpr, K: tl.constexpr, WAY: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """y[slot] = x[slot] · wᵀ, in steps of 128 of K; tiles divide blocks of 128 columns."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    DEEP: tl.constexpr = (K + 127) // 128
    TIMES: tl.constexpr = 4.0 if WAY == 1 else 1.0
    number = tl.program_id(0)
    down = tl.load(used_ptr) // BLOCK_M
    if number >= down * across:
        return
    line, column = tile_of(number, down, across, GROUP, XCDS)
    expert = tl.load(owners_ptr + line).to(tl.int64)
    slot = tl.load(order_ptr + line * BLOCK_M + tl.arange(0, BLOCK_M))
    row = tl.where(slot < slots, slot, 0)
    at = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = at < N
    if WIDE:
        slot = slot.to(tl.int64)
        row = row.to(tl.int64)
    w_ptr += expert * (N * K)
    w_scales = w_scale_ptr + expert * (((N + 127) // 128) * DEEP)
    w_scales += (column * BLOCK_N // 128) * DEEP
    safe = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    place = tl.arange(0, 128)
    from_x = row[:, None] * K + place[None, :]
    from_w = safe[None, :] * K + place[:, None]
    y = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, DEEP):
        start = step * 128
        if K % 128 == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_w + start)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0)
            w = tl.load(w_ptr + from_w + start, mask=valid[:, None], other=0)
        scale = tl.load(x_scale_ptr + row * DEEP + step)
        scale = scale * (tl.load(w_scales + step) * TIMES)
        y += tl.dot(_operand(x, WAY), _operand(w, WAY), out_dtype=tl.float32) * scale[:, None]
    to = y_ptr + slot[:, None] * N + at[None, :]
    mask = (slot < slots)[:, None] & inside[None, :]
    tl.store(to, y.to(y_ptr.dtype.element_ty), mask=mask)


def moe_experts_fp8(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """`moe_experts` with fp8 weights as DeepSeek-V3 has them, and activations rounded to fp8.

    `w1` [experts, 2 · inter, model] and `w2` [experts, model, inter] are of float8_e4m3fn; `scale1`
    [experts, ceil(2 · inter / 128), ceil(model / 128)] and `scale2`
    [experts, ceil(model / 128), ceil(inter / 128)] of float32 have a factor per square of 128.
    `hidden`, and what the activation makes, are rounded to float8_e4m3fn with a scale per 128
    channels (`quantise_fp8_group`); the activation's result is rounded to the dtype of `hidden`
    before. Everything else is as in `moe_experts`. Raises ArgumentError.
    """
    name = "moe_experts_fp8"
    _check(hidden, weights, experts, w1, scale1, w2, scale2)
    kind = activations.number(name, activation)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    device = gpu.launching()
    way = way_of(device)
    count, model, inter = w2.shape
    order = steps.Order.of(experts, count, w1.dtype)
    y = torch.empty((order.slots, inter), dtype=hidden.dtype, device=hidden.device)
    x, x_scale = quantise_fp8_group(hidden)
    shared = {"WAY": way, "XCDS": xcds(device)}
    launch(
        moe_up_fp8_kernel,
        order.grid(inter),
        (
            *(x.view(torch.uint8), x_scale, order.rows, order.owners, order.used),
            *(w1.contiguous().view(torch.uint8), scale1.contiguous(), y),
            *(order.slots, order.top_k, alpha, limit),
        ),
        UP,
        problem(order, inter, model, way, kind=kind),
        N=inter,
        K=model,
        KIND=kind,
        WIDE=checks.wide(x, y),
        **shared,
    )
    each = torch.empty((order.slots, model), dtype=hidden.dtype, device=hidden.device)
    x, x_scale = quantise_fp8_group(y)
    launch(
        moe_product_fp8_kernel,
        order.grid(model),
        (
            *(x.view(torch.uint8), x_scale, order.rows, order.owners, order.used),
            *(w2.contiguous().view(torch.uint8), scale2.contiguous(), each, order.slots),
        ),
        PRODUCT,
        problem(order, model, inter, way),
        N=model,
        K=inter,
        WIDE=checks.wide(x, each),
        **shared,
    )
    return steps.combine(each, order, weights.contiguous(), hidden.dtype)


def way_of(device: Device) -> int:
    """How e4m3fn codes are multiplied on a device."""
    if device.target == "gfx942":
        return _HALVED
    direct = ("gfx950", "gfx1200", "gfx1201", "gfx1250", "sm_89", "sm_90", "sm_100", "sm_120")
    return _DIRECT if device.target in direct else _WIDENED


def moe_experts_fp8_reference(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """Weights times their scales, in float32 at least, of every expert for every token."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    x = _rounded(hidden.to(kind))
    y = torch.zeros_like(x)
    for expert in range(w1.shape[0]):
        gate, up = (x @ _scaled(w1[expert], scale1[expert], kind).T).chunk(2, dim=-1)
        act = activations.reference(activation, gate, up, alpha, limit).to(hidden.dtype)
        one = _rounded(act.to(kind)) @ _scaled(w2[expert], scale2[expert], kind).T
        chosen = experts == expert
        share = torch.where(chosen, weights.to(kind), 0.0).sum(1, keepdim=True)
        y = y + torch.where(chosen.any(1, keepdim=True), one * share, 0.0)
    return y.to(hidden.dtype).contiguous()


def moe_experts_fp8_fake(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """The shape of the result, without a loop over experts."""
    return hidden.new_empty(hidden.shape)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    """Rounded to fp8 with a scale per 128 columns."""
    codes, scale = quantise_fp8_group_reference(x)
    each = scale.to(x.dtype).repeat_interleave(_SQUARE, -1)[..., : x.shape[-1]]
    return codes.to(x.dtype) * each


def _scaled(w: torch.Tensor, scale: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    rows, columns = w.shape
    each = scale.to(kind).repeat_interleave(_SQUARE, 0)[:rows]
    return w.to(kind) * each.repeat_interleave(_SQUARE, 1)[:, :columns]


def _check(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts_: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
) -> None:
    name = "moe_experts_fp8"
    checks.dtype_in(name, "hidden", hidden, checks.FLOATS)
    checks.dtype_in(name, "weights", weights, checks.FLOATS)
    checks.dtype_in(name, "experts", experts_, (torch.int32,))
    checks.dtype_in(name, "w1", w1, (torch.float8_e4m3fn,))
    checks.dtype_in(name, "w2", w2, (torch.float8_e4m3fn,))
    checks.dtype_in(name, "scale1", scale1, (torch.float32,))
    checks.dtype_in(name, "scale2", scale2, (torch.float32,))
    experts.check_shapes(name, hidden, weights, experts_, w1, w2, None, None)
    for which, scale, w in (("scale1", scale1, w1), ("scale2", scale2, w2)):
        squares = (triton.cdiv(size, _SQUARE) for size in w.shape[1:])
        checks.shape_is(name, which, scale, (w.shape[0], *squares))
    checks.same_device(name, hidden=hidden, scale1=scale1, scale2=scale2)


def problem(order: steps.Order, n: int, k: int, way: int, **flags: Any) -> dict[str, Any]:
    """What the configuration of a product depends on."""
    return {
        "slots": order.slots, "experts": order.count, "block": order.block, "n": n, "k": k,
        "way": way, **flags,
    }  # fmt: skip


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    rows = problem["block"]
    kept = {
        "BLOCK_M": (rows,),
        "BLOCK_N": (32, 64, 128),
        "GROUP": (4,),
        "num_warps": (4, 8) if rows >= 64 else (2, 4),
        "num_stages": (2,) if device.target.startswith("gfx") else (3,),
    }
    if device.target.startswith("gfx9"):
        kept["matrix_instr_nonkdim"] = (16,)
    return kept


def _deep(settings: Settings) -> dict[str, Any]:
    return {**settings, "BLOCK_K": _SQUARE}


def _fits(factor: int) -> Any:
    def fits(problem: Problem, settings: Settings, device: Device) -> bool:
        # What is multiplied lies in the LDS: float16 where codes are widened. A step's own products
        # take accumulators besides those of the sum.
        size = 2 if problem["way"] == _WIDENED else 1
        deep = _deep(settings)
        columns = factor * settings["BLOCK_N"]
        own = {**deep, "BLOCK_M": settings["BLOCK_M"]}
        return products.fits(problem, own, device, columns, size) and products.fits(
            problem, own, device, columns + settings["BLOCK_N"], 0
        )

    return fits


def _seconds(factor: int) -> Any:
    def seconds(problem: Problem, settings: Settings, device: Device) -> float:
        widened = problem["way"] == _WIDENED
        return products.seconds(
            problem,
            _deep(settings),
            device,
            factor * settings["BLOCK_N"],
            factor * problem["n"],
            1,
            dtype="fp16" if widened else "fp8",
            weight="fp8" if widened else "",
            scaling="block",
        )

    return seconds


UP = Space(
    kernel="moe_up_fp8_kernel", axes=_axes, fits=_fits(2), seconds=_seconds(2), classes=("slots",)
)
PRODUCT = Space(
    kernel="moe_product_fp8_kernel",
    axes=_axes,
    fits=_fits(1),
    seconds=_seconds(1),
    classes=("slots",),
)


def _inputs(
    make: Make, tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str,
    activation: str = "silu", routing: str = "even",
) -> dict[str, Any]:  # fmt: skip
    if routing == "even":
        chosen = (make.permutation(tokens * top_k, "int32") % experts).reshape(tokens, top_k)
    else:
        chosen = make.integers((tokens, top_k), -1, experts, "int32")

    def squares(*sizes: int) -> tuple[int, ...]:
        return experts, *(triton.cdiv(size, _SQUARE) for size in sizes)

    kind = "float8_e4m3fn"
    return {
        "hidden": make.normal((tokens, model), dtype),
        "weights": make.uniform((tokens, top_k), "float32", 0.1, 1.0),
        "experts": chosen,
        "w1": make.normal((experts, 2 * inter, model), kind, 32.0),
        "scale1": make.uniform(squares(2 * inter, model), "float32", 0.5, 1.0) * model**-0.5 / 16,
        "w2": make.normal((experts, model, inter), kind, 32.0),
        "scale2": make.uniform(squares(model, inter), "float32", 0.5, 1.0) * inter**-0.5 / 32,
        "activation": activation,
    }


def _work(
    tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str, **flags: Any
) -> Work:
    size = getattr(torch, dtype).itemsize
    slots = tokens * top_k
    hit = min(experts, slots)
    read = 3 * hit * model * inter * (1 + 4 / _SQUARE**2) + tokens * model * size + 8 * slots
    flops = {"fp8": 6.0 * slots * model * inter}
    return Work(flops, read, tokens * model * size, "formula", "formula")


OPERATORS = (
    Operator(
        name="moe_experts_fp8",
        summary="moe_experts with block-scaled fp8 weights",
        call=moe_experts_fp8,
        reference=moe_experts_fp8_reference,
        fake=moe_experts_fp8_fake,
        inputs=_inputs,
        work=_work,
        cases=(
            {"tokens": 5, "experts": 3, "model": 160, "inter": 40, "top_k": 2}
            | {"dtype": "bfloat16", "routing": "odd"},
            {"tokens": 70, "experts": 3, "model": 128, "inter": 256, "top_k": 2}
            | {"dtype": "float16", "activation": "gelu", "routing": "odd"},
            {"tokens": 33, "experts": 2, "model": 256, "inter": 128, "top_k": 1}
            | {"dtype": "float32"},
        ),
        thorough=(
            {"tokens": 40, "experts": 2, "model": 136, "inter": 200, "top_k": 2}
            | {"dtype": "bfloat16", "activation": "clamped_swiglu"},
            {"tokens": 20, "experts": 2, "model": 384, "inter": 72, "top_k": 2}
            | {"dtype": "float16", "activation": "gelu_tanh"},
        ),
        shapes=experts.SHAPES[:4] + experts.SHAPES[5:],
        spaces=(UP, PRODUCT, products.COMBINE),
        tolerance=Tolerance(ulps=3.0, accumulated=5e-3),
        exact=("hidden", "weights", "w1", "w2", "scale1", "scale2"),
        notes="A NaN among the weights counts as a finite number where a GPU lacks e4m3fn.",
    ),
)
