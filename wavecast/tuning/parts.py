"""Tuning of a script by a Ray cluster: every task runs the script on its node for a part of the
configurations.

The tuning on this machine, which follows, has these results from its journal: it searches only what
lost or failed parts left, and simulates the best of all. Its answer is therefore that of a tuning
without a cluster.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Final

from wavecast.errors import WavecastError
from wavecast.pipeline.explain.selection import Selection, select
from wavecast.tuning import records
from wavecast.tuning.ray import connect
from wavecast.tuning.records import Journal, Result, TuningProblem
from wavecast.tuning.script import TuneScript, capture
from wavecast.tuning.settings import TuneSettings

_PARTS_PER_SLOT: Final = 2
"""Parts differ in time: more of them than can run at once keep all nodes busy."""
_POLL_SECONDS: Final = 0.2

KnownResult = tuple[TuningProblem, Result]


def search_parts(
    address: str,
    script: TuneScript,
    selection: Selection,
    settings: TuneSettings,
    progress: Callable[[str], None],
) -> tuple[TuneSettings, tuple[str, ...]]:
    """Search the configurations in parts on the cluster at `address`; returns the settings of the
    tuning that must follow here, and notes. A result is in the journal as soon as it is known.

    Raises the error of the first part where none has a result, and as `wavecast.tuning.ray`.
    """
    path = Path(settings.journal)
    journal = Journal(path)
    results = list(records.read(path))
    before = len(results)
    here = replace(script, path=script.path.absolute())
    names = tuple(device.id for device in selection.devices)
    limited = replace(settings, budget=settings.budget.sequential(_PARTS_PER_SLOT + 1))
    errors: list[WavecastError] = []
    try:
        with connect(address) as cluster:
            jobs = max(1, min(settings.jobs, *cluster.processors))
            count = _PARTS_PER_SLOT * sum(cores // jobs for cores in cluster.processors)
            part = _part(replace(limited, jobs=jobs, shards=count))
            for number, outcome in cluster.results(
                search_part,
                range(count),
                lambda number: (here, names, replace(part, shard=number), results),
                processors=jobs,
            ):
                if isinstance(outcome, WavecastError):
                    errors.append(outcome)
                    progress(f"part {number + 1} of {count} failed: {outcome}")
                    continue
                journal.add(*outcome)
                results.append(outcome)
                progress(f"{len(results)} results")
    finally:
        journal.close()
    if errors and len(results) == before:
        raise errors[0]
    failed = [
        f"a part failed on the Ray cluster and was searched here: {error}" for error in errors
    ]
    return limited, tuple(dict.fromkeys([*cluster.losses, *failed]))


def _part(settings: TuneSettings) -> TuneSettings:
    """Samples correct the scores of a wide search. In another, only the best of all are sampled,
    at the end."""
    wide = settings.space == "wide"
    return replace(settings, simulate=-(-settings.simulate // settings.shards) if wide else 0)


def search_part(
    script: TuneScript,
    names: tuple[str, ...],
    settings: TuneSettings,
    results: Sequence[KnownResult],
) -> Iterator[KnownResult | WavecastError]:
    """The new results of one part as they are found, then the error that ended it, if any. Runs on
    a node."""
    with (
        tempfile.TemporaryDirectory(prefix="wavecast-") as folder,
        ThreadPoolExecutor(1) as thread,
    ):
        path = Path(folder) / "journal"
        journal = Journal(path)
        for problem, result in results:
            journal.add(problem, result)
        journal.close()
        selection = select(names, settings.device_files)
        here = replace(settings, journal=str(path))
        running = thread.submit(capture, script, selection, here)
        sent, size = len(results), path.stat().st_size
        is_done = False
        while not is_done:
            is_done = bool(wait([running], _POLL_SECONDS).done)
            if path.stat().st_size != size:
                size = path.stat().st_size
                new = list(records.read(path))[sent:]
                sent += len(new)
                yield from new
        error = running.exception()
        if isinstance(error, WavecastError):
            yield error
        elif error is not None:
            raise error


__all__ = ["search_parts"]
