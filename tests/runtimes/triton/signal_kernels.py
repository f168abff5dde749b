"""Kernels that signal other GPUs."""

import triton
import triton.language as tl


@triton.jit
def add_peers(x0, x1, flags0, flags1, own, out, rank, n, BLOCK: tl.constexpr):
    """out = x0 + x1 once both GPUs have come; a pair of flags per program."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.atomic_xchg(flags0 + 2 * pid + rank, 1, sem="release", scope="sys")
    tl.atomic_xchg(flags1 + 2 * pid + rank, 1, sem="release", scope="sys")
    for peer in tl.static_range(2):
        while tl.atomic_add(own + 2 * pid + peer, 0, sem="acquire", scope="sys") != 1:
            pass
    tl.debug_barrier()
    total = tl.load(x0 + offs, mask=mask) + tl.load(x1 + offs, mask=mask)
    tl.store(out + offs, total, mask=mask)


@triton.jit
def set_flag(flags):
    tl.store(flags + tl.program_id(0), 7)


@triton.jit
def copy_flag(flags, out):
    tl.store(out + tl.program_id(0), tl.load(flags + tl.program_id(0)))
