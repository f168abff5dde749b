"""Weighted sums of two tensors: y = x + alpha · other."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.describe import Operator, derivative, sizes, vector_flops, widened
from wavecast.kernels.pointwise import elementwise

TENSORS = elementwise.tensors("x", "other", result="y")


@triton.jit(do_not_specialize=["alpha"])
def add_kernel(x_ptr, other_ptr, y_ptr, count, alpha, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    pid = tl.program_id(0)
    start = (pid.to(tl.int64) if WIDE else pid) * BLOCK
    offs = tl.arange(0, BLOCK)
    mask = offs < count - start
    x = tl.load(x_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    other = tl.load(other_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    y = x + other * alpha
    tl.store(y_ptr + start + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


ADD = elementwise.flat_kernel(add_kernel, instructions=8.0, live_registers=2.0)


@TENSORS.checked
def add(x: Tensor, other: Tensor, alpha: float = 1.0) -> Tensor:
    """x + alpha · other of one shape, computed in float32 and returned in the dtype of `x`. Raises
    ArgumentError."""
    return elementwise.run(ADD, "y", x, x=x, other=other, alpha=float(alpha))


def add_reference(x, other, alpha=1.0):
    return torch.add(widened(x), widened(other), alpha=alpha).to(x.dtype).contiguous()


OPERATOR = Operator(
    summary="x + alpha · other",
    call=add,
    flops=vector_flops(2.0, "rows", "columns"),
    gradient=derivative.linear(add, lambda dy, alpha: {"x": dy, "other": dy * alpha}),
    cases=sizes("rows columns dtype alpha", (3, 301, "float32", -0.5), (5, 700, "bfloat16")),
    thorough=sizes("rows columns dtype alpha", (33, 64, "float16", 3.0)),
    shapes=sizes("rows columns dtype", (8192, 8192, "bfloat16")),
)
