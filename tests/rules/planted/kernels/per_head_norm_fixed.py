"""RMS norm of 32 heads, one launch for all."""

import torch
import triton
import triton.language as tl


@triton.jit
def head_norm(x, w, y, stride_head, stride_row, BLOCK: tl.constexpr):
    base = tl.program_id(1) * stride_head + tl.program_id(0) * stride_row
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + base + offs)
    v = v * tl.rsqrt(tl.sum(v * v, 0) / BLOCK + 1e-6)
    tl.store(y + base + offs, v * tl.load(w + offs))


def main(heads=32, rows=128, size=128):
    x = torch.empty(heads, rows, size)
    w = torch.empty(size)
    y = torch.empty_like(x)
    head_norm[(rows, heads)](x, w, y, rows * size, size, BLOCK=128, num_warps=1)


if __name__ == "__main__":
    main()
