"""Kernels for two GPUs with a mistake each, and without it (`RIGHT`)."""

import triton
import triton.language as tl


@triton.jit
def send(data, flag, value, SEM: tl.constexpr, SCOPE: tl.constexpr, N: tl.constexpr):
    """Store to data, then signal."""
    offs = tl.arange(0, N)
    tl.store(data + offs, offs + value)
    tl.atomic_xchg(flag, value, sem=SEM, scope=SCOPE)


@triton.jit
def receive(data, flag, out, value, SEM: tl.constexpr, SCOPE: tl.constexpr, N: tl.constexpr):
    """Wait for the signal, then load data."""
    offs = tl.arange(0, N)
    while tl.atomic_add(flag, 0, sem=SEM, scope=SCOPE) != value:
        pass
    tl.store(out + offs, tl.load(data + offs))


@triton.jit
def receive_early(data, flag, out, value, N: tl.constexpr):
    """Load data before the signal."""
    offs = tl.arange(0, N)
    found = tl.load(data + offs)
    while tl.atomic_add(flag, 0, sem="acquire", scope="sys") != value:
        pass
    tl.store(out + offs, found)


@triton.jit
def move(x, out, n, BLOCK: tl.constexpr):
    """out = x"""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask), mask=mask)
