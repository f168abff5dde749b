"""Runs by what a user types: `last`, `last~2`, a label, a commit, the beginning of an id."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.benchmarking.store.base import Store
from wavecast.errors import UnknownName, UsageError

_LAST = re.compile(r"last(?:~(\d+))?")


def select_runs(runs: Sequence[BenchRun], text: str) -> tuple[BenchRun, ...]:
    """The runs `text` means: all with this label, else all of this commit (at least seven digits),
    else the one whose id begins so; `last` is the newest, `last~1` the one before; several,
    separated by commas, are joined.

    Raises UnknownName, UsageError for a text that several different runs could mean.
    """
    selection: dict[str, BenchRun] = {}
    for part in filter(None, (name.strip() for name in text.split(","))):
        for run in _match_runs(runs, part):
            selection[run.id] = run
    if not selection:
        raise UnknownName("run", text, _names(runs))
    return tuple(selection.values())


def _match_runs(runs: Sequence[BenchRun], text: str) -> tuple[BenchRun, ...]:
    last = _LAST.fullmatch(text)
    if last is not None:
        back = int(last[1] or 0)
        if back >= len(runs):
            raise UsageError(f"there are {len(runs)} runs, {text} is one before them")
        return (runs[len(runs) - 1 - back],)
    labelled = tuple(run for run in runs if run.label == text)
    if labelled:
        return labelled
    if len(text) >= 7:
        committed = tuple(run for run in runs if run.commit.startswith(text))
        if committed:
            return committed
    matches = tuple(run for run in runs if run.id.startswith(text))
    if len(matches) > 1:
        raise UsageError(
            f"{len(matches)} runs begin with {text!r}: {', '.join(r.id for r in matches)}"
        )
    if not matches:
        raise UnknownName("run", text, _names(runs))
    return matches


def _names(runs: Sequence[BenchRun]) -> list[str]:
    return ["last", *(run.label for run in runs if run.label), *(run.id for run in runs)]


def records_of(store: Store, runs: Sequence[BenchRun]) -> dict[str, list[BenchRecord]]:
    """The records of runs, by run."""
    return {run.id: list(store.records(run.id)) for run in runs}


__all__ = ["records_of", "select_runs"]
