"""Kernels the capture tests launch."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    total = tl.load(x_ptr + offset, mask=inside) + tl.load(y_ptr + offset, mask=inside)
    tl.store(out_ptr + offset, total, mask=inside)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 256}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK": 512}, num_warps=8, num_stages=2),
    ],
    key=["n"],
    reset_to_zero=["out_ptr"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offset, tl.load(x_ptr + offset))
    else:
        tl.store(out_ptr + offset, tl.load(x_ptr + offset, mask=offset < n), mask=offset < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 48}), triton.Config({"BLOCK": 64})],
    key=["n"],
)
@triton.jit
def half_tuned(x_ptr, n, BLOCK: tl.constexpr):
    offset = tl.arange(0, BLOCK)
    tl.store(x_ptr + offset, 1.0, mask=offset < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})],
    key=["n"],
)
@triton.jit
def picky(x_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 64, "too small")
    offset = tl.arange(0, BLOCK)
    tl.store(x_ptr + offset, 1.0, mask=offset < n)


@triton.jit
def mixed(pair, nothing, flag, factor, one):
    offset = tl.arange(0, 64)
    value = tl.load(pair[0] + offset) * factor + one
    if flag:
        value += 1
    if nothing is not None:
        value += tl.load(nothing)
    tl.store(pair[1] + offset, value)


@triton.jit
def prints(x_ptr):
    tl.device_print("x", tl.load(x_ptr))


@triton.jit
def asserts(x_ptr):
    tl.device_assert(tl.load(x_ptr) == 1, "not one")


@triton.jit
def described(source, out_ptr):
    tile = source.load([0, 0])
    offset = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out_ptr + offset, tile)


@triton.jit
def greedy(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr = 64):
    small, large = tl.arange(0, SIZE), tl.arange(0, 1024)
    a = tl.load(a_ptr + small[:, None] * 1024 + large[None, :])
    b = tl.load(b_ptr + large[:, None] * SIZE + small[None, :])
    tl.store(c_ptr + small[:, None] * SIZE + small[None, :], tl.dot(a, b))
