"""Floating-point formats by enumeration: every pattern with its exact value, rounding by search.

Independent of the semantics under test: values are fractions, neighbours are found in a sorted
list. Sources: IEEE 754-2019; OCP 8-bit floating point 1.0; OCP microscaling formats 1.0; AMD CDNA3
instruction set architecture guide (the `fnuz` formats of gfx942).
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

Number = Fraction | float
"""A finite value, or an infinity or NaN as a float; -0.0 is a float too."""


@dataclass(frozen=True)
class Exact:
    """A format: field widths, bias, and which patterns above the numbers there are.

    `beyond` is what the patterns behind the last number are: "ieee" (infinity, NaN), "nan" (one
    NaN, the last), "unsigned" (one NaN, in place of -0), "none".
    """

    exponent: int
    fraction: int
    bias: int
    beyond: str = "ieee"

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    def value(self, pattern: int) -> Number:
        """The value of a pattern."""
        sign = pattern >> self.bits - 1
        size = pattern & (1 << self.bits - 1) - 1
        top = ((1 << self.exponent) - 1) << self.fraction
        if self.beyond == "ieee" and size >= top:
            return math.nan if size > top else -math.inf if sign else math.inf
        if self.beyond == "nan" and size == (1 << self.bits - 1) - 1:
            return math.nan
        if self.beyond == "unsigned" and pattern == 1 << self.bits - 1:
            return math.nan
        field, rest = size >> self.fraction, size & (1 << self.fraction) - 1
        if field:
            rest += 1 << self.fraction
        scale = Fraction(2) ** ((field or 1) - self.bias - self.fraction)
        if not size and sign:
            return -0.0
        return -rest * scale if sign else rest * scale

    @cached_property
    def sizes(self) -> list[Fraction]:
        """Magnitudes by pattern, ascending; all finite ones."""
        found = []
        for pattern in range(1 << self.bits - 1):
            value = self.value(pattern)
            if isinstance(value, float):
                break
            found.append(value)
        return found

    @property
    def nan(self) -> int:
        """The pattern of NaN without one of a sign; -1 where the format has none."""
        if self.beyond == "ieee":
            return ((1 << self.exponent + 1) - 1) << self.fraction - 1
        if self.beyond == "nan":
            return (1 << self.bits - 1) - 1
        return 1 << self.bits - 1 if self.beyond == "unsigned" else -1

    def neighbours(self, size: Fraction) -> tuple[int, int, Fraction]:
        """The patterns below and above a magnitude, and how far between them it lies (0 to 1).
        The one above the largest number counts as one step further on."""
        place = bisect.bisect_right(self.sizes, size) - 1
        low = self.sizes[place]
        if place + 1 < len(self.sizes):
            step = self.sizes[place + 1] - low
        else:
            step = low - self.sizes[place - 1]
        return place, place + 1, (size - low) / step

    def rounded(self, value: Number, towards_zero: bool = False, saturates: bool = False) -> int:
        """The pattern nearest to a value, ties to even; NaN keeps its sign where it can.

        Overflow gives infinity, else NaN, else the largest number; that one also if `saturates` or
        `towards_zero`. Infinity stays infinite in 16 bits and counts as overflow below.
        """
        if isinstance(value, float) and math.isnan(value):
            return self.nan
        sign = 1 << self.bits - 1 if math.copysign(1, value) < 0 else 0
        infinite = isinstance(value, float) and math.isinf(value)
        if infinite and self.bits == 16:
            return sign | self.nan & ~(1 << self.fraction - 1)
        if infinite:
            return self._overflow(sign, saturates)
        size = abs(Fraction(value))
        low, high, between = self.neighbours(size) if size < self._limit else (0, -1, Fraction(1))
        if high < 0:
            return self._overflow(sign, saturates or towards_zero)
        up = between > Fraction(1, 2) or (between == Fraction(1, 2) and low & 1)
        place = high if up and not towards_zero else low
        if place >= len(self.sizes):
            return self._overflow(sign, saturates or towards_zero)
        if self.beyond == "unsigned" and not place:
            return 0
        return sign | place

    @cached_property
    def _limit(self) -> Fraction:
        return 2 * self.sizes[-1]

    def _overflow(self, sign: int, saturates: bool) -> int:
        if saturates or self.beyond == "none":
            return sign | len(self.sizes) - 1
        if self.beyond == "ieee":
            return sign | len(self.sizes)
        return self.nan if self.beyond == "unsigned" else sign | self.nan


F16, BF16, F32, F64 = Exact(5, 10, 15), Exact(8, 7, 127), Exact(8, 23, 127), Exact(11, 52, 1023)
FP8, BF8 = Exact(4, 3, 7, "nan"), Exact(5, 2, 15)
FP8_FNUZ, BF8_FNUZ = Exact(4, 3, 8, "unsigned"), Exact(5, 2, 16, "unsigned")
FP6, BF6, FP4 = Exact(2, 3, 1, "none"), Exact(3, 2, 3, "none"), Exact(2, 1, 1, "none")


def single(value: Fraction) -> int:
    """The pattern of a float that a fraction is exactly, or the one below its magnitude."""
    if not value:
        return 0
    size, sign = abs(value), 0x80000000 if value < 0 else 0
    power = math.floor(math.log2(size))
    while Fraction(2) ** power > size:
        power -= 1
    while Fraction(2) ** (power + 1) <= size:
        power += 1
    power = max(power, -126)
    count = math.floor(size / Fraction(2) ** (power - 23))
    if count < 1 << 23:
        return sign | count
    return sign | (power + 127 << 23) + count - (1 << 23)


@cache
def critical(small: Exact) -> tuple[int, ...]:
    """Floats (patterns) around what decides rounding to a format: its numbers, the middles between
    them, the floats beside both, the specials; at most 1024."""
    places = range(len(small.sizes))
    if len(places) > 128:
        places = [*range(40), *range(0, len(small.sizes), len(small.sizes) // 50), places[-1]]
    found: dict[int, None] = dict.fromkeys(_SPECIAL)
    for place in places:
        here = small.sizes[place]
        following = small.sizes[place + 1] if place + 1 < len(small.sizes) else None
        step = following - here if following is not None else here - small.sizes[place - 1]
        for value in (here, here + step / 2):
            pattern = single(value)
            for near in (pattern - 1, pattern, pattern + 1):
                if 0 <= near < 0x7F800000:
                    found[near] = None
    signed = [pattern for near in found for pattern in (near, near ^ 0x80000000)]
    return tuple(dict.fromkeys(signed))[:1024]


_SPECIAL = (
    *(0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001),
    *(0x7FFFFFFF, 0x7FA00000, 0x33000000, 0x33000001, 0x477FEFFF, 0x477FF000, 0x43E80000),
)
