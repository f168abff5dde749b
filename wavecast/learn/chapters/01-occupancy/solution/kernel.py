import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, scales, out, columns, BLOCK: tl.constexpr):
    """One program scales a row by its largest absolute value, with the row in registers."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    values = tl.load(x + row * columns + offs, mask=mask, other=0.0)
    largest = tl.max(tl.abs(values))
    tl.store(scales + row, largest)
    tl.store(out + row * columns + offs, values / largest, mask=mask)


def scale_rows(x):
    rows, columns = x.shape
    out, scales = torch.empty_like(x), torch.empty(rows, device=x.device)
    block = triton.next_power_of_2(columns)
    scale_kernel[(rows,)](x, scales, out, columns, BLOCK=block, num_warps=16)
    return out, scales
