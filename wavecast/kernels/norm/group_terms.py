"""What the kernels of group norm have in common: scale and shift of channels."""

# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def affine(weight_ptr, bias_ptr, channel, inside, scale):
    """(factor, shift) of channels: y = (x - mean) · factor + shift."""
    factor = scale
    if weight_ptr is not None:
        factor *= tl.load(weight_ptr + channel, mask=inside, other=0.0).to(tl.float32)
    shift = tl.zeros_like(factor)
    if bias_ptr is not None:
        shift = tl.load(bias_ptr + channel, mask=inside, other=0.0).to(tl.float32)
    return factor, shift


__all__ = ["affine"]
