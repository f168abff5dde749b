"""Sums of 24 long rows, a program per row."""

import torch
import triton
import triton.language as tl


@triton.jit  # planted
def row_sum(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
    tl.store(y + row, tl.sum(total, 0))


def main(rows=24, columns=1 << 20):
    x = torch.empty(rows, columns)
    y = torch.empty(rows)
    row_sum[(rows,)](x, y, columns, BLOCK=2048)


if __name__ == "__main__":
    main()
