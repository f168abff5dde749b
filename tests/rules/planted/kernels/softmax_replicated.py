"""Softmax of rows of 64 elements on eight warps."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + offs, mask=offs < columns, other=-float("inf"))  # planted
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * columns + offs, v / tl.sum(v, 0), mask=offs < columns)


def main(rows=131072, columns=64):
    x = torch.empty(rows, columns)
    y = torch.empty_like(x)
    softmax[(rows,)](x, y, columns, BLOCK=64, num_warps=8)


if __name__ == "__main__":
    main()
