"""Records that are of no run: one that is in the file twice, and one whose time is far from those
of all others. They stay out of a profile; a note names those that are far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.profiles.clocks import EARLY, LATE, CallDelays
from wavecast.profiles.kernel_names import display_name
from wavecast.profiles.profile import Activities, Copies, Profile
from wavecast.wording import count

_FAR: Final = 500_000_000
"""Nanoseconds without any record next to one that is far from all others."""
_TIMES: Final = 1_000
"""Spans of all other records that lie between them and one that is far; and how much nearer a
record is to the zero of its clock, which a time that was not taken leaves, than to the others."""
_SHARE: Final = 100
"""Records of which one can be far, or displaced from its call; a group is far as a whole."""
_MOST: Final = 5
"""Other records for each that is far: with more, the run has long pauses."""
_NAMED: Final = 3
"""Records that a note names."""
_TIME_COLUMNS: Final = ("start", "duration", "device", "stream", "info", "correlation")
Mask = NDArray[np.bool_]


def leave_out(profile: Profile) -> None:
    """Remove them from the launches and copies of a profile that has a timeline, with notes."""
    if not profile.timeline:
        return
    tables = (profile.launches, profile.copies)
    repeated = [_duplicate_mask(table) for table in tables]
    number = sum(int(mask.sum()) for mask in repeated)
    if number:
        _keep(profile, [~mask for mask in repeated])
        profile.notes.append(f"{count(number, 'record')} in the file twice, counted once")
    far = _far(profile)
    if any(mask.any() for mask in far):
        profile.notes += _omission_notes(profile, far)
        _keep(profile, [~mask for mask in far])


def _keep(profile: Profile, masks: list[Mask]) -> None:
    profile.keep_launches(masks[0])
    profile.copies.keep(masks[1])


def _duplicate_mask(table: Activities) -> Mask:
    """Records whose values are all those of one before. Without a duration there can be two: clocks
    that count microseconds have several kernels at a time."""
    start = np.asarray(table.start, dtype=np.int64)
    repeats = np.zeros(len(start), dtype=bool)
    if not len(start):
        return repeats
    order = np.argsort(start, kind="stable")
    same = np.diff(start[order]) == 0
    rows = order[np.append(same, False) | np.append(False, same)]
    if len(rows):
        rows.sort()
        columns = [np.asarray(getattr(table, name), dtype=np.int64) for name in _TIME_COLUMNS]
        _, first = np.unique([column[rows] for column in columns], axis=1, return_index=True)
        repeats[rows] = True
        repeats[rows[first]] = False
    return repeats & (np.asarray(table.duration, dtype=np.int64) > 0)


def _far(profile: Profile) -> list[Mask]:
    """The launches and the copies that are far from all other records of their device."""
    tables = (profile.launches, profile.copies)
    sizes = [len(table) for table in tables]
    device = _concatenate(tables, lambda table: table.device)
    start = _concatenate(tables, lambda table: table.start)
    end = start + _concatenate(tables, lambda table: table.duration)
    delays = CallDelays(profile)
    has_call, delay = (np.concatenate(pair) for pair in zip(*map(delays.of, tables), strict=True))
    outliers = np.zeros(len(device), dtype=bool)
    for number in np.unique(device).tolist():
        mine = np.flatnonzero(device == number)
        if len(mine) <= 2:
            continue
        far = _apart(start[mine], end[mine])
        with_call = has_call[mine]
        if with_call.any():
            usual = np.median(delay[mine][with_call])
            far &= ~with_call | (np.abs(delay[mine] - usual) >= _FAR)
            far[with_call] |= _outlier_mask(delay[mine][with_call])
        outliers[mine[far]] = True
    return [outliers[: sizes[0]], outliers[sizes[0] :]]


def _concatenate(
    tables: tuple[Activities, ...], column: Callable[[Activities], object]
) -> NDArray[np.int64]:
    return np.concatenate([np.asarray(column(table), dtype=np.int64) for table in tables])


def _apart(start: NDArray[np.int64], end: NDArray[np.int64]) -> Mask:
    """Few records before or after all others, with much more time between than the others take."""
    outliers = np.zeros(len(start), dtype=bool)
    order = np.argsort(start, kind="stable")
    latest_end = np.maximum.accumulate(end[order])
    cuts = np.flatnonzero(start[order][1:] - latest_end[:-1] >= _FAR) + 1
    groups = np.split(order, cuts)
    sizes = [len(group) for group in groups]
    few = max(1, max(sizes) // _SHARE)
    large = [number for number, size in enumerate(sizes) if size > few]
    if not large:
        return outliers
    first, last = groups[large[0]], groups[large[-1]]
    begin, until = int(start[first].min()), int(end[last].max())
    for group in (*groups[: large[0]], *groups[large[-1] + 1 :]):
        distance = max(begin - int(end[group].max()), int(start[group].min()) - until)
        from_zero = int(np.abs(start[group]).max())
        if distance >= _TIMES * min(until - begin, from_zero):
            outliers[group] = True
    if outliers.sum() > max(1, (~outliers).sum() // _MOST):
        outliers[:] = False
    return outliers


def _outlier_mask(delay: NDArray[np.int64]) -> Mask:
    """Few records that start long before their calls, or a minute after, where no others do."""
    outliers = np.zeros(len(delay), dtype=bool)
    if len(delay) <= 2:
        return outliers
    wrong = (delay < EARLY) | (delay > LATE)
    few = int(wrong.sum()) <= max(1, len(delay) // _SHARE)
    if few and wrong.any():
        others = delay[~wrong]
        outliers = (delay < min(EARLY, others.min() - _FAR)) | (delay > LATE)
    return outliers


def _omission_notes(profile: Profile, far: list[Mask]) -> list[str]:
    """A line for each record that is left out, and one for those beyond the first."""
    lines: list[str] = []
    for table, mask in zip((profile.launches, profile.copies), far, strict=True):
        starts = np.asarray(table.start, dtype=np.int64)
        devices = np.asarray(table.device, dtype=np.int64)
        for row in np.flatnonzero(mask).tolist():
            others = starts[~mask & (devices == devices[row])]
            text = _record_name(profile, table, row)
            if len(others):
                apart = starts[row] - others
                nearest = int(apart[np.argmin(np.abs(apart))])
                side = "after" if nearest > 0 else "before"
                text += f" starts {abs(nearest) * 1e-9:,.6g} s {side} the nearest other record"
            else:
                text += " is far from all other records"
            lines.append(f"{text}: left out of times, means and spans")
    if len(lines) > _NAMED:
        more = count(len(lines) - _NAMED, "more record")
        lines[_NAMED:] = [f"{more} far from all others: left out of times, means and spans"]
    return lines


def _record_name(profile: Profile, table: Activities, row: int) -> str:
    if isinstance(table, Copies):
        return profile.copy_names[table.info[row]]
    return display_name(profile.kernels[table.info[row]].name)


__all__ = ["leave_out"]
