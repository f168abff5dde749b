"""5 x 5 box filter of an image, with 64-bit offsets."""

import torch
import triton
import triton.language as tl


@triton.jit
def box_filter(x, y, height, width, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for i in tl.static_range(5):
        for j in tl.static_range(5):
            r = tl.minimum(rows + i, height - 1)
            c = tl.minimum(columns + j, width - 1)
            total += tl.load(x + r[:, None] * width + c[None, :])  # planted
    tl.store(y + rows[:, None] * width + columns[None, :], total / 25)


def main(height=2048, width=2048):
    x = torch.empty(height, width)
    y = torch.empty(height, width)
    box_filter[(height // 8, width // 64)](x, y, height, width, BLOCK_M=8, BLOCK_N=64)


if __name__ == "__main__":
    main()
