"""Scales the rows of a matrix and stores them transposed, a row per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_transpose(x, scale, y, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    factor = tl.load(scale + row)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + offs)
    tl.store(y + offs * rows + row, v * factor)  # planted


def main(rows=4096, columns=4096):
    x = torch.empty(rows, columns)
    scale = torch.empty(rows)
    y = torch.empty(columns, rows)
    scaled_transpose[(rows, columns // 1024)](x, scale, y, rows, columns, BLOCK=1024)


if __name__ == "__main__":
    main()
