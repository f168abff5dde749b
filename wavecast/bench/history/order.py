"""Runs in the order of their commits."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from wavecast.bench.records import BenchRun

_SECONDS: Final = 60


def ordered(runs: Sequence[BenchRun], folder: Path) -> tuple[list[BenchRun], int]:
    """(runs in the order in which the checkout around `folder` has their commits, parents first and
    clean before changed; how many of them have commits it does not have). Those are ordered by
    time: after all that were measured before them."""
    positions = _positions(sorted({run.commit for run in runs if run.commit}), folder)
    by_time = sorted(runs, key=lambda run: run.started)
    known = [run for run in by_time if run.commit in positions]
    known.sort(key=lambda run: (positions[run.commit], run.dirty, run.started))
    found: list[BenchRun] = list(known)
    strangers = [run for run in by_time if run.commit not in positions]
    for run in strangers:
        earlier = [at for at, other in enumerate(found) if other.started <= run.started]
        found.insert(earlier[-1] + 1 if earlier else 0, run)
    return found, len(strangers) if positions else 0


@cache
def commits_between(before: str, after: str, folder: Path) -> int | None:
    """How many commits `after` has that `before` has not, None where the history does not tell."""
    if not before or not after:
        return None
    counted = _git(folder, "rev-list", "--count", f"{before}..{after}", "--")
    return int(counted) if counted.strip().isdigit() else None


def _positions(commits: Sequence[str], folder: Path) -> dict[str, int]:
    """Commit -> index in the history, for those that the checkout has."""
    if not commits:
        return {}
    asked = "".join(f"{commit}^{{commit}}\n" for commit in commits)
    answers = _git(folder, "cat-file", "--batch-check=%(objectname)", given=asked).splitlines()
    full = {
        commit: answer
        for commit, answer in zip(commits, answers, strict=False)
        if answer and " " not in answer
    }
    if not full:
        return {}
    listed = _git(
        folder, "rev-list", "--topo-order", "--reverse", "--stdin", given="\n".join(full.values())
    )
    position = {commit: index for index, commit in enumerate(listed.splitlines())}
    return {commit: position[answer] for commit, answer in full.items() if answer in position}


def _git(folder: Path, *arguments: str, given: str = "") -> str:
    """What git says, "" where there is no checkout or no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


__all__ = ["commits_between", "ordered"]
