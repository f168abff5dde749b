"""What a product does with its sums before it stores them, for kernels of any family.

    y = round((activation(sum · scale_a · scale_b + bias) · gate + residual) / out_scale)

in float32, every term optional.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

ACTIVATIONS = ("none", "relu", "gelu", "gelu_tanh", "silu")

_SQRT_HALF = tl.constexpr(0.7071067811865476)
_INV_SQRT_TAU = tl.constexpr(0.3989422804014327)
_TANH_SCALE = tl.constexpr(1.5957691216057308)
"""2 sqrt(2 / pi): gelu_tanh is x times the logistic function of this times its polynomial."""
_TANH_CUBE = tl.constexpr(0.044715)


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """One of ACTIVATIONS of float32 values."""
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    elif ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * _SQRT_HALF))
    elif ACTIVATION == "gelu_tanh":
        x = x / (1.0 + tl.exp(-_TANH_SCALE * (x + _TANH_CUBE * x * x * x)))
    elif ACTIVATION == "silu":
        x = x / (1.0 + tl.exp(-x))
    return x


@triton.jit
def slope(x, ACTIVATION: tl.constexpr):
    """The derivative of `activated` where it was given `x`."""
    found = tl.full(x.shape, 1.0, tl.float32)
    if ACTIVATION == "relu":
        found = tl.where(x > 0.0, 1.0, 0.0)
    elif ACTIVATION == "gelu":
        normal = _INV_SQRT_TAU * tl.exp(-0.5 * x * x)
        found = 0.5 * (1.0 + tl.erf(x * _SQRT_HALF)) + x * normal
    elif ACTIVATION == "gelu_tanh":
        share = 1.0 / (1.0 + tl.exp(-_TANH_SCALE * (x + _TANH_CUBE * x * x * x)))
        inner = _TANH_SCALE * (1.0 + 3.0 * _TANH_CUBE * x * x)
        found = share * (1.0 + x * inner * (1.0 - share))
    elif ACTIVATION == "silu":
        share = 1.0 / (1.0 + tl.exp(-x))
        found = share * (1.0 + x * (1.0 - share))
    return found


@triton.jit
def finished(
    total, rows, columns, M, N,
    bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
    scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
    ACTIVATION: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """The sums of a tile as they are stored, but for the rounding.

    `rows` and `columns` say where the tile lies in the M x N result, beyond whose ends nothing is
    read. A pointer that is None leaves its term out; scales have strides (0: one for all). With a
    LIMIT larger magnitudes become it, for formats that do not saturate by themselves.
    """
    row = tl.minimum(rows, M - 1)
    column = tl.minimum(columns, N - 1)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    if scale_a_ptr is not None:
        total = total.to(tl.float32) * tl.load(scale_a_ptr + row * scale_a_row)[:, None]
    if scale_b_ptr is not None:
        total = total.to(tl.float32) * tl.load(scale_b_ptr + column * scale_b_column)[None, :]
    if bias_ptr is not None:
        total = total.to(tl.float32) + tl.load(bias_ptr + column).to(tl.float32)[None, :]
    if ACTIVATION != "none":
        total = activated(total.to(tl.float32), ACTIVATION)
    if gate_ptr is not None:
        at = gate_ptr + rows[:, None] * gate_row + columns[None, :] * gate_column
        total = total.to(tl.float32) * tl.load(at, mask=inside, other=0.0).to(tl.float32)
    if residual_ptr is not None:
        at = residual_ptr + rows[:, None] * residual_row + columns[None, :] * residual_column
        total = total.to(tl.float32) + tl.load(at, mask=inside, other=0.0).to(tl.float32)
    if out_scale_ptr is not None:
        total = total.to(tl.float32) / tl.load(out_scale_ptr)
    if LIMIT > 0.0:
        total = tl.clamp(total, -LIMIT, LIMIT, propagate_nan=tl.PropagateNan.ALL)
    return total


def reference(
    total: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
    activation: str = "none",
) -> torch.Tensor:
    """The same in plain torch, without scales, in the dtype of `total`."""
    if bias is not None:
        total = total + bias.to(total.dtype)
    if activation == "relu":
        total = torch.relu(total)
    elif activation == "gelu":
        total = torch.nn.functional.gelu(total)
    elif activation == "gelu_tanh":
        total = torch.nn.functional.gelu(total, approximate="tanh")
    elif activation == "silu":
        total = torch.nn.functional.silu(total)
    if gate is not None:
        total = total * gate.to(total.dtype)
    return total if residual is None else total + residual.to(total.dtype)


__all__ = ["ACTIVATIONS", "activated", "finished", "reference", "slope"]
