"""Profiles of other tools as runs: one record per kernel, size of launch and GPU."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import numpy as np

from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.benchmarking.store.importers.timings import (
    About,
    ImportedTiming,
    group_timings,
    import_timings,
    kernel,
    launch,
)
from wavecast.errors import InputError
from wavecast.profiles.profile import Profile, ProfiledDevice
from wavecast.profiles.reading import clean_profile

_HEAD: Final = 1 << 16


def matches_reader(source: ImportedFile, reader: ModuleType) -> bool:
    """Whether `reader` of `wavecast.profiles.readers` reads the file."""
    return reader.recognise(source.content[:_HEAD])


def runs(
    source: ImportedFile,
    name: str,
    reader: ModuleType,
    labels: ImportLabels,
    *,
    in_work_items: bool = False,
) -> Imported:
    """Launches in the order they started. `in_work_items`: the tool counts grids in work-items,
    and so do the subjects; a workgroup that is not full counts as a full one.

    Raises InputError for a file that cannot be read or has no kernel times.
    """
    try:
        if hasattr(reader, "MAGIC"):
            profile = reader.read(source.path)
        else:
            profile = reader.read(io.BytesIO(source.content))
    except InputError as error:
        raise InputError(f"{source.path}: {error.message}", hint=error.hint) from error
    clean_profile(profile)
    times = group_timings(_times(profile, in_work_items))
    return import_timings(source, name, times, labels, About(notes=tuple(profile.notes)))


def _times(profile: Profile, in_work_items: bool) -> Iterator[tuple[ImportedTiming, float]]:
    launches = profile.launches
    for number in np.argsort(np.asarray(launches.start), kind="stable").tolist():
        if not launches.duration[number]:
            continue  # the reader counts launches without times in a note
        info = profile.kernels[launches.info[number]]
        grid = info.blocks
        if in_work_items:
            x, y, z = (b * t for b, t in zip(info.blocks, info.threads, strict=True))
            grid = (x, y, z)
        axes = launch(grid, info.threads) if any(info.threads) else {}
        device = profile.devices.get(launches.device[number], ProfiledDevice())
        timing = ImportedTiming(kernel(info.name, axes), board=device.name, target=device.target)
        yield timing, launches.duration[number] * 1e-9


__all__ = ["matches_reader", "runs"]
