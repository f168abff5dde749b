"""rocpd, the SQLite database of rocprofv3 (rocprofiler-sdk, source/share/rocprofiler-sdk-rocpd,
rocpd_tables.sql, schema version 3).

Tables carry an identifier of the process at the end of their names (`rocpd_kernel_dispatch_…`);
`start` and `end` are nanoseconds, `kernel_id` leads to `rocpd_info_kernel_symbol`, `agent_id` to
`rocpd_info_agent`, whose `name` is the target (`gfx942`) and `product_name` the GPU's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from wavecast.bench.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.bench.store.importers.timings import ImportedTiming, grouped, imported, kernel, launch
from wavecast.errors import InputError

_DISPATCHES: Final = "rocpd_kernel_dispatch"
_QUERY: Final = """
SELECT coalesce(symbol.display_name, symbol.kernel_name), agent.name, agent.product_name,
    dispatch."end" - dispatch.start, grid_size_x, grid_size_y, grid_size_z,
    workgroup_size_x, workgroup_size_y, workgroup_size_z
FROM "rocpd_kernel_dispatch{suffix}" AS dispatch
JOIN "rocpd_info_kernel_symbol{suffix}" AS symbol
    ON symbol.id = dispatch.kernel_id AND symbol.guid = dispatch.guid
JOIN "rocpd_info_agent{suffix}" AS agent
    ON agent.id = dispatch.agent_id AND agent.guid = dispatch.guid
ORDER BY dispatch.start
"""


def recognise(source: ImportedFile) -> bool:
    """A database with a table of dispatches."""
    if not source.content.startswith(b"SQLite format 3\0"):
        return False
    try:
        with closing(_open(source)) as database:
            return bool(_suffixes(database))
    except sqlite3.DatabaseError:
        return False


def read(source: ImportedFile, given: ImportLabels) -> Imported:
    """Dispatches of all processes, by kernel and size of launch. Raises InputError."""
    try:
        with closing(_open(source)) as database:
            times = list(_times(database))
    except sqlite3.DatabaseError as error:
        raise InputError(f"{source.path} is not a rocpd database: {error}") from None
    return imported(source, "rocpd", grouped(times), given)


def _times(database: sqlite3.Connection) -> Iterator[tuple[ImportedTiming, float]]:
    for suffix in _suffixes(database):
        for name, target, board, nanoseconds, *sizes in database.execute(
            _QUERY.format(suffix=suffix)
        ):
            subject = kernel(name, launch(sizes[:3], sizes[3:]))
            yield (
                ImportedTiming(subject, board=board or "", target=target or ""),
                nanoseconds * 1e-9,
            )


def _suffixes(database: sqlite3.Connection) -> list[str]:
    rows = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, ?) = ? "
        "ORDER BY name",
        (len(_DISPATCHES), _DISPATCHES),
    )
    return [name.removeprefix(_DISPATCHES).replace('"', '""') for (name,) in rows]


def _open(source: ImportedFile) -> sqlite3.Connection:
    """Read only: neither the database nor its journal is touched."""
    uri = source.path.resolve().as_uri()
    return sqlite3.connect(f"{uri}?mode=ro", uri=True)


__all__ = ["read", "recognise"]
