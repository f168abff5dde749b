"""The order of a row's 16-byte pieces in the LDS in which lanes that read 16 rows do not wait for
each other's banks."""

from functools import cache, reduce
from itertools import product
from operator import xor
from typing import Final

from wavecast.analyze.values.banks import conflict_ways, phases
from wavecast.arch import Device
from wavecast.kernels.sparse.instructions import SIDE, SparseProduct

_PIECE: Final = 16
"""Bytes that a lane reads at once."""
_ROW_BITS: Final = SIDE.bit_length() - 1


def row_swizzle(device: Device, product: SparseProduct, lane_words: int) -> tuple[int, ...]:
    """What the number of a piece is XORed with where the row's number has bit 0, 1, 2, 3.

    For each call of a step a row has `lane_words` words of 64 bits per group of lanes. Lane
    row + 16 * group reads those of its group, a piece at a time.
    """
    banks = device.facts.integer("lds_banks")
    lane_pieces = lane_words * 8 // _PIECE
    return _fewest_conflicts(device.target, product.groups, product.calls, lane_pieces, banks)


@cache
def _fewest_conflicts(
    target: str, groups: int, calls: int, lane_pieces: int, banks: int
) -> tuple[int, ...]:
    lanes = SIDE * groups
    served = phases(target, _PIECE, False, lanes, banks)
    pieces = calls * groups * lane_pieces
    choices = [0, *(1 << bit for bit in range(pieces.bit_length() - 1))]

    def passes(masks: tuple[int, ...]) -> float:
        total = 0.0
        for number in range(lane_pieces):
            addresses = []
            for lane in range(lanes):
                group, row = divmod(lane, SIDE)
                mask = reduce(xor, (m for bit, m in enumerate(masks) if row >> bit & 1), 0)
                piece = group * lane_pieces + number
                addresses.append(_PIECE * (row * pieces + (piece ^ mask)))
            conflicts = conflict_ways(addresses, _PIECE, served)
            total += conflicts[0] if conflicts else 0.0
        return total

    orders = product(choices, repeat=_ROW_BITS)
    best = next(orders)
    fewest = passes(best)
    for order in orders:
        if fewest == lane_pieces:
            break
        number = passes(order)
        if number < fewest:
            best, fewest = order, number
    return best
