"""Gated activations of experts: f(gate, up), and their derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks
from wavecast.kernels.gemm import epilogue

NUMBERS: Final = {"silu": 0, "gelu": 1, "gelu_tanh": 2, "clamped_swiglu": 3}
"""Activations by the number kernels know them by.

`silu` is silu(gate) · up, `gelu` and `gelu_tanh` likewise; `clamped_swiglu` is
gate · sigmoid(alpha · gate) · (up + 1) of a gate of at most `limit` and an up between -limit and
limit.
"""


@triton.jit
def _tanh_sigmoid(gate):
    """(1 + tanh(√(2/π) · (gate + 0.044715 · gate³))) / 2, which is a sigmoid."""
    return tl.sigmoid(1.5957691216057308 * gate * (1.0 + 0.044715 * gate * gate))


@triton.jit
def activate(gate, up, alpha, limit, KIND: tl.constexpr):
    """f(gate, up) in float32."""
    if KIND == 0:
        result = gate * tl.sigmoid(gate) * up
    elif KIND == 1:
        result = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476)) * up
    elif KIND == 2:
        result = gate * _tanh_sigmoid(gate) * up
    else:
        clamped_gate = tl.minimum(gate, limit)
        clamped_up = tl.minimum(tl.maximum(up, -limit), limit)
        result = clamped_gate * tl.sigmoid(alpha * clamped_gate) * (clamped_up + 1.0)
    return result


@triton.jit
def activation_grads(gate, up, alpha, limit, KIND: tl.constexpr):
    """The derivatives of f by gate and by up, in float32."""
    if KIND == 0:
        sigmoid = tl.sigmoid(gate)
        by_gate = sigmoid * (1.0 + gate * (1.0 - sigmoid)) * up
        by_up = gate * sigmoid
    elif KIND == 1:
        cdf = 0.5 * (1.0 + tl.erf(gate * 0.7071067811865476))
        by_gate = (cdf + gate * 0.3989422804014327 * tl.exp(-0.5 * gate * gate)) * up
        by_up = gate * cdf
    elif KIND == 2:
        sigmoid = _tanh_sigmoid(gate)
        inner = 1.5957691216057308 * (1.0 + 0.134145 * gate * gate)
        by_gate = sigmoid * (1.0 + gate * (1.0 - sigmoid) * inner) * up
        by_up = gate * sigmoid
    else:
        clamped_gate = tl.minimum(gate, limit)
        clamped_up = tl.minimum(tl.maximum(up, -limit), limit)
        sigmoid = tl.sigmoid(alpha * clamped_gate)
        by_gate = sigmoid * (1.0 + alpha * clamped_gate * (1.0 - sigmoid)) * (clamped_up + 1.0)
        by_gate = tl.where(gate <= limit, by_gate, 0.0)
        by_up = tl.where((up >= -limit) & (up <= limit), clamped_gate * sigmoid, 0.0)
    return by_gate, by_up


@dataclass(frozen=True, slots=True)
class Gate:
    """An activation as kernels take it: `kind` is its number, `order` how weights hold gates and
    ups (1: first all gates, 2: in turns), `numbers` are alpha and limit."""

    kind: int
    order: int
    numbers: tuple[float, float]

    @staticmethod
    def of(
        operator: str, activation: str, alpha: float, limit: float, interleaved: bool = False
    ) -> Gate:
        """By its name. Raises ArgumentError."""
        names = ", ".join(NUMBERS)
        checks.require(activation in NUMBERS, operator, f"no activation {activation!r}; {names}")
        return Gate(NUMBERS[activation], 2 if interleaved else 1, (alpha, limit))


def halves(both: Tensor, interleaved: bool = False) -> tuple[Tensor, Tensor]:
    """Gates and ups of [..., 2 · inter]."""
    if interleaved:
        return both[..., 0::2], both[..., 1::2]
    gate, up = both.chunk(2, dim=-1)
    return gate, up


def reference(activation, gate, up, alpha, limit):
    """The activation in plain torch."""
    if activation == "clamped_swiglu":
        low = gate.clamp(max=limit)
        return low * torch.sigmoid(alpha * low) * (up.clamp(-limit, limit) + 1)
    return epilogue.reference(gate, activation=activation) * up


def grad_reference(activation, gate, up, alpha, limit):
    """The derivatives of the activation by gate and by up, in plain torch."""
    if activation == "clamped_swiglu":
        low = gate.clamp(max=limit)
        sigmoid = torch.sigmoid(alpha * low)
        by_gate = sigmoid * (1 + alpha * low * (1 - sigmoid)) * (up.clamp(-limit, limit) + 1)
        return by_gate * (gate <= limit), low * sigmoid * (up.abs() <= limit)
    activated = epilogue.reference(gate, activation=activation)
    return up * epilogue.grad_reference(gate, activation), activated
