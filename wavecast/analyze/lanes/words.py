"""What a site that takes 32 lanes for granted does on a wave of 64, and what to write instead."""

from __future__ import annotations

from typing import Final, NamedTuple

from wavecast.analyze.lanes.assumption import Assumption


class SiteWords(NamedTuple):
    """The effect, after the name of a site; and the advice, a sentence."""

    effect: str
    advice: str


WORDS: Final = {
    Assumption.VOTES: SiteWords(
        "keeps 32 bits of a ballot: the votes of lanes 32 to 63 are lost",
        "Keep it in an unsigned long long, and use __popcll, __ffsll and 1ull << lane.",
    ),
    Assumption.ALL_VOTES: SiteWords(
        "compares a ballot with 32 ones, which is not all lanes of a wave of 64",
        "Use __all(predicate), or compare with __activemask().",
    ),
    Assumption.GROUP_VOTES: SiteWords(
        "gives each group of 32 lanes the votes of all 64",
        "Shift the ballot by the first lane of the group and keep 32 bits, or use "
        "tiled_partition<32>(…).ballot(predicate).",
    ),
    Assumption.MASK: SiteWords(
        "names 32 lanes in a mask of 32 bits: lanes 32 to 63 are not in it, and ROCm's headers "
        "refuse a mask that has not 64 bits",
        "Use 0xffffffffffffffffull, or __shfl… without a mask.",
    ),
    Assumption.SHIFT: SiteWords(
        "shifts 32 bits by the number of a lane, which reaches 63: the result of a shift by 32 or "
        "more is undefined",
        "Shift 64 bits (1ull << lane), or take lane % 32 for groups of 32.",
    ),
    Assumption.REDUCTION: SiteWords(
        "combines 32 lanes, and nothing uses the result of the other 32",
        "Begin with warpSize / 2, or state the width 32 and use the result of every group.",
    ),
    Assumption.ROW: SiteWords(
        "combines 32 lanes, in a kernel that divides its work-items by 64: each half of a wave "
        "has another result",
        "Begin with warpSize / 2, or state the width 32 for groups of 32.",
    ),
    Assumption.WINDOW: SiteWords(
        "ends a scan after 32 lanes: lanes 32 to 63 have the sum of the last 32 lanes only",
        "Continue until warpSize, or state the width 32 and compare lane % 32.",
    ),
    Assumption.OTHER_HALF: SiteWords(
        "moves values between lanes 0 to 31 and lanes 32 to 63, which are two groups here",
        "State the width 32 as the last argument, or use tiled_partition<32>.",
    ),
    Assumption.LEADER: SiteWords(
        "gives all lanes the value of the first of two lanes that have one, 32 lanes apart: "
        "nothing uses that of the second",
        "State the width 32, or let one lane of the wave (threadIdx.x % warpSize) have the value.",
    ),
    Assumption.SAME_ADDRESS: SiteWords(
        "stores the results of lanes 0 to 31 and of lanes 32 to 63 at one address",
        "Combine all lanes of the wave (begin with warpSize / 2), or give every group of 32 its "
        "own element.",
    ),
}

__all__ = ["WORDS", "SiteWords"]
