"""Sums of the columns of a matrix, a program per column."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_sum(x, y, rows, stride, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(x + offs * stride + column, mask=offs < rows, other=0.0)  # planted
    tl.store(y + column, tl.sum(total, 0))


def main(rows=4096, columns=16384):
    x = torch.empty(rows, columns)
    y = torch.empty(columns)
    column_sum[(columns,)](x, y, rows, x.stride(0), BLOCK=1024)


if __name__ == "__main__":
    main()
