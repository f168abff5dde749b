"""Activation functions and their derivatives on float32, for kernels over elements.

They go by name, a constant of the kernel: `silu`, `gelu` (by the error function), `gelu_tanh`,
`relu_squared`. All avoid division: 1 / d is rsqrt(d)² for d >= 1, an instruction instead of ten.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

NAMES = ("silu", "gelu", "gelu_tanh", "relu_squared")

_LOG2_E = tl.constexpr(1.4426950408889634)
_TANH_SCALE = tl.constexpr(1.5957691216057308)  # 2 sqrt(2 / pi)
_TANH_CUBE = tl.constexpr(0.044715)
_ROOT_HALF = tl.constexpr(0.7071067811865476)
_DENSITY = tl.constexpr(0.3989422804014327)  # 1 / sqrt(2 pi)


@triton.jit
def sigmoid(x):
    root = tl.rsqrt(1.0 + tl.exp2(x * -_LOG2_E))
    return root * root


@triton.jit
def normal_cdf(x):
    """(Φ(x), φ(x)) of the normal distribution. The tail is a polynomial in 1 / (1 + p|z|) times
    exp(-z²), z = x / sqrt 2, within 7.5e-8 (Abramowitz and Stegun, 7.1.26)."""
    z = tl.abs(x) * _ROOT_HALF
    root = tl.rsqrt(1.0 + 0.3275911 * z)
    t = root * root
    series = ((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736
    series = (series * t + 0.254829592) * t
    falling = tl.exp2(z * z * -_LOG2_E)
    tail = 0.5 * series * falling
    return tl.where(x < 0, tail, 1.0 - tail), _DENSITY * falling


@triton.jit
def activated(x, NAME: tl.constexpr):
    """f(x)."""
    if NAME == "silu":
        y = x * sigmoid(x)
    elif NAME == "gelu_tanh":
        y = x * sigmoid(_TANH_SCALE * (x + _TANH_CUBE * x * x * x))
    elif NAME == "gelu":
        below, _ = normal_cdf(x)
        y = x * below
    else:
        tl.static_assert(NAME == "relu_squared")
        positive = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
        y = positive * positive
    return y


@triton.jit
def value_and_derivative(x, NAME: tl.constexpr):
    """(f(x), f'(x))."""
    if NAME == "silu":
        share = sigmoid(x)
        y = x * share
        derivative = share + y * (1.0 - share)
    elif NAME == "gelu_tanh":
        share = sigmoid(_TANH_SCALE * (x + _TANH_CUBE * x * x * x))
        y = x * share
        derivative = share + y * (1.0 - share) * _TANH_SCALE * (1.0 + 3.0 * _TANH_CUBE * x * x)
    elif NAME == "gelu":
        below, density = normal_cdf(x)
        y = x * below
        derivative = below + x * density
    else:
        tl.static_assert(NAME == "relu_squared")
        positive = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
        y = positive * positive
        derivative = 2.0 * positive
    return y, derivative


def reference(x: Tensor, name: str) -> Tensor:
    """f(x) by torch, in the dtype of `x`."""
    if name == "silu":
        return torch.nn.functional.silu(x)
    if name == "relu_squared":
        return torch.relu(x).square()
    return torch.nn.functional.gelu(x, approximate="tanh" if name == "gelu_tanh" else "none")


def reference_derivative(x: Tensor, name: str) -> Tensor:
    """f'(x) by formula, in the dtype of `x`."""
    if name == "silu":
        share = torch.sigmoid(x)
        return share * (1 + x * (1 - share))
    if name == "relu_squared":
        return 2 * torch.relu(x)
    if name == "gelu":
        return (
            0.5 * (1 + torch.erf(x * 0.5**0.5))
            + x * torch.exp(-x * x / 2) * (0.5 / torch.pi) ** 0.5
        )
    scale = (2 / torch.pi) ** 0.5
    bent = torch.tanh(scale * (x + 0.044715 * x**3))
    return 0.5 * (1 + bent) + 0.5 * x * (1 - bent * bent) * scale * (1 + 3 * 0.044715 * x * x)
