"""Launches and copies that the host called for and the file does not have: those of a trace that
lost streams or records. The device may run them in any gap that follows, so why it is idle is not
known from the first of them on.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from wavecast.profiles.profile import NONE, Profile
from wavecast.wording import count

_LAUNCH: Final = re.compile(r"(?:hip|cuda|cu)\w*Launch(?!HostFunc)\w*")
_COPY: Final = re.compile(r"(?:hip|cuda|cu)Mem(?:cpy|set)\w*")
"""Calls of the runtime and the driver by what follows each on a device."""


def find_lost(profile: Profile) -> None:
    """Set `unknown_from` to the first call whose kernel or copy the file lacks, with notes that
    count such calls."""
    calls = profile.calls
    tables = (profile.launches, profile.copies)
    correlation = np.asarray(calls.correlation, dtype=np.int64)
    present = np.concatenate([np.asarray(table.correlation, dtype=np.int64) for table in tables])
    info = np.asarray(calls.info, dtype=np.int64)
    start = np.asarray(calls.start, dtype=np.int64)
    absent: list[int] = []
    for pattern, singular, plural, what in (
        (_LAUNCH, "launch", "launches", "kernel"),
        (_COPY, "copying call", "copying calls", "copy"),
    ):
        matches = [bool(pattern.fullmatch(name)) for name in profile.call_names.values]
        mine = np.array(matches, dtype=bool)[info] & (correlation != NONE)
        lost = mine & ~np.isin(correlation, present)
        if lost.any():
            absent.append(int(start[lost].min()))
            whole = count(int(mine.sum()), singular, plural)
            profile.notes.append(
                f"{int(lost.sum()):,} of {whole} without a {what} in the file (a trace that lost "
                "streams or records?): the device may run them while it seems idle, so why it is "
                "idle after the first of them is not known"
            )
    if absent:
        for device in {*tables[0].device, *tables[1].device}:
            previous = profile.unknown_from.get(device)
            first = min(absent)
            profile.unknown_from[device] = first if previous is None else min(previous, first)


__all__ = ["find_lost"]
