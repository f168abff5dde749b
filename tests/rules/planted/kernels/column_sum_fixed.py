"""Sums of the columns of a matrix, 64 columns per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_sum(x, y, rows, stride, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((BLOCK, COLUMNS), tl.float32)
    for start in range(0, rows, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        pointers = x + offs[:, None] * stride + columns[None, :]
        total += tl.load(pointers, mask=(offs < rows)[:, None], other=0.0)
    tl.store(y + columns, tl.sum(total, 0))


def main(rows=4096, columns=16384):
    x = torch.empty(rows, columns)
    y = torch.empty(columns)
    column_sum[(columns // 32,)](x, y, rows, x.stride(0), BLOCK=64, COLUMNS=32)


if __name__ == "__main__":
    main()
