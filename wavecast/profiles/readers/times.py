"""Times of activities as profilers that count nanoseconds write them."""

from __future__ import annotations

from typing import Final

from wavecast.profiles.profile import Unfinished

_LONG: Final = 500_000_000
"""Nanoseconds from a start of 0 that are the age of the clock, not the time of an activity."""


def activity_duration(start: int, end: int) -> int:
    """The duration. Raises Unfinished where the end is not after the start, because no kernel and
    no copy takes less than a nanosecond, and where a start of 0 stands for none."""
    if end <= start or (not start and end >= _LONG):
        raise Unfinished(f"start {start}, end {end}")
    return end - start


__all__ = ["activity_duration"]
