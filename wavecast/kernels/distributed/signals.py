"""Signals between the workgroups of one program number on all ranks.

Every rank has a pad of int32 signals, ROWS x (world x WAVES), padded to a power of two.
Wave w of program p on rank r stores the epoch to `[p, r, w]` of every peer's pad, as a release of
system scope: a release covers the stores of the wave that releases, and a barrier of gfx9 does not
wait for those of others. Programs then wait until every signal of their row has reached the epoch.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false

from typing import Final

import triton
import triton.language as tl

from wavecast.perfmodel.ops.collectives.libraries import OWN_BLOCKS
from wavecast.perfmodel.ops.collectives.own_products import OWN_PROGRAMS

BLOCKS: Final = OWN_BLOCKS
"""Most programs of a collective."""
ROWS: Final = 2 * OWN_PROGRAMS
"""Rows of a pad: two for each program of a product."""


@triton.jit
def notify(
    signals, program, rank, epoch,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Release what this program has stored to all peers, as program number `program`."""
    row = program * triton.next_power_of_2(WORLD * WAVES)
    thread = tl.arange(0, WAVES * LANES)
    sent = row + rank * WAVES + thread // LANES
    lane = thread % LANES
    for first in tl.static_range(0, WORLD, LANES):  # lane p signals peer p: one release for all
        slot = signals[first] + sent
        for peer in tl.static_range(first + 1, min(first + LANES, WORLD)):
            slot = tl.where(lane == peer - first, signals[peer] + sent, slot)
        mask = lane < WORLD - first
        tl.atomic_xchg(slot, epoch, mask=mask, sem="release", scope="sys")


@triton.jit
def notify_one(
    signals, program, rank, epoch,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Release what this program has stored to the rank of a pad, as program number `program`."""
    row = program * triton.next_power_of_2(WORLD * WAVES)
    thread = tl.arange(0, WAVES * LANES)
    slot = signals + row + rank * WAVES + thread // LANES
    tl.atomic_xchg(slot, epoch, mask=thread % LANES == 0, sem="release", scope="sys")


@triton.jit
def wait_for_pieces(
    own_signals, source, first, pieces, epoch,
    PIECES: tl.constexpr, PROGRAMS: tl.constexpr, WORLD: tl.constexpr, WAVES: tl.constexpr,
):  # fmt: skip
    """Acquire `pieces` (at most PIECES, a power of two) of rank `source` from number `first` on:
    program p of PROGRAMS releases pieces p, p + PROGRAMS, … by `epoch` and those after it."""
    slot = tl.arange(0, PIECES * WAVES)
    piece = first + slot // WAVES
    mask = slot // WAVES < pieces
    row = piece % PROGRAMS * triton.next_power_of_2(WORLD * WAVES)
    missing = 1
    while missing > 0:
        at = own_signals + row + source * WAVES + slot % WAVES
        epochs = tl.atomic_add(at, 0, mask=mask, sem="acquire", scope="sys")
        late = mask & (epochs < epoch + piece // PROGRAMS)
        missing = tl.sum(tl.where(late, 1, 0), axis=0)
    tl.debug_barrier()


@triton.jit
def wait_for(own_signals, program, epoch, WORLD: tl.constexpr, WAVES: tl.constexpr):
    """Acquire what program number `program` of all ranks has released by `epoch`."""
    SLOTS: tl.constexpr = triton.next_power_of_2(WORLD * WAVES)
    slot = tl.arange(0, SLOTS)
    mask = slot < WORLD * WAVES
    missing = 1
    while missing > 0:
        at = own_signals + program * SLOTS + slot
        epochs = tl.atomic_add(at, 0, mask=mask, sem="acquire", scope="sys")
        missing = tl.sum(tl.where(mask & (epochs < epoch), 1, 0), axis=0)
    tl.debug_barrier()


@triton.jit
def exchange(
    signals, own_signals, rank, epoch,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Release what this program has stored to all peers, and acquire what theirs have."""
    notify(signals, tl.program_id(0), rank, epoch, WORLD, WAVES, LANES)
    wait_for(own_signals, tl.program_id(0), epoch, WORLD, WAVES)


@triton.jit
def exchange_all(
    signals, own_signals, rank, epoch,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """As `exchange`, with what all programs of all ranks have released; there are as many on each.
    `PROGRAMS` is a power of two, at least their number."""
    notify(signals, tl.program_id(0), rank, epoch, WORLD, WAVES, LANES)
    SLOTS: tl.constexpr = triton.next_power_of_2(WORLD * WAVES)
    slot = tl.arange(0, PROGRAMS * SLOTS)
    mask = (slot < tl.num_programs(0) * SLOTS) & (slot % SLOTS < WORLD * WAVES)
    missing = 1
    while missing > 0:
        epochs = tl.atomic_add(own_signals + slot, 0, mask=mask, sem="acquire", scope="sys")
        missing = tl.sum(tl.where(mask & (epochs < epoch), 1, 0), axis=0)
    tl.debug_barrier()


def pad_size(world: int, waves: int) -> int:
    """Signals of a rank's pad."""
    return ROWS * triton.next_power_of_2(world * waves)


__all__ = [
    "BLOCKS",
    "exchange",
    "exchange_all",
    "notify",
    "notify_one",
    "pad_size",
    "wait_for",
    "wait_for_pieces",
]
