"""Sums of 24 long rows, 16 programs per row."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum(x, parts, columns, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    part = tl.program_id(1)
    start = row * columns + part * (columns // SPLIT)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(0, columns // SPLIT, BLOCK):
        total += tl.load(x + start + step + tl.arange(0, BLOCK))
    tl.store(parts + row * SPLIT + part, tl.sum(total, 0))


@triton.jit
def add_parts(parts, y, SPLIT: tl.constexpr):
    row = tl.program_id(0)
    tl.store(y + row, tl.sum(tl.load(parts + row * SPLIT + tl.arange(0, SPLIT)), 0))


def main(rows=24, columns=1 << 20):
    x = torch.empty(rows, columns)
    y = torch.empty(rows)
    parts = torch.empty(rows, 16)
    row_sum[(rows, 16)](x, parts, columns, SPLIT=16, BLOCK=2048)
    add_parts[(rows,)](parts, y, SPLIT=16)


if __name__ == "__main__":
    main()
