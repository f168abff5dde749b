"""Kernels of two GPUs that touch what they should not, each with a mistake where it is planted."""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

import triton
import triton.language as tl

from tests.emulate.check.gpus.signals import wait


@triton.jit
def barrier(counter, value):
    tl.atomic_add(counter, 1, sem="acq_rel", scope="sys")
    wait(counter, value)


@triton.jit
def rank_number(table, counter, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Every rank stores to its row of a table; the mistake takes row 0 for all."""
    offs = tl.arange(0, N)
    row = rank * 0 if WRONG else rank
    tl.store(table + row * N + offs, offs + rank + 1)  # planted: store
    barrier(counter, 2)
    for one in range(2 - WRONG):
        tl.store(out + (rank * 2 + one) * N + offs, tl.load(table + one * N + offs))


@triton.jit
def rank_order(inbox0, inbox1, counter, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """An inbox has a row per sender; the mistake stores to the row of the receiver."""
    offs = tl.arange(0, N)
    peer = 1 - rank
    row = peer if WRONG else rank
    if rank == 0:
        tl.store(inbox1 + row * N + offs, offs)
    else:
        tl.store(inbox0 + row * N + offs, offs)
    barrier(counter, 2)
    own = inbox0 if rank == 0 else inbox1
    value = tl.load(own + peer * N + offs)  # planted: load
    tl.store(out + rank * N + offs, value)


@triton.jit
def peer_offset(x0, x1, counter, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Each rank fills the half of its buffer that has its number; peers read that half."""
    offs = tl.arange(0, N)
    peer = 1 - rank
    own = x0 if rank == 0 else x1
    theirs = x1 if rank == 0 else x0
    tl.store(own + rank * N + offs, offs)
    barrier(counter, 2)
    half = rank if WRONG else peer
    value = tl.load(theirs + half * N + offs)  # planted: load
    tl.store(out + rank * N + offs, value)


@triton.jit
def ragged(data, counter, out, rank, n, WRONG: tl.constexpr, N: tl.constexpr):
    """Rank 0 has stored n elements, rank 1 reads N of them."""
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs, mask=offs < n)
    barrier(counter, 2)
    if rank == 1:
        mask = offs < (N if WRONG else n)
        tl.store(out + offs, tl.load(data + offs, mask=mask, other=0), mask=mask)  # planted: load


@triton.jit
def bounds(data, counter, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Rank 1 reads N elements of the N / 2 of rank 0."""
    offs = tl.arange(0, N)
    if rank == 0:
        tl.store(data + offs, offs, mask=offs < N // 2)
    barrier(counter, 2)
    if rank == 1:
        mask = offs < (N if WRONG else N // 2)
        tl.store(out + offs, tl.load(data + offs, mask=mask, other=0), mask=mask)  # planted: load


@triton.jit
def store_bounds(data, counter, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Rank 1 stores N elements to the N / 2 of rank 0."""
    offs = tl.arange(0, N)
    if rank == 1:
        tl.store(data + offs, offs, mask=offs < (N if WRONG else N // 2))  # planted: store
    barrier(counter, 2)


@triton.jit
def lost_update(counter, WRONG: tl.constexpr):
    """Both GPUs add to a counter."""
    if WRONG:
        tl.store(counter, tl.load(counter) + 1)  # planted: store
    else:
        tl.atomic_add(counter, 1, sem="relaxed", scope="sys")


@triton.jit
def narrow_counter(counter, SCOPE: tl.constexpr):
    """Both GPUs add to a counter; atomic operations of agent scope are so for one GPU only."""
    tl.atomic_add(counter, 1, sem="relaxed", scope=SCOPE)  # planted: add


@triton.jit
def one_narrow(counter, rank, WRONG: tl.constexpr):
    """The largest of all ranks."""
    if rank == 0 or not WRONG:
        tl.atomic_max(counter, rank + 1, sem="relaxed", scope="sys")
    else:
        tl.atomic_max(counter, rank + 1, sem="relaxed", scope="gpu")  # planted: largest


@triton.jit
def atomic_sum(total, counter, out, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Both GPUs add to a sum that is read once both have."""
    offs = tl.arange(0, N)
    tl.atomic_add(total + offs, 1.0, sem="relaxed", scope="sys")
    if not WRONG:
        barrier(counter, 2)
    if rank == 0:
        tl.store(out + offs, tl.load(total + offs))  # planted: load


@triton.jit
def both_store(out0, out1, rank, WRONG: tl.constexpr, N: tl.constexpr):
    """Each rank stores its half of the result to both GPUs; the mistake stores all of it."""
    offs = tl.arange(0, N)
    mask = (offs >= 0) if WRONG else (offs // (N // 2) == rank)
    tl.store(out0 + offs, offs + rank, mask=mask)  # planted: store
    tl.store(out1 + offs, offs + rank, mask=mask)  # planted: store


@triton.jit
def through_table(heaps, counter, out, rank, N: tl.constexpr):
    """Rank 1 reads the buffer of rank 0 whose address is in a table of pointers."""
    offs = tl.arange(0, N)
    theirs = tl.load(heaps).to(tl.pointer_type(tl.int32))
    tl.store(out + rank * N + offs, tl.load(theirs + offs))  # planted: load


@triton.jit
def every_other(x, out, first, STORES: tl.constexpr, N: tl.constexpr):
    """Every other element, from the first one or the second one on."""
    offs = 2 * tl.arange(0, N) + first
    if STORES:
        tl.store(x + offs, offs.to(tl.int16))  # planted: store
    else:
        tl.store(out + tl.arange(0, N), tl.load(x + offs))  # planted: load


@triton.jit
def fill(x, value, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(x + offs, offs + value)  # planted: store


@triton.jit
def copy(x, out, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out + offs, tl.load(x + offs))  # planted: load
