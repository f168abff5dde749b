"""A store of nightly runs: one kernel became slower with a new compiler and fast again later."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wavecast.benchmarking.records import (
    BenchRecord,
    BenchRun,
    BenchSubject,
    Conditions,
    Environment,
    Figure,
)
from wavecast.benchmarking.store.base import Store

COUNT = 24
SLOW = (8, 16)
"""From and to which run softmax is slow."""


def checkout(folder: Path, count: int = COUNT) -> list[str]:
    """Commits of a new checkout, the oldest first, all of the same second."""
    date = "2026-01-01T00:00:00+00:00"
    environment = {
        **os.environ,
        **{f"GIT_{who}_NAME": "x" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "x" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": date for who in ("AUTHOR", "COMMITTER")},
    }

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            check=True, capture_output=True, text=True, env=environment,
        ).stdout  # fmt: skip

    git("init", "-q")
    for number in range(count):
        git("commit", "-q", "--allow-empty", "-m", str(number))
    return git("rev-list", "--reverse", "HEAD").split()


def nightly(
    commits: Sequence[str], *, newest_first: bool = False
) -> list[tuple[BenchRun, list[BenchRecord]]]:
    """A run per commit; with `newest_first` they were measured in the opposite order."""
    random = np.random.default_rng(11)
    found = []
    for number, commit in enumerate(commits):
        minute = len(commits) - number if newest_first else number
        started = f"2026-02-01T00:{minute:02}:00+00:00"
        run = BenchRun(f"run{number:02}", started, label="nightly", commit=commit)
        found.append((run, [_record(name, number, commit, random) for name in ("copy", "softmax")]))
    return found


def fill(store: Store, runs: Sequence[tuple[BenchRun, Sequence[BenchRecord]]]) -> None:
    """Keep all of them."""
    for run, records in runs:
        store.begin(run)
        for record in records:
            store.add(run.id, record)


def _record(name: str, number: int, commit: str, random: np.random.Generator) -> BenchRecord:
    slow = name == "softmax" and SLOW[0] <= number < SLOW[1]
    middle = 3e-5 * (1.06 if slow else 1.0) * float(np.exp(0.005 * random.normal()))
    samples = tuple(float(s) for s in middle * np.exp(0.01 * random.normal(size=20)))
    figures = {
        "measured_seconds": Figure(float(np.median(samples)), "measured", samples=samples),
        "predicted_seconds": Figure(3e-5, "predicted", low=2e-5, high=4e-5),
        "spills": Figure(14 if slow else 0, "static"),
    }
    triton = "3.8.0" if number < SLOW[0] else "3.9.0"
    environment = Environment("mi300x", "gfx942", emulated=False, triton=triton, commit=commit)
    subject = BenchSubject("operator", name, {"rows": 8192})
    conditions = Conditions("cold", "graph", "random")
    return BenchRecord(subject, environment, conditions, figures, digest="slow" if slow else "fast")
