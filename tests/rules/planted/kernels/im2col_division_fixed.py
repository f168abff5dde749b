"""Crops images whose size is constant."""

import torch
import triton
import triton.language as tl


@triton.jit
def crop(x, y, n, steps, height: tl.constexpr, width: tl.constexpr, BLOCK: tl.constexpr):
    for step in range(steps):
        offs = (tl.program_id(0) * steps + step) * BLOCK + tl.arange(0, BLOCK)
        column = offs % width
        row = (offs // width) % height
        image = offs // width // height
        v = tl.load(x + (image * 1024 + row) * 1024 + column, mask=offs < n, other=0.0)
        tl.store(y + offs, v, mask=offs < n)


def main(images=32, height=1000, width=1000, steps=8):
    x = torch.empty(images, 1024, 1024, dtype=torch.float16)
    y = torch.empty(images, height, width, dtype=torch.float16)
    n = images * height * width
    grid = (triton.cdiv(n, steps * 1024),)
    crop[grid](x, y, n, steps, height, width, BLOCK=1024)


if __name__ == "__main__":
    main()
