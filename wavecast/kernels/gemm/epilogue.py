"""What a product does with its sums before it stores them, for kernels of any family.

    y = round((activation(sum · scale_a · scale_b + bias) · gate + residual) / out_scale)

in float32, every term optional.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from wavecast.kernels.pointwise import functions

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
def activation_grad(x, ACTIVATION: tl.constexpr):
    """The derivative of `activated` where it was given `x`."""
    grad = tl.full(x.shape, 1.0, tl.float32)
    if ACTIVATION == "relu":
        grad = tl.where(x > 0.0, 1.0, 0.0)
    elif ACTIVATION == "gelu":
        density = _INV_SQRT_TAU * tl.exp(-0.5 * x * x)
        grad = 0.5 * (1.0 + tl.erf(x * _SQRT_HALF)) + x * density
    elif ACTIVATION == "gelu_tanh":
        sigmoid = 1.0 / (1.0 + tl.exp(-_TANH_SCALE * (x + _TANH_CUBE * x * x * x)))
        inner = _TANH_SCALE * (1.0 + 3.0 * _TANH_CUBE * x * x)
        grad = sigmoid * (1.0 + x * inner * (1.0 - sigmoid))
    elif ACTIVATION == "silu":
        sigmoid = 1.0 / (1.0 + tl.exp(-x))
        grad = sigmoid * (1.0 + x * (1.0 - sigmoid))
    return grad


class Terms(NamedTuple):
    """The terms as kernels take them, in one argument. A pointer that is None leaves its term out;
    `gate` and `residual` have strides in elements, scales too (0: one for all)."""

    bias: Any = None
    gate: Any = None
    gate_row: Any = 0
    gate_column: Any = 0
    residual: Any = None
    residual_row: Any = 0
    residual_column: Any = 0
    scale_a: Any = None
    scale_a_row: Any = 0
    scale_b: Any = None
    scale_b_column: Any = 0
    out_scale: Any = None


@triton.jit
def finished(acc, rows, cols, M, N, terms, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr):
    """The sums of a tile as they are stored, but for the rounding.

    `rows` and `cols` are the indices of the elements of `acc` in the M x N result, beyond whose
    ends nothing is read; they have its dimensions, or 1. With a LIMIT larger magnitudes become it,
    for formats that do not saturate by themselves.
    """
    mask = (rows < M) & (cols < N)
    if terms.scale_a is not None:
        scale = tl.load(terms.scale_a + rows * terms.scale_a_row, mask=rows < M, other=0.0)
        acc = acc.to(tl.float32) * scale
    if terms.scale_b is not None:
        ptrs = terms.scale_b + cols * terms.scale_b_column
        acc = acc.to(tl.float32) * tl.load(ptrs, mask=cols < N, other=0.0)
    if terms.bias is not None:
        bias = tl.load(terms.bias + cols, mask=cols < N, other=0.0)
        acc = acc.to(tl.float32) + bias.to(tl.float32)
    if ACTIVATION != "none":
        acc = activated(acc.to(tl.float32), ACTIVATION)
    if terms.gate is not None:
        ptrs = terms.gate + rows * terms.gate_row + cols * terms.gate_column
        acc = acc.to(tl.float32) * tl.load(ptrs, mask=mask, other=0.0).to(tl.float32)
    if terms.residual is not None:
        ptrs = terms.residual + rows * terms.residual_row + cols * terms.residual_column
        acc = acc.to(tl.float32) + tl.load(ptrs, mask=mask, other=0.0).to(tl.float32)
    if terms.out_scale is not None:
        acc = acc.to(tl.float32) / tl.load(terms.out_scale)
    if LIMIT > 0.0:
        acc = tl.clamp(acc, -LIMIT, LIMIT, propagate_nan=tl.PropagateNan.ALL)
    return acc


def reference(total, bias=None, residual=None, gate=None, activation="none"):
    """The same in plain torch, without scales, in the dtype of `total`."""
    if bias is not None:
        total = total + bias.to(total.dtype)
    if activation != "none":
        total = (
            torch.relu(total) if activation == "relu" else functions.reference(total, activation)
        )
    if gate is not None:
        total = total * gate.to(total.dtype)
    return total if residual is None else total + residual.to(total.dtype)


def grad_reference(x, activation):
    """The derivative of the activation at `x`, in plain torch."""
    if activation in ("none", "relu"):
        return torch.ones_like(x) if activation == "none" else (x > 0).to(x.dtype)
    return functions.reference_derivative(x, activation)
