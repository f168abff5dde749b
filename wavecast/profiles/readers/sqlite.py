"""Databases of profilers: rocpd (rocprofv3's default output) and Nsight Systems' export.

Both are opened read-only. Names of rocpd's tables end in an identifier of the process, so that a
file can have several; columns that older schemas lack are read as 0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from wavecast.errors import InputError
from wavecast.profiles.profile import (
    NONE,
    Activities,
    HostCalls,
    Names,
    Profile,
    ProfiledDevice,
    ProfiledKernel,
    Unfinished,
)
from wavecast.profiles.readers.sizes import blocks
from wavecast.profiles.readers.times import activity_duration

MAGIC: Final = b"SQLite format 3\0"
_ROCPD: Final = "rocpd_kernel_dispatch"
_NSYS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
_RANGES: Final = "NVTX_EVENTS"
_UNFINISHED: Final = -1
"""A duration that tables count as that of a record without an end."""


def recognise(head: bytes) -> bool:
    """A SQLite database."""
    return head.startswith(MAGIC)


def has_rocpd(path: Path) -> bool:
    """Whether a database has dispatches of rocprofv3."""
    try:
        with closing(_open(path)) as db:
            return any(name.startswith(_ROCPD) for name in _tables(db))
    except sqlite3.DatabaseError:
        return False


def _open(path: Path) -> sqlite3.Connection:
    """Read only: neither the database nor its journal is touched."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)


def _tables(db: sqlite3.Connection) -> list[str]:
    """Without views, which can have rows without end."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [str(name) for (name,) in rows]


def read(path: Path) -> Profile:
    """The kernels, copies and runtime calls of a database.

    Raises InputError where it is damaged or not of a profiler that is known.
    """
    try:
        with closing(_open(path)) as db:
            tables = _tables(db)
            if _NSYS in tables:
                return _nsys(db, tables)
            suffixes = [t.removeprefix(_ROCPD) for t in tables if t.startswith(_ROCPD)]
            if suffixes:
                return _rocpd(db, sorted(suffixes))
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: the database cannot be read: {error}") from None
    raise InputError(
        f"{path} is neither a rocpd database nor an export of Nsight Systems with kernels"
    )


def _add(profile: Profile, table: Activities | HostCalls, *values: Any) -> None:
    """A row of a table of the profile; one with other than 64-bit integers is counted."""
    try:
        table.add(*values)
    except ValueError as error:
        profile.leave_out(error)


def _whole(value: Any) -> int:
    """An integer of a row; 0 for NULL and for what is not a number."""
    return value if isinstance(value, int) else 0


def _bytes(value: Any) -> int:
    """The bytes of a copy; NONE where they are not in the file."""
    return value if isinstance(value, int) else NONE


def _between(start: Any, end: Any) -> Any:
    """The duration; None, which no table takes, where one of both is not a number."""
    return end - start if isinstance(start, int) and isinstance(end, int) else None


def _row_duration(row: Mapping[str, Any]) -> Any:
    """The duration of an activity; one before 0, which no table takes, without a later end."""
    start, end = row["start"], row["end"]
    if isinstance(start, int) and (end is None or isinstance(end, int)):
        try:
            return activity_duration(start, end or 0)
        except Unfinished:
            return _UNFINISHED
    return None


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in db.execute(f'PRAGMA table_info("{table}")')}


def _rows(db: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of a table, none of one that is absent; None for columns that it lacks."""
    present = _columns(db, table)
    if not present:
        return
    selection = ", ".join(f'"{c}"' if c in present else "NULL" for c in columns)
    for row in db.execute(f'SELECT {selection} FROM "{table}"'):
        yield dict(zip(columns, row, strict=True))


def _strings(db: sqlite3.Connection, table: str, column: str) -> dict[int, Any]:
    return {row["id"]: row[column] for row in _rows(db, table, ("id", column))}


# --- rocpd ---------------------------------------------------------------------------------------

_AXES: Final = ("x", "y", "z")


def _rocpd(db: sqlite3.Connection, suffixes: Sequence[str]) -> Profile:
    profile = Profile("rocprofv3")
    numbers: Names[tuple[str, int]] = Names()
    for suffix in suffixes:
        _rocpd_process(db, profile, suffix, numbers)
    return profile


def _rocpd_process(
    db: sqlite3.Connection, profile: Profile, suffix: str, numbers: Names[tuple[str, int]]
) -> None:
    symbols = {
        row["id"]: row
        for row in _rows(
            db,
            f"rocpd_info_kernel_symbol{suffix}",
            ("id", "display_name", "kernel_name", "arch_vgpr_count", "accum_vgpr_count",
             "sgpr_count"),
        )
    }  # fmt: skip
    agents = {
        row["id"]: row
        for row in _rows(db, f"rocpd_info_agent{suffix}", ("id", "name", "product_name"))
    }
    columns = (
        "agent_id", "kernel_id", "queue_id", "stream_id", "start", "end", "private_segment_size",
        "group_segment_size", *(f"{size}_{axis}" for size in ("workgroup_size", "grid_size")
                                for axis in _AXES),
    )  # fmt: skip
    for row in _rows(db, f"{_ROCPD}{suffix}", columns):
        symbol = symbols.get(row["kernel_id"]) or {}
        name = symbol.get("display_name") or symbol.get("kernel_name")
        tx, ty, tz = (_whole(row[f"workgroup_size_{axis}"]) for axis in _AXES)
        gx, gy, gz = (_whole(row[f"grid_size_{axis}"]) for axis in _AXES)
        info = ProfiledKernel(
            str(name or f"kernel {row['kernel_id']}").removesuffix(".kd"),
            blocks=blocks((gx, gy, gz), (tx, ty, tz)),
            threads=(tx, ty, tz),
            registers=_whole(symbol.get("arch_vgpr_count")),
            accumulators=_whole(symbol.get("accum_vgpr_count")),
            scalar_registers=_whole(symbol.get("sgpr_count")),
            lds_bytes=_whole(row["group_segment_size"]),
            scratch_bytes=_whole(row["private_segment_size"]),
        )
        device = numbers.number((suffix, row["agent_id"]))
        agent = agents.get(row["agent_id"]) or {}
        profile.devices[device] = ProfiledDevice(
            name=str(agent.get("product_name") or ""), target=str(agent.get("name") or "")
        )
        stream = _whole(row["stream_id"]) or _whole(row["queue_id"])
        times = row["start"], _row_duration(row)
        _add(profile, profile.launches, profile.kernels.number(info), device, stream, *times)
    strings = _strings(db, f"rocpd_string{suffix}", "string")
    copies = ("name_id", "dst_agent_id", "stream_id", "start", "end", "size")
    for row in _rows(db, f"rocpd_memory_copy{suffix}", copies):
        _add(
            *(profile, profile.copies),
            profile.copy_names.number(str(strings.get(row["name_id"], "copy"))),
            numbers.number((suffix, row["dst_agent_id"])),
            _whole(row["stream_id"]),
            *(row["start"], _row_duration(row), NONE, _bytes(row["size"])),
        )


# --- Nsight Systems ------------------------------------------------------------------------------


_PROCESS: Final = -(1 << 24)
"""Bits of `globalTid` that are the process: the others are the thread."""


class _Correlations:
    """Numbers that a launch shares with its call. Every process counts from 1; `several` is false
    where the file does not say of which process a launch is."""

    def __init__(self, several: bool) -> None:
        self._several = several
        self._numbers: Names[tuple[int, int]] = Names()

    def of(self, process: Any, correlation: Any) -> int:
        """NONE without a correlation."""
        number = _whole(correlation)
        if not number:
            return NONE
        return self._numbers.number((_whole(process) if self._several else 0, number))


def _nsys(db: sqlite3.Connection, tables: Sequence[str]) -> Profile:
    profile = Profile("Nsight Systems")
    correlations = _Correlations("globalPid" in _columns(db, _NSYS))
    strings = _strings(db, "StringIds", "value")
    columns = (
        "start", "end", "deviceId", "streamId", "globalPid", "correlationId", "demangledName",
        "shortName", "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
        "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread",
    )  # fmt: skip
    for row in _rows(db, _NSYS, columns):
        name = strings.get(row["demangledName"]) or strings.get(row["shortName"])
        shared = _whole(row["staticSharedMemory"]) + _whole(row["dynamicSharedMemory"])
        info = ProfiledKernel(
            str(name or "unnamed kernel"),
            blocks=(_whole(row["gridX"]), _whole(row["gridY"]), _whole(row["gridZ"])),
            threads=(_whole(row["blockX"]), _whole(row["blockY"]), _whole(row["blockZ"])),
            registers=_whole(row["registersPerThread"]),
            lds_bytes=shared,
            scratch_bytes=_whole(row["localMemoryPerThread"]),
        )
        number = profile.kernels.number(info)
        _add(profile, profile.launches, number, *_activity(row, correlations))
    directions = _strings(db, "ENUM_CUDA_MEMCPY_OPER", "label")
    for kind in ("MEMCPY", "MEMSET"):
        table = f"CUPTI_ACTIVITY_KIND_{kind}"
        if table in tables:
            columns = (
                "start", "end", "deviceId", "streamId", "globalPid", "correlationId", "bytes",
                "copyKind",
            )  # fmt: skip
            for row in _rows(db, table, columns):
                direction = directions.get(row["copyKind"], "")
                name = profile.copy_names.number(f"{kind.capitalize()} {direction}".rstrip())
                where = *_activity(row, correlations), _bytes(row["bytes"])
                _add(profile, profile.copies, name, *where)
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if calls in tables:
        for row in _rows(db, calls, ("start", "end", "globalTid", "correlationId", "nameId")):
            _add(
                *(profile, profile.calls),
                profile.call_names.number(str(strings.get(row["nameId"], "call"))),
                row["globalTid"] or 0,
                *(row["start"], _between(row["start"], row["end"])),
                correlations.of(_whole(row["globalTid"]) & _PROCESS, row["correlationId"]),
            )
    if _RANGES in tables:
        _annotations(db, profile, strings)
    if "TARGET_INFO_GPU" in tables:
        columns = ("id", "name", "smCount", "totalMemory", "computeMajor", "computeMinor")
        for row in _rows(db, "TARGET_INFO_GPU", columns):
            has_capability = isinstance(row["computeMajor"], int)
            profile.devices[row["id"]] = ProfiledDevice(
                name=str(row["name"] or ""),
                target=f"sm_{row['computeMajor']}{_whole(row['computeMinor'])}"
                if has_capability
                else "",
                units=_whole(row["smCount"]),
                memory_bytes=_whole(row["totalMemory"]),
            )
    return profile


def _annotations(db: sqlite3.Connection, profile: Profile, strings: Mapping[Any, str]) -> None:
    """Ranges of NVTX that have an end."""
    for row in _rows(db, _RANGES, ("start", "end", "text", "textId", "globalTid")):
        name = row["text"] or strings.get(row["textId"])
        if name and row["end"] is not None:
            number = profile.annotation_names.number(str(name))
            times = row["start"], _between(row["start"], row["end"])
            _add(profile, profile.annotations, number, row["globalTid"] or 0, *times)


def _activity(row: Mapping[str, Any], correlations: _Correlations) -> tuple[Any, ...]:
    """Device, stream, start, duration and correlation of a row of Nsight Systems."""
    return (
        *(row["deviceId"], row["streamId"]),
        *(row["start"], _row_duration(row)),
        correlations.of(row["globalPid"], row["correlationId"]),
    )


__all__ = ["MAGIC", "has_rocpd", "read", "recognise"]
