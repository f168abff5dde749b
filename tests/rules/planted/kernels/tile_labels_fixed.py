"""Labels every pixel with the number of its tile, for one size of image and tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_labels(labels, n, steps, width: tl.constexpr, tile: tl.constexpr, BLOCK: tl.constexpr):
    for step in range(steps):
        offs = (tl.program_id(0) * steps + step) * BLOCK + tl.arange(0, BLOCK)
        column = offs % width
        row = offs // width
        label = (row // tile) * (width // tile) + column // tile
        tl.store(labels + offs, label.to(tl.int16), mask=offs < n)


def main(height=8192, width=4100, tile=20, steps=16):
    labels = torch.empty(height, width, dtype=torch.int16)
    n = height * width
    grid = (triton.cdiv(n, steps * 1024),)
    tile_labels[grid](labels, n, steps, width, tile, BLOCK=1024)


if __name__ == "__main__":
    main()
