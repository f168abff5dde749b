"""CSV of AMD's profilers: rocprofv3 (kernel trace, counter collection), rocprof-compute (wide and
long), rocprof v1 and v2.

Every file is recognised by its columns. Times are nanoseconds, grids are in work-items. A file of
counters has several rows per dispatch (long) or a column per counter (wide).
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

import numpy as np

from wavecast.errors import InputError
from wavecast.profiles.profile import Profile, ProfiledKernel, Unfinished
from wavecast.profiles.readers.sizes import Axes, blocks
from wavecast.profiles.readers.times import activity_duration
from wavecast.wording import count

_NAME: Final = ("Kernel_Name", "KernelName", "Name")
_START: Final = ("Start_Timestamp", "BeginNs", "Start")
_END: Final = ("End_Timestamp", "EndNs", "End")
_DEVICE: Final = ("Agent_Id", "GPU_ID", "gpu-id", "Node_ID")
_STREAM: Final = ("Stream_Id", "Queue_Id", "Queue_ID", "queue-id")
_DISPATCH: Final = ("Dispatch_Id", "Dispatch_ID", "Index")
_GRID: Final = ("Grid_Size", "grd")
_WORKGROUP: Final = ("Workgroup_Size", "wgr")
_REGISTERS: Final = ("VGPR_Count", "Arch_VGPR", "arch_vgpr", "VGPR")
_ACCUMULATORS: Final = ("Accum_VGPR_Count", "Accum_VGPR", "accum_vgpr")
_SCALARS: Final = ("SGPR_Count", "SGPR", "sgpr")
_LDS: Final = ("LDS_Block_Size", "LDS_Per_Workgroup", "lds")
_SCRATCH: Final = ("Scratch_Size", "Scratch_Per_Workitem", "scr")
_COUNTER: Final = re.compile(r"(SQ|SQC|TCP|TCC|TA|TD|CPC|CPF|SPI|GRBM|GL[12]C?)_\w+")
"""Names of AMD's counters, without the number of an instance."""
_UNTIMED: Final = (0, 0)
"""Start and end of a dispatch without times."""
_DIGITS: Final = re.compile(r"[0-9]{1,19}")
_INSTANCE: Final = re.compile(r"\[\d+\]$")


def recognise(head: bytes) -> bool:
    """A CSV file whose columns have the name of a kernel, and its times or counters."""
    columns = _columns(head)
    if not columns or not set(_NAME) & columns or "Kernel Name" in columns:
        return False
    times = bool(set(_START) & columns and set(_END) & columns)
    return times or "Counter_Name" in columns or any(_COUNTER.match(name) for name in columns)


def _columns(head: bytes) -> set[str]:
    first = head.decode("utf-8-sig", "replace").splitlines()[:1]
    try:
        return {name.strip() for name in next(csv.reader(first), [])}
    except csv.Error:
        return set()


@dataclass(slots=True)
class _Reader:
    """The columns of a file that are used, by what they mean."""

    columns: Sequence[str]

    def column(self, names: Iterable[str]) -> str:
        """The first of `names` that the file has; empty where it has none."""
        return next((name for name in names if name in self.columns), "")


def read(stream: IO[bytes]) -> Profile:
    """Dispatches and their counters.

    Raises InputError for a file without rows that can be read.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    profile = Profile("rocprof")
    rows = csv.DictReader(text)
    try:
        profile.damaged = _read(profile, _Reader(rows.fieldnames or ()), rows)
    except (csv.Error, EOFError, OSError, zlib.error) as error:
        raise InputError(f"the table cannot be read: {error}") from None
    finally:
        text.detach()
    if not len(profile.launches):
        raise InputError("the table has no dispatch that can be read")
    return profile


def _read(profile: Profile, reader: _Reader, rows: Iterable[Mapping[str, str]]) -> int:
    """Adds all rows; returns the number of those that cannot be read."""
    name, start, end = reader.column(_NAME), reader.column(_START), reader.column(_END)
    dispatch = reader.column(_DISPATCH)
    long = "Counter_Name" in reader.columns
    wide = [c for c in reader.columns if _COUNTER.match(c)] if not long else []
    agents: dict[str, int] = {}
    numbers: dict[tuple[str, str, str], int] = {}
    passes: dict[int, dict[tuple[int, int], None]] = {}
    counter_passes: dict[int, dict[str, set[str]]] = {}
    damaged = 0
    for row in rows:
        if row.get("Kind") not in (None, "", "KERNEL_DISPATCH"):
            continue
        if not _whole(row):
            damaged += 1
            continue
        agent = row.get(reader.column(_DEVICE)) or ""
        try:
            key = (
                (agent, row[dispatch], row[name])
                if long and dispatch
                else ("", "", str(len(numbers)))
            )
            number = numbers.get(key)
            times = _times(row.get(start), row.get(end))
            if number is None:
                if not row[name]:
                    raise ValueError("no name")
                info = profile.kernels.number(_kernel(reader, row, row[name]))
                device = agents.setdefault(agent, len(agents))
                stream = _integer(row.get(reader.column(_STREAM)))
                number = len(profile.launches)
                start_time, end_time = times or _UNTIMED
                profile.launches.add(info, device, stream, start_time, end_time - start_time)
                numbers[key] = number
            elif times:
                _repeat(profile, number, *times, passes)
            if long:
                counter, value = row["Counter_Name"], float(row["Counter_Value"])
                _count(profile, number, ((counter, value),))
                _instance(counter_passes, number, counter, row.get(start) or "")
            else:
                _count(profile, number, _wide(row, wide))
        except (KeyError, TypeError, ValueError, OverflowError):
            damaged += 1
    _average(profile, passes)
    _average_counters(profile, counter_passes)
    _leave_out_untimed(profile)
    return damaged


def _leave_out_untimed(profile: Profile) -> None:
    """Dispatches without times, unless no dispatch has any: then the file has counters only."""
    timed = np.asarray(profile.launches.duration, dtype=np.int64) > 0
    untimed = int((~timed).sum())
    if untimed and timed.any():
        profile.unfinished += untimed
        profile.keep_launches(timed)
    elif untimed:
        number = count(untimed, "dispatch", "dispatches")
        profile.notes.append(f"{number} without times in whole nanoseconds")


def _times(start: str | None, end: str | None) -> tuple[int, int] | None:
    """Start and end of a dispatch; None for one that did not end, or has no times."""
    start_time, end_time = _time(start), _time(end)
    if start_time is None or end_time is None:
        return None
    try:
        return start_time, start_time + activity_duration(start_time, end_time)
    except Unfinished:
        return None


def _repeat(
    profile: Profile,
    number: int,
    start_time: int,
    end_time: int,
    passes: dict[int, dict[tuple[int, int], None]],
) -> None:
    """Keeps the times of a dispatch that ran again for other counters."""
    launches = profile.launches
    if not launches.duration[number]:
        launches.start[number], launches.duration[number] = start_time, end_time - start_time
    elif start_time != launches.start[number]:
        first = launches.start[number]
        pass_times = passes.setdefault(number, {(first, first + launches.duration[number]): None})
        pass_times[start_time, end_time] = None


def _average(profile: Profile, passes: Mapping[int, Mapping[tuple[int, int], None]]) -> None:
    """The mean time of the passes, as rocprof-compute joins them; the start is that of the first
    in the file."""
    for number, pass_times in passes.items():
        time = sum(end_time - start_time for start_time, end_time in pass_times)
        profile.launches.duration[number] = round(time / len(pass_times))
    if passes:
        most = max(len(pass_times) for pass_times in passes.values())
        dispatches = count(len(passes), "dispatch", "dispatches")
        profile.notes.append(
            f"{dispatches} ran up to {most:,} times for all counters: their times are means"
        )


def _whole(row: Mapping[Any, object]) -> bool:
    """Whether a row has as many cells as the header: `csv` fills missing ones with None, and has
    what is too much under None."""
    return None not in row and None not in row.values()


def _time(text: str | None) -> int | None:
    """Nanoseconds; None where there are none, or a spreadsheet has rounded them (`8.1E+14`)."""
    return int(text) if text and _DIGITS.fullmatch(text) else None


def _count(profile: Profile, number: int, counters: Iterable[tuple[str, float]]) -> None:
    """Instances of a counter are added up."""
    for name, value in counters:
        sums = profile.counters.setdefault(number, {})
        plain = _INSTANCE.sub("", name)
        sums[plain] = sums.get(plain, 0.0) + value


def _instance(
    counter_passes: dict[int, dict[str, set[str]]], number: int, counter: str, start: str
) -> None:
    """Keeps the passes, by their starts, in which a counter of a dispatch was counted."""
    counter_passes.setdefault(number, {}).setdefault(_INSTANCE.sub("", counter), set()).add(start)


def _average_counters(
    profile: Profile, counter_passes: Mapping[int, Mapping[str, set[str]]]
) -> None:
    """The mean over the passes of a counter that several passes counted."""
    for number, starts in counter_passes.items():
        for counter, passes in starts.items():
            profile.counters[number][counter] /= len(passes)


def _wide(row: Mapping[str, str], columns: Iterable[str]) -> Iterator[tuple[str, float]]:
    for column in columns:
        if row.get(column) not in (None, ""):
            yield column, float(row[column])


def _kernel(reader: _Reader, row: Mapping[str, str], name: str) -> ProfiledKernel:
    def size(names: Iterable[str]) -> int:
        return _integer(row.get(reader.column(names)))

    threads, work_items = _axes(reader, row, _WORKGROUP), _axes(reader, row, _GRID)
    return ProfiledKernel(
        name.removesuffix(" (.kd)").removesuffix(".kd"),
        blocks=blocks(work_items, threads),
        threads=threads,
        registers=size(_REGISTERS),
        accumulators=size(_ACCUMULATORS),
        scalar_registers=size(_SCALARS),
        lds_bytes=size(_LDS),
        scratch_bytes=size(_SCRATCH),
    )


def _axes(reader: _Reader, row: Mapping[str, str], names: Sequence[str]) -> Axes:
    if f"{names[0]}_X" in reader.columns:
        x, y, z = (_integer(row.get(f"{names[0]}_{axis}")) for axis in "XYZ")
        return (x, y, z)
    return (_integer(row.get(reader.column(names))), 1, 1)


def _integer(text: str | None) -> int:
    """0 where a number is absent. Raises ValueError for other text."""
    return int(float(text)) if text else 0


__all__ = ["read", "recognise"]
