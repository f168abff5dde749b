"""Scales the rows of a matrix and stores them transposed, a tile per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_transpose(x, scale, y, rows, columns, BLOCK: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    factor = tl.load(scale + offs_m)
    v = tl.load(x + offs_m[:, None] * columns + offs_n[None, :]) * factor[:, None]
    tl.store(y + offs_n[:, None] * rows + offs_m[None, :], tl.trans(v))


def main(rows=4096, columns=4096):
    x = torch.empty(rows, columns)
    scale = torch.empty(rows)
    y = torch.empty(columns, rows)
    scaled_transpose[(rows // 64, columns // 64)](x, scale, y, rows, columns, BLOCK=64)


if __name__ == "__main__":
    main()
