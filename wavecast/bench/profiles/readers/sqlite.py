"""Databases of profilers: rocpd (rocprofv3's default output) and Nsight Systems' export.

Both are opened read-only. Names of rocpd's tables end in an identifier of the process, so that a
file can have several; columns that older schemas lack are read as 0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from wavecast.bench.profiles.profile import Names, Profile, ProfiledDevice, ProfiledKernel
from wavecast.bench.profiles.readers.sizes import blocks
from wavecast.errors import InputError

MAGIC: Final = b"SQLite format 3\0"
_ROCPD: Final = "rocpd_kernel_dispatch"
_NSYS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"


def recognise(head: bytes) -> bool:
    """A SQLite database."""
    return head.startswith(MAGIC)


def read(path: Path) -> Profile:
    """The kernels, copies and runtime calls of a database.

    Raises InputError where it is damaged or not of a profiler that is known.
    """
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        ) as db:
            tables = [str(name) for (name,) in db.execute("SELECT name FROM sqlite_master")]
            if _NSYS in tables:
                return _nsys(db, tables)
            suffixes = [t.removeprefix(_ROCPD) for t in tables if t.startswith(_ROCPD)]
            if suffixes:
                return _rocpd(db, sorted(suffixes))
    except (sqlite3.DatabaseError, OverflowError) as error:
        raise InputError(f"{path}: the database cannot be read: {error}") from None
    raise InputError(
        f"{path} is neither a rocpd database nor an export of Nsight Systems with kernels"
    )


def _rows(db: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of a table; None for columns that it lacks."""
    present = {str(row[1]) for row in db.execute(f'PRAGMA table_info("{table}")')}
    chosen = ", ".join(f'"{c}"' if c in present else "NULL" for c in columns)
    for row in db.execute(f'SELECT {chosen} FROM "{table}"'):
        yield dict(zip(columns, row, strict=True))


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
        tx, ty, tz = (int(row[f"workgroup_size_{axis}"] or 0) for axis in _AXES)
        gx, gy, gz = (int(row[f"grid_size_{axis}"] or 0) for axis in _AXES)
        info = ProfiledKernel(
            (name or f"kernel {row['kernel_id']}").removesuffix(".kd"),
            blocks=blocks((gx, gy, gz), (tx, ty, tz)),
            threads=(tx, ty, tz),
            registers=int(symbol.get("arch_vgpr_count") or 0),
            accumulators=int(symbol.get("accum_vgpr_count") or 0),
            scalar_registers=int(symbol.get("sgpr_count") or 0),
            lds_bytes=int(row["group_segment_size"] or 0),
            scratch_bytes=int(row["private_segment_size"] or 0),
        )
        device = numbers.number((suffix, row["agent_id"]))
        agent = agents.get(row["agent_id"]) or {}
        profile.devices[device] = ProfiledDevice(
            name=agent.get("product_name") or "", target=agent.get("name") or ""
        )
        stream = int(row["stream_id"] or row["queue_id"] or 0)
        profile.launches.add(
            profile.kernels.number(info), device, stream, row["start"], row["end"] - row["start"]
        )
    strings = {r["id"]: r["string"] for r in _rows(db, f"rocpd_string{suffix}", ("id", "string"))}
    copies = ("name_id", "dst_agent_id", "stream_id", "start", "end")
    for row in _rows(db, f"rocpd_memory_copy{suffix}", copies):
        profile.copies.add(
            profile.copy_names.number(str(strings.get(row["name_id"], "copy"))),
            numbers.number((suffix, row["dst_agent_id"])),
            int(row["stream_id"] or 0),
            row["start"],
            row["end"] - row["start"],
        )


# --- Nsight Systems ------------------------------------------------------------------------------


def _nsys(db: sqlite3.Connection, tables: Sequence[str]) -> Profile:
    profile = Profile("Nsight Systems")
    strings = {row["id"]: row["value"] for row in _rows(db, "StringIds", ("id", "value"))}
    columns = (
        "start", "end", "deviceId", "streamId", "correlationId", "demangledName", "shortName",
        "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
        "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread",
    )  # fmt: skip
    for row in _rows(db, _NSYS, columns):
        name = strings.get(row["demangledName"]) or strings.get(row["shortName"])
        shared = int(row["staticSharedMemory"] or 0) + int(row["dynamicSharedMemory"] or 0)
        info = ProfiledKernel(
            str(name or "unnamed kernel"),
            blocks=(row["gridX"] or 0, row["gridY"] or 0, row["gridZ"] or 0),
            threads=(row["blockX"] or 0, row["blockY"] or 0, row["blockZ"] or 0),
            registers=int(row["registersPerThread"] or 0),
            lds_bytes=shared,
            scratch_bytes=int(row["localMemoryPerThread"] or 0),
        )
        profile.launches.add(
            profile.kernels.number(info),
            row["deviceId"],
            row["streamId"],
            row["start"],
            row["end"] - row["start"],
            row["correlationId"] or 0,
        )
    for kind in ("MEMCPY", "MEMSET"):
        table = f"CUPTI_ACTIVITY_KIND_{kind}"
        if table in tables:
            for row in _rows(db, table, ("start", "end", "deviceId", "streamId", "correlationId")):
                profile.copies.add(
                    profile.copy_names.number(kind.capitalize()),
                    row["deviceId"],
                    row["streamId"],
                    row["start"],
                    row["end"] - row["start"],
                    row["correlationId"] or 0,
                )
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
    if calls in tables:
        for row in _rows(db, calls, ("start", "end", "globalTid", "correlationId", "nameId")):
            profile.calls.add(
                profile.call_names.number(str(strings.get(row["nameId"], "call"))),
                row["globalTid"] or 0,
                row["start"],
                row["end"] - row["start"],
                row["correlationId"] or 0,
            )
    if "TARGET_INFO_GPU" in tables:
        columns = ("id", "name", "smCount", "totalMemory", "computeMajor", "computeMinor")
        for row in _rows(db, "TARGET_INFO_GPU", columns):
            profile.devices[row["id"]] = ProfiledDevice(
                name=row["name"] or "",
                target=f"sm_{row['computeMajor']}{row['computeMinor']}",
                units=row["smCount"] or 0,
                memory_bytes=row["totalMemory"] or 0,
            )
    return profile


__all__ = ["MAGIC", "read", "recognise"]
