"""Runs in the order of their commits."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from wavecast.benchmarking.records import BenchRun

_SECONDS: Final = 60


def sort_by_commit(runs: Sequence[BenchRun], folder: Path) -> tuple[list[BenchRun], int]:
    """(runs in the order in which the checkout around `folder` has their commits, parents first and
    clean before changed; how many of them have commits it does not have). Those are ordered by
    time: after all that were measured before them."""
    positions = _positions(sorted({run.commit for run in runs if run.commit}), folder)
    by_time = sorted(runs, key=lambda run: run.started)
    in_history = [run for run in by_time if run.commit in positions]
    in_history.sort(key=lambda run: (positions[run.commit], run.dirty, run.started))
    run_order: list[BenchRun] = list(in_history)
    strangers = [run for run in by_time if run.commit not in positions]
    for run in strangers:
        earlier = [at for at, other in enumerate(run_order) if other.started <= run.started]
        run_order.insert(earlier[-1] + 1 if earlier else 0, run)
    return run_order, len(strangers) if positions else 0


@cache
def commits_between(before: str, after: str, folder: Path) -> int | None:
    """How many commits `after` has that `before` has not, None where the history does not tell."""
    if not before or not after:
        return None
    count = _git(folder, "rev-list", "--count", f"{before}..{after}", "--")
    return int(count) if count.strip().isdigit() else None


def _positions(commits: Sequence[str], folder: Path) -> dict[str, int]:
    """Commit -> index in the history, for those that the checkout has."""
    if not commits:
        return {}
    request = "".join(f"{commit}^{{commit}}\n" for commit in commits)
    answers = _git(folder, "cat-file", "--batch-check=%(objectname)", stdin=request).splitlines()
    full = {
        commit: answer
        for commit, answer in zip(commits, answers, strict=False)
        if answer and " " not in answer
    }
    if not full:
        return {}
    revisions = _git(
        folder, "rev-list", "--topo-order", "--reverse", "--stdin", stdin="\n".join(full.values())
    )
    position = {commit: index for index, commit in enumerate(revisions.splitlines())}
    return {commit: position[answer] for commit, answer in full.items() if answer in position}


def _git(folder: Path, *arguments: str, stdin: str = "") -> str:
    """What git says, "" where there is no checkout or no git."""
    try:
        process = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout if process.returncode == 0 else ""


__all__ = ["commits_between", "sort_by_commit"]
