"""Imported runs in a store, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wavecast.benchmarking.environment import now
from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.benchmarking.store.base import Store
from wavecast.errors import StoreError


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that was imported: how many of its records are new, and how many the store had."""

    run: BenchRun
    new: int
    known: int


def keep(
    store: Store, runs: Sequence[tuple[BenchRun, Sequence[BenchRecord]]], *, complete: bool
) -> list[Kept]:
    """Add runs. One whose id the store has is added to where its records are the first of these (an
    import that was interrupted). Unless they say when, runs are finished now where they `complete`.

    Raises StoreError for a run the store has with other records; those before it are kept.
    """
    by_id = {run.id: run for run in store.runs()}
    outcomes = []
    for run, records in runs:
        before = by_id.get(run.id)
        have = list(store.records(run.id)) if before is not None else []
        if have != list(records[: len(have)]):
            raise StoreError(f"run {run.id} is in the store with other records")
        if before is None:
            store.begin(replace(run, finished=""))
        for record in records[len(have) :]:
            store.add(run.id, record)
        finished = run.finished or (now() if complete else "")
        if finished and not (before is not None and before.finished):
            store.finish(run.id, finished)
        outcomes.append(Kept(run, len(records) - len(have), len(have)))
    return outcomes


__all__ = ["Kept", "keep"]
