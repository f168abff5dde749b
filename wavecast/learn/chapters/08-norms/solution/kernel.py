import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    """One program per row; the row is loaded once and remains in registers."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    values = tl.load(x + row * columns + offs, mask=mask, other=0.0).to(tl.float32)
    weights = tl.load(weight + offs, mask=mask, other=0.0)
    mean = tl.sum(values) / columns
    difference = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(difference * difference) / columns + eps)
    result = difference * scale * weights
    tl.store(out + row * columns + offs, result.to(out.dtype.element_ty), mask=mask)


def layer_norm(x, weight, eps=1e-5):
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    layer_norm_kernel[(rows,)](x, weight, out, columns, eps, BLOCK=block, num_warps=8)
    return out
