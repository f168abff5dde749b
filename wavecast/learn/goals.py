"""Goals of a chapter, checked on the learner's file: right on the emulator, fast by prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavecast.arch.select import vendor
from wavecast.errors import WavecastError
from wavecast.learn.chapter import HIP_FILE, Chapter
from wavecast.report.kit import units
from wavecast.servers import verbs


@dataclass(frozen=True, slots=True)
class Attempt:
    """A learner's `file` of a chapter, with the documents of `explain` of its start (`before`) and
    of the file (`after`)."""

    chapter: Chapter
    file: Path
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reached:
    """A goal, whether it is reached, and the figures that decide. `checked` is false where nothing
    here can tell; such a goal does not hold the chapter up."""

    goal: str
    reached: bool
    detail: str
    checked: bool = True


def check(chapter: Chapter, file: Path) -> Iterator[Reached]:
    """Check all goals of a chapter on `file`, the cheapest to judge first.

    Raises a WavecastError where the file cannot be explained.
    """
    for arch in chapter.arch:
        yield _right(chapter, file, arch)
    before, after = explain_file(chapter, chapter.start), explain_file(chapter, file)
    attempt = Attempt(chapter, file, before, after)
    for name, goal in chapter.goals.items():
        yield from GOALS[name](goal, attempt)


def explain_file(chapter: Chapter, file: Path) -> Mapping[str, Any]:
    """The document of `explain` for `file`, launched as the chapter does."""
    options = ["--arch", ",".join(chapter.arch), "--format", "json"]
    if chapter.file == HIP_FILE:
        plan = str(chapter.folder / "launch.toml")
        return verbs.document(["explain", str(file), "--args", plan, *options], accepted=(0,))
    script = str(chapter.folder / "check.py")
    return verbs.document(["explain", script, *options, "--", str(file)], accepted=(0,))


def seconds(document: Mapping[str, Any]) -> dict[str, float]:
    """The predicted seconds of all launches, by target."""
    total: dict[str, float] = {}
    for entry in document["kernels"]:
        prediction, launch = entry["prediction"], entry["launch"]
        time = prediction["seconds"] * launch["count"] if prediction else float("nan")
        total[entry["arch"]] = total.get(entry["arch"], 0.0) + time
    return total


def _right(chapter: Chapter, file: Path, arch: str) -> Reached:
    """Whether the results are right on the emulator and its checks find nothing."""
    if (unchecked := unchecked_goal(arch)) is not None:
        return unchecked
    goal = f"right on {arch}"
    try:
        code, output, log = verbs.text(_executing(chapter, file, arch), accepted=range(256))
    except WavecastError as error:
        return Reached(goal, False, str(error))
    if code == 0:
        return Reached(goal, True, "")
    lines = [line for line in (*output.splitlines(), *log.splitlines()) if line.strip()]
    errors = [line for line in lines if line.startswith("error[")]
    return Reached(goal, False, (errors or lines[-1:] or [f"exit code {code}"])[0])


def unchecked_goal(arch: str) -> Reached | None:
    """The goal of right results on a target whose code nothing here executes; None on others."""
    if vendor(arch) == "amd":
        return None
    why = "not checked, the emulator executes AMD machine code"
    return Reached(f"right on {arch}", True, why, checked=False)


def _executing(chapter: Chapter, file: Path, arch: str, *options: str) -> list[str]:
    """The arguments that execute `file` with checks on small sizes."""
    common = ["--arch", arch, "--check", *options]
    if chapter.file == HIP_FILE:
        return ["run", str(file), "--args", str(chapter.folder / "small.toml"), *common]
    if chapter.gpus > 1:
        common += ["--gpus", str(chapter.gpus), "--once"]
    return ["run", str(chapter.folder / "check.py"), *common, "--", str(file), "--small"]


def busiest_link(chapter: Chapter, file: Path, arch: str) -> int:
    """The most bytes that kernels move from one GPU to another on small sizes."""
    options = ("--check-format", "json")
    document = verbs.document(_executing(chapter, file, arch, *options), accepted=(0, 1))
    return max((link["read"] + link["written"] for link in document["traffic"]), default=0)


def _faster(goal: float | Mapping[str, float], attempt: Attempt) -> Iterator[Reached]:
    """The speedup over the start, one for all targets or one for each."""
    before, after = map(seconds, (attempt.before, attempt.after))
    for arch, start in before.items():
        now = after.get(arch, float("nan"))
        least = goal[arch] if isinstance(goal, Mapping) else goal
        yield Reached(
            f"{least:g} times as fast on {arch}",
            now * least <= start,
            f"{units.seconds(start)} → {units.seconds(now)}, {start / now:.2f} times"
            if now == now
            else "no predicted time",
        )


def _no_spills(goal: bool, attempt: Attempt) -> Iterator[Reached]:
    del goal
    for arch, entries in _by_arch(attempt.after):
        spilled = sum(entry["registers"]["spilled"] for entry in entries)
        yield Reached(f"no spills on {arch}", spilled == 0, f"{spilled} registers")


def _waves(goal: int, attempt: Attempt) -> Iterator[Reached]:
    for arch, entries in _by_arch(attempt.after):
        least = min(entry["occupancy"]["waves_per_simd"] for entry in entries)
        yield Reached(f"{goal} waves/SIMD on {arch}", least >= goal, f"{least}")


def _matrix(goal: bool, attempt: Attempt) -> Iterator[Reached]:
    del goal
    for arch, entries in _by_arch(attempt.after):
        count = sum(sum(entry["matrix"]["kinds"].values()) for entry in entries)
        yield Reached(f"matrix instructions on {arch}", count > 0, f"{count}")


def _launches(goal: int, attempt: Attempt) -> Iterator[Reached]:
    for arch, entries in _by_arch(attempt.after):
        number = sum(entry["launch"]["count"] for entry in entries)
        yield Reached(f"at most {goal} launches on {arch}", number <= goal, f"{number}")


def _share(goal: float, attempt: Attempt) -> Iterator[Reached]:
    """The least time at sustained rates over the predicted one."""
    for arch, entries in _by_arch(attempt.after):
        floor = sum(
            (entry["roofline"]["sustained_seconds"] or 0.0) * entry["launch"]["count"]
            for entry in entries
        )
        share = floor / seconds(attempt.after)[arch]
        yield Reached(f"{goal:.0%} of the bound on {arch}", share >= goal, f"{share:.0%}")


def _without(goal: str, attempt: Attempt) -> Iterator[Reached]:
    for arch, entries in _by_arch(attempt.after):
        lines = [
            line
            for entry in entries
            for finding in entry["findings"]
            if finding["rule"] == goal
            for line in finding["lines"]
        ]
        locations = ", ".join(f"line {line}" for line in lines)
        yield Reached(f"no finding {goal} on {arch}", not lines, locations)


def _link_bytes(goal: float, attempt: Attempt) -> Iterator[Reached]:
    """The most bytes over a link, over those of the start."""
    chapter = attempt.chapter
    for arch in chapter.arch:
        start, now = (busiest_link(chapter, file, arch) for file in (chapter.start, attempt.file))
        yield Reached(
            f"{goal:.0%} of the bytes over the busiest link on {arch}",
            0 < now <= goal * start,
            f"{units.size(start)} → {units.size(now)}",
        )


def _by_arch(document: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for entry in document["kernels"]:
        groups.setdefault(entry["arch"], []).append(entry)
    return list(groups.items())


GOALS: Mapping[str, Callable[[Any, Attempt], Iterator[Reached]]] = {
    "faster": _faster,
    "no-spills": _no_spills,
    "waves": _waves,
    "matrix": _matrix,
    "launches": _launches,
    "share-of-bound": _share,
    "without-finding": _without,
    "link-bytes": _link_bytes,
}
"""What `[goals]` of a chapter may demand."""
