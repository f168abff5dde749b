"""What causal convolutions take, and memory formats of their tensors."""

from __future__ import annotations

import torch

from wavecast.kernels import checks

ACTIVATIONS = ("none", "silu")
MOST_TAPS = 16


def check(
    operator: str,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str,
) -> None:
    checks.require(x.dim() == 3, operator, f"x has {x.dim()} dimensions, expected 3")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    checks.dtype_in(operator, "weight", weight, checks.FLOATS)
    checks.shape_is(operator, "weight", weight, (x.shape[1], -1))
    taps = weight.shape[1]
    checks.require(
        1 <= taps <= MOST_TAPS, operator, f"weight has {taps} taps, not 1 to {MOST_TAPS}"
    )
    if bias is not None:
        checks.dtype_in(operator, "bias", bias, checks.FLOATS)
        checks.shape_is(operator, "bias", bias, (x.shape[1],))
    if state is not None:
        checks.dtype_in(operator, "state", state, (x.dtype,))
        checks.shape_is(operator, "state", state, (x.shape[0], x.shape[1], taps - 1))
    checks.one_of(operator, "activation", activation, ACTIVATIONS)
    checks.same_device(operator, x=x, weight=weight, bias=bias, state=state)


def dense(x: torch.Tensor) -> bool:
    """Whether a result can have the strides of `x`."""
    return x.is_contiguous() or x.transpose(1, 2).is_contiguous()


__all__ = ["ACTIVATIONS", "MOST_TAPS", "check", "dense"]
