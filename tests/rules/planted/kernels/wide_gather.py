"""Bilinear samples of an image at given coordinates, with 64-bit offsets."""

import torch
import triton
import triton.language as tl


@triton.jit
def bilinear(image, u, v, out, height, width, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    fu = tl.load(u + offs) * (width - 1)
    fv = tl.load(v + offs) * (height - 1)
    column = fu.to(tl.int64)
    row = fv.to(tl.int64)
    du = fu - column.to(tl.float32)
    dv = fv - row.to(tl.float32)
    for channel in tl.static_range(4):
        base = (channel * height + row) * width + column  # planted
        a = tl.load(image + base)
        b = tl.load(image + base + 1)
        c = tl.load(image + base + width)
        d = tl.load(image + base + width + 1)
        top = a + (b - a) * du
        bottom = c + (d - c) * du
        tl.store(out + offs * 4 + channel, top + (bottom - top) * dv)


def main(n=1 << 20, height=512, width=512):
    image = torch.empty(4, height, width)
    u = torch.empty(n)
    v = torch.empty(n)
    out = torch.empty(n, 4)
    bilinear[(n // 512,)](image, u, v, out, height, width, BLOCK=512)


if __name__ == "__main__":
    main()
