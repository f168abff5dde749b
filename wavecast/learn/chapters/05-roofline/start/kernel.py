import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@triton.jit
def square_kernel(x, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    values = tl.load(x + offs, mask=mask)
    tl.store(out + offs, values * values, mask=mask)


@triton.jit
def sigmoid_mul_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    gate = 1 / (1 + tl.exp(-tl.load(x + offs, mask=mask)))
    tl.store(out + offs, gate * tl.load(y + offs, mask=mask), mask=mask)


def gated(x, y):
    """sigmoid(x + y) * x²"""
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    total, square, out = (torch.empty_like(x) for _ in range(3))
    add_kernel[grid](x, y, total, n, BLOCK=1024)
    square_kernel[grid](x, square, n, BLOCK=1024)
    sigmoid_mul_kernel[grid](total, square, out, n, BLOCK=1024)
    return out
