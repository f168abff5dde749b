"""Kernels of the experts' backward pass: the activation's, and the weights' gradients."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import Axes, Device, KernelSpec, Problem, Settings
from wavecast.kernels.gemm.product import rate_of
from wavecast.kernels.gemm.tiling import count, element_size
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.activations import activate, activation_grads
from wavecast.kernels.moe.blocks import store_rows
from wavecast.kernels.moe.tiling import Order
from wavecast.kernels.tiles import product, tile_of


@triton.jit
def moe_activation_backward_kernel(
    before_ptr, grad_ptr, weights_ptr, experts_ptr, dbefore_ptr, scaled_ptr, dweights_ptr, count,
    alpha, limit, N: tl.constexpr, KIND: tl.constexpr, GATES: tl.constexpr,
    BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Of one slot, from `before` (gates and ups) and `grad`, the gradient by the activation's
    result if its weight was 1: the gradients by gates and ups, the weighted result, and the
    gradient by the weight (added to what `dweights` holds)."""
    slot = tl.program_id(0)
    weight = tl.load(weights_ptr + slot).to(tl.float32)
    expert = tl.load(experts_ptr + slot)
    has_expert = (expert >= 0) & (expert < count)
    row = slot.to(tl.int64) if WIDE else slot
    acc = tl.zeros((BLOCK,), tl.float32)
    dtype = scaled_ptr.dtype.element_ty
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = (offs < N) & has_expert
        gate_offs = row * (2 * N) + (2 * offs if GATES == 2 else offs)
        up_offs = gate_offs + (1 if GATES == 2 else N)
        gate = tl.load(before_ptr + gate_offs, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(before_ptr + up_offs, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + row * N + offs, mask=mask, other=0.0).to(tl.float32)
        result = activate(gate, up, alpha, limit, KIND)
        by_gate, by_up = activation_grads(gate, up, alpha, limit, KIND)
        acc += tl.where(mask, grad * result, 0.0)
        tl.store(dbefore_ptr + gate_offs, (grad * by_gate * weight).to(dtype), mask=mask)
        tl.store(dbefore_ptr + up_offs, (grad * by_up * weight).to(dtype), mask=mask)
        tl.store(scaled_ptr + row * N + offs, (result * weight).to(dtype), mask=mask)
    tl.store(dweights_ptr + slot, tl.sum(acc, axis=0))


@triton.jit
def moe_bias_grad_kernel(
    dy_ptr, bias_ptr, experts_ptr, dweights_ptr, count, columns, top_k,
    BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dweights[slot] += dy[token] · bias[expert]."""
    slot = tl.program_id(0)
    expert = tl.load(experts_ptr + slot)
    has_expert = (expert >= 0) & (expert < count)
    token = slot // top_k
    if WIDE:
        token = token.to(tl.int64)
        expert = expert.to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = (offs < columns) & has_expert
        dy = tl.load(dy_ptr + token * columns + offs, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + expert * columns + offs, mask=mask, other=0.0).to(tl.float32)
        acc += dy * bias
    before = tl.load(dweights_ptr + slot)
    tl.store(dweights_ptr + slot, before + tl.sum(acc, axis=0))


@triton.jit
def moe_weight_gradient_kernel(
    a_ptr, b_ptr, order_ptr, starts_ptr, weights_ptr, dw_ptr, dbias_ptr, slots, a_shared, b_shared,
    M: tl.constexpr, N: tl.constexpr, BIAS: tl.constexpr, WEIGHTED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dw[expert] = Σ a[slot // a_shared]ᵀ · b[slot // b_shared] over the expert's slots, [M, N];
    and dbias[expert] = Σ a, times the slot's weight (WEIGHTED)."""
    tiles_m: tl.constexpr = (M + BLOCK_M - 1) // BLOCK_M
    tiles_n: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    pid = tl.program_id(0)
    experts = tl.num_programs(0) // (tiles_m * tiles_n)
    expert, pid_in_expert = tile_of(pid, experts, tiles_m * tiles_n, 1, XCDS)  # pyright: ignore[reportArgumentType]
    pid_m, pid_n = tile_of(pid_in_expert, tiles_m, tiles_n, GROUP, 1)  # pyright: ignore[reportArgumentType]
    first_row = tl.load(starts_ptr + expert)
    end_row = tl.load(starts_ptr + expert + 1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    safe_m = offs_m if M % BLOCK_M == 0 else tl.minimum(offs_m, M - 1)
    safe_n = offs_n if N % BLOCK_N == 0 else tl.minimum(offs_n, N - 1)
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    dbias = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(first_row, end_row, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        slot = tl.load(order_ptr + offs_k, mask=offs_k < end_row, other=slots)
        mask_k = slot < slots
        a_rows = tl.where(mask_k, slot // a_shared, 0)
        b_rows = tl.where(mask_k, slot // b_shared, 0)
        if WIDE:
            a_rows = a_rows.to(tl.int64)
            b_rows = b_rows.to(tl.int64)
        a = tl.load(a_ptr + a_rows[None, :] * M + safe_m[:, None], mask=mask_k[None, :], other=0.0)
        b = tl.load(b_ptr + b_rows[:, None] * N + safe_n[None, :], mask=mask_k[:, None], other=0.0)
        dw = tl.dot(a, b, dw, input_precision="ieee")
        if BIAS:
            values = a.to(tl.float32)
            if WEIGHTED:
                weight = tl.load(weights_ptr + slot, mask=mask_k, other=0.0).to(tl.float32)
                values = values * weight[None, :]
            dbias += tl.sum(values, axis=1)
    store_rows(
        dw_ptr + expert.to(tl.int64) * (M * N), dw, offs_m, offs_m < M, pid_n, N, BLOCK_M, BLOCK_N
    )
    if BIAS:
        if pid_n == 0:
            rounded = dbias.to(dbias_ptr.dtype.element_ty)
            tl.store(dbias_ptr + expert * M + offs_m, rounded, mask=offs_m < M)


def weight_gradient(
    a: Tensor, b: Tensor, order: Order, w: Tensor, bias: Tensor | None, weights: Tensor | None,
    a_shared: int, b_shared: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Σ aᵀ · b per expert in the dtype of w, and Σ a (times `weights`) in that of the bias."""
    dw = torch.empty(w.shape, dtype=w.dtype, device=w.device)
    dbias = w.new_empty(0, dtype=torch.float32)
    if bias is not None:
        dbias = torch.empty(w.shape[:2], dtype=bias.dtype, device=w.device)
    m, n = w.shape[1:]
    problem: dict[str, Any] = {"slots": order.slots, "experts": order.count, "m": m, "n": n}
    problem |= {"bias": bias is not None, "weighted": weights is not None}
    choice.run(
        GRADIENT, {**problem, "dtype": rate_of(a.dtype)}, a=a, b=b, order=order.rows,
        starts=order.starts, weights=a if weights is None else weights, dw=dw, dbias=dbias,
        a_shared=a_shared, b_shared=b_shared, WIDE=checks.wide(a, b),
    )  # fmt: skip
    return dw, dbias


def _row_kernel(function: Any) -> KernelSpec:
    return KernelSpec.streaming(
        function,
        grid="slots",
        axes={
            "BLOCK": "up_to(min(2048, max(64, next_power_of_2(columns))), 512, 1024, 2048)",
            "num_warps": (1, 2, 4, 8),
        },
        read="3 * slots * columns * bytes",
        written="3 * slots * columns * bytes",
        elements="BLOCK",
        instructions="30.0 * cdiv(columns, BLOCK)",
        live_registers=8.0,
        rounded=("slots",),
    )


def _axes(problem: Problem, device: Device) -> Axes:
    fp32 = problem["dtype"] == "fp32"
    sides = (32, 64) if fp32 else (64, 128, 256)
    return {
        "BLOCK_M": sides,
        "BLOCK_N": sides,
        "BLOCK_K": (16, 32) if fp32 else (32, 64),
        "GROUP": (8,),
        "num_warps": (4, 8),
        "num_stages": (2,),
        **tiling.matrix_options(device),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return tiling.fits(settings, device, settings["BLOCK_N"], element_size(problem))


def _demand(problem: Problem, settings: Settings, device: Device) -> describe.TiledProduct:
    k = max(1, problem["slots"] // problem["experts"])
    return product(problem, settings, problem["dtype"], k=k, batch=problem["experts"])


ACTIVATION = _row_kernel(moe_activation_backward_kernel)
BIAS_GRAD = _row_kernel(moe_bias_grad_kernel)
GRADIENT = KernelSpec(
    function=moe_weight_gradient_kernel,
    grid=lambda problem, settings: (problem["experts"] * count(problem, settings),),
    axes=_axes,
    fits=_fits,
    demand=_demand,
    rounded=("slots",),
)
