"""Bias, GELU, scale and residual of a small activation, a kernel each."""

import torch
import triton
import triton.language as tl


@triton.jit  # planted
def add_bias(x, bias, y, columns, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offs, tl.load(x + offs) + tl.load(bias + offs % columns))


@triton.jit
def gelu(x, y, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + offs)
    tl.store(y + offs, v * tl.sigmoid(1.702 * v))


@triton.jit
def scale(x, y, factor, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offs, tl.load(x + offs) * factor)


@triton.jit
def add(x, residual, y, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offs, tl.load(x + offs) + tl.load(residual + offs))


def main(rows=256, columns=1024):
    x = torch.empty(rows, columns)
    bias = torch.empty(columns)
    residual = torch.empty(rows, columns)
    y = torch.empty(rows, columns)
    grid = (rows * columns // 1024,)
    h1, h2, h3 = (torch.empty(rows, columns) for _ in range(3))
    add_bias[grid](x, bias, h1, columns, BLOCK=1024)
    gelu[grid](h1, h2, BLOCK=1024)
    scale[grid](h2, h3, 0.5, BLOCK=1024)
    add[grid](h3, residual, y, BLOCK=1024)


if __name__ == "__main__":
    main()
