"""Errors of predictions on what was left out of the calibration.

    python -m calibration.left_out DATA [--sources CHECKOUT] [--only gemm,moe] [--jobs 2]

An experiment leaves out one chip, one compiler target, one library, one source (a repository), what
was published later than the rest, or a third of the models (files, layers, programs) of a family,
calibrates without them (`refit`), and predicts them. The committed table
`calibration/left_out.json` has their errors, and quantiles of log(measured / predicted) by distance
class. The intervals of predictions (`calibration.residuals`) and docs/accuracy.md derive from it.
`--only` replaces the families that it names.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol
from zlib import crc32

import numpy as np

from calibration import problems, refit
from calibration.cells import TABLE, UNCALIBRATED, Cell, LeftOutTable, Slice, read
from calibration.problems import PublishedProblem
from wavecast.benchmarking.accuracy import baselines
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.distance import Measured, MeasuredRange, PredictionSubject, features


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibration command: the `files` whose problems it should predict, the `arguments` of a
    quick fit, whether its coefficients are fitted again (`refitted`), whether it forgets those of
    libraries without measurements by itself (`forgets`), and the command `then` that fits what is
    left to fit, and does so without measurements too."""

    files: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    refitted: bool = True
    forgets: bool = False
    then: str = ""


FAMILIES: Final[Mapping[str, Calibration]] = {
    "gemm": Calibration(("gemm_tuned", "gemm_published", "gemm_tensile"), then="tensile"),
    "moe": Calibration(("moe_tuned", "moe_counters")),
    "attention": Calibration(("attention_published",), forgets=True),
    "elementwise": Calibration(("elementwise_norm",), ("--rounds", "1")),
    "convolution": Calibration(("conv_miopen",), ("--rounds", "1", "--sample", "60")),
    "collectives": Calibration(("collectives",)),
    "kernel": Calibration(("hip_kernels_mi300a",), refitted=False),
}
"""By name. The calibration of kernels executes programs for minutes: programs are left out of the
residuals of each other, and its few coefficients, which are physical, stay."""
FOLDS: Final = 3
LEAST: Final = 5
"""Problems that a left-out group needs."""
LATER: Final = 0.25
"""Share of the problems that are left out as those that were published last, at least: whole
months."""
PREDICTED: Final = 300
"""Problems of an experiment that are predicted, about; of every model the same share."""
NEIGHBOURS: Final = 6_000
"""Problems among which the nearest of another model is looked for, about."""
ROWS: Final = 12_000
"""Rows of a file that a calibration reads, about."""
QUANTILES: Final = 21
"""Residuals that represent those of a cell, at most."""


class MeasuredProblem(Protocol):
    """What has a measured time: its subject and the id of its device."""

    @property
    def subject(self) -> PredictionSubject: ...

    @property
    def device(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is left out: `kind` is one of `problems.KINDS`; `group` its name, or that of a fold of
    models."""

    kind: str
    group: str
    left_out: tuple[PublishedProblem, ...]
    remaining: tuple[PublishedProblem, ...]


def experiments(known: Sequence[PublishedProblem]) -> Iterator[Experiment]:
    """All experiments of a family."""
    for kind in ("chip", "target", "library", "source"):
        for group in _groups(kind, known):
            yield from _experiment(kind, group, known, lambda p, k=kind: p.group(k))
    if month := later_than(known):
        yield from _experiment("later", month, known, lambda p: month if p.month >= month else "")
    folds = _folds(known)
    for fold in range(FOLDS):
        yield from _experiment("model", str(fold), known, lambda p: str(folds[p.model]))


def _groups(kind: str, known: Sequence[PublishedProblem]) -> list[str]:
    """The groups of a kind that are left out: no targets of one chip, which is left out as a chip;
    libraries only where some op names one."""
    if kind == "library" and not any(getattr(problem.op, "library", "") for problem in known):
        return []
    groups = {problem.group(kind) for problem in known} - {""}
    if kind == "target":
        chips = {(problem.group(kind), problem.device) for problem in known}
        groups = {name for name in groups if sum(target == name for target, _ in chips) > 1}
    return sorted(groups)


def later_than(known: Sequence[PublishedProblem]) -> str:
    """The month (2026-05) from which on at least `LATER` of the problems were published, "" where
    all have one month or some have none."""
    months = sorted(problem.month for problem in known)
    if not months or not months[0] or months[0] == months[-1]:
        return ""
    month = months[int(len(months) * (1 - LATER))]
    return month if month > months[0] else next(one for one in months if one > month)


def _experiment(
    kind: str, group: str, known: Sequence[PublishedProblem], name: Any
) -> Iterator[Experiment]:
    own = tuple(problem for problem in known if name(problem) == group)
    others = tuple(problem for problem in known if name(problem) != group)
    if len(own) >= LEAST and others:
        yield Experiment(kind, group, own, others)


def _folds(known: Sequence[PublishedProblem]) -> dict[str, int]:
    """A fold of every model, such that folds have about as many problems."""
    counts: dict[str, int] = defaultdict(int)
    for problem in known:
        counts[problem.model] += 1
    sizes, found = [0] * FOLDS, {}
    for model in sorted(counts, key=lambda name: (-counts[name], name)):
        found[model] = sizes.index(min(sizes))
        sizes[found[model]] += counts[model]
    return found


def run(
    command: str, experiment: Experiment, data: Path, refitted: bool
) -> tuple[list[tuple[PublishedProblem, float]], str]:
    """Predicted seconds of left-out problems, and why there was no calibration without them, "" if
    there was one or none is needed."""
    chosen = _chosen(experiment.left_out)
    files = refit.files_of(command)
    gone_devices, devices = (
        {problem.device for problem in some} for some in (experiment.left_out, experiment.remaining)
    )
    gone_libraries, libraries = (
        {problem.subject.library.split(" ")[0] for problem in some}
        for some in (experiment.left_out, experiment.remaining)
    )
    lost = gone_libraries - libraries
    if refitted and FAMILIES[command].forgets:
        lost = set()
    gone = {problem.file for problem in experiment.left_out}
    left = {problem.file for problem in experiment.remaining}
    scopes = refit.learned_scopes(sorted(gone_devices - devices), sorted(devices))
    failed = ""
    with refit.sources() as copy:
        forget = partial(_forget, copy, scopes, lost, libraries)
        forget()
        if gone & set(files):
            if not left & set(files):
                return [], UNCALIBRATED
            if not refitted:
                failed = "coefficients kept"
            if refitted:
                frames = _frames(files, experiment, data)
                arguments = FAMILIES[command].arguments
                failed = refit.calibrate(copy, command, arguments, frames, data)
                forget()
        if refitted and (then := FAMILIES[command].then) and gone & set(refit.files_of(then)):
            frames = _frames(refit.files_of(then), experiment, data)
            failed = failed or refit.calibrate(copy, then, (), frames, data)
            forget()
        seconds = refit.predict(copy, [(problem.op, problem.device) for problem in chosen])
    return [(p, s) for p, s in zip(chosen, seconds, strict=True) if s is not None], failed


def _frames(files: Iterable[str], experiment: Experiment, data: Path) -> dict[str, Any]:
    """The tables of files without what an experiment leaves out."""
    frames = {}
    for name in files:
        own, out = (
            [problem for problem in some if problem.file == name]
            for some in ((*experiment.left_out, *experiment.remaining), experiment.left_out)
        )
        frame = problems.kept_rows(data / f"{name}.parquet", own, out)
        frames[name] = problems.thinned(frame, ROWS)
    return frames


def _forget(
    copy: Path, scopes: Mapping[str, Sequence[str]], gone: set[str], libraries: set[str]
) -> None:
    folder = copy / "wavecast" / "perfmodel" / "coefficients"
    values = {}
    for name in coefficients.families():
        rows = coefficients.read(name, (folder / f"{name}.toml").read_text(encoding="utf-8"))
        values[name] = refit.forgotten(rows, scopes, gone, libraries)
    refit.forget(copy, values)


def _chosen(left_out: Sequence[PublishedProblem]) -> list[PublishedProblem]:
    """About `PREDICTED` of the problems, always the same, at least `LEAST` of every model."""
    by_model: dict[str, list[PublishedProblem]] = defaultdict(list)
    for problem in left_out:
        by_model[problem.model].append(problem)
    share = min(1.0, PREDICTED / len(left_out))
    chosen = []
    for same in by_model.values():
        same.sort(key=lambda problem: crc32(f"{problem.op} {problem.seconds}".encode()))
        chosen += same[: max(1, round(share * len(same)))]
    return chosen


def measured(known: Iterable[MeasuredProblem]) -> list[MeasuredRange]:
    """What problems measure, by family, device, library and dtype."""
    groups: dict[tuple[str, ...], list[dict[str, float]]] = defaultdict(list)
    for problem in known:
        subject = problem.subject
        key = subject.family, problem.device, subject.library, subject.dtype
        groups[key].append(features(subject.sizes))
    found = []
    for (family, device, library, dtype), sizes in sorted(groups.items()):
        names = [name for name in sizes[0] if all(name in one for one in sizes)]
        spans = {name: [one[name] for one in sizes] for name in names}
        ranges = {name: (min(values), max(values)) for name, values in spans.items()}
        found.append(MeasuredRange(family, device, library, dtype, len(sizes), ranges))
    return found


def cells(
    command: str,
    experiment: Experiment,
    answers: Sequence[tuple[PublishedProblem, float]],
    later: str = "",
) -> Iterator[Cell]:
    """The answers of an experiment by what intervals tell apart. `later` is the month from which on
    problems are those published last, "" without any."""
    known = Measured(measured(experiment.remaining))
    groups: dict[tuple[Any, ...], list[tuple[PublishedProblem, float]]] = defaultdict(list)
    for problem, seconds in answers:
        distance = known.distance(problem.subject, problem.device).distance_class
        unit = problem.model if experiment.kind == "model" else experiment.group
        groups[
            unit, problem.subject.family, problem.device, problem.subject.library,
            problem.source, distance.value, bool(later) and problem.month >= later,
        ].append((problem, seconds))  # fmt: skip
    for (unit, family, device, library, source, distance, last), same in sorted(groups.items()):
        logs = np.log([problem.seconds / seconds for problem, seconds in same])
        rooflines = [
            abs(found / problem.seconds - 1)
            for problem, _ in same
            if (found := problems.roofline(problem)) is not None
        ]
        yield Cell(
            command, experiment.kind, unit, family, device, library, source, distance, last,
            len(same),
            float(np.median(rooflines)) if rooflines else None,
            tuple(round(float(value), 4) for value in sketch(logs)),
        )  # fmt: skip


def sketch(logs: np.ndarray) -> np.ndarray:
    """At most `QUANTILES` residuals that represent `logs`: their quantiles."""
    if len(logs) <= QUANTILES:
        return np.sort(logs)
    return np.quantile(logs, (np.arange(QUANTILES) + 0.5) / QUANTILES)


def slices(
    known: Sequence[PublishedProblem], answers: Sequence[tuple[PublishedProblem, float]]
) -> Iterator[Slice]:
    """The errors of left-out models by shape, dtype and year; next to them those of the nearest
    problem of another model."""
    asked = {(problem.op, problem.device) for problem, _ in answers}
    step = max(1, len(known) // NEIGHBOURS)
    others = [p for n, p in enumerate(known) if n % step == 0 or (p.op, p.device) in asked]
    nearest = _nearest(others)
    for by in ("model", "shape", "dtype", "year"):
        groups: dict[tuple[str, str], list[tuple[PublishedProblem, float]]] = defaultdict(list)
        for problem, seconds in answers:
            value = problem.subject.dtype if by == "dtype" else getattr(problem, by)
            if value:
                groups[problem.subject.family, value].append((problem, seconds))
        for (family, value), same in sorted(groups.items()):
            if len(same) < LEAST:
                continue
            errors = [abs(seconds / problem.seconds - 1) for problem, seconds in same]
            logs = [math.log(seconds / problem.seconds) for problem, seconds in same]
            near = [
                abs(nearest[problem.op, problem.device] / problem.seconds - 1)
                for problem, _ in same
                if nearest.get((problem.op, problem.device), math.nan) > 0
            ]
            yield Slice(
                family, by, value, len(same), _round(np.median(errors)),
                _round(np.quantile(errors, 0.9)), _round(np.median(logs)),
                _round(np.median(near)) if near else None,
            )  # fmt: skip


def _nearest(known: Sequence[PublishedProblem]) -> dict[Any, float]:
    found = baselines.neighbours(
        [problem.op for problem in known],
        [problem.device for problem in known],
        [problem.model for problem in known],
        [problem.seconds for problem in known],
    )
    return {(p.op, p.device): seconds for p, seconds in zip(known, found, strict=True)}


def _round(value: Any) -> float:
    return round(float(value), 4)


def family_table(
    command: str, data: Path, sources: Path | None, jobs: int, refitted: bool
) -> LeftOutTable:
    """All experiments of a family."""
    loaded: list[PublishedProblem] = []
    for name in FAMILIES[command].files:
        loaded += problems.load(data / f"{name}.parquet", sources)
    plausible = [problem for problem in loaded if not problems.implausible(problem)]
    known = problems.without_host(plausible)
    found: list[Cell] = []
    of_models: list[tuple[PublishedProblem, float]] = []
    notes: dict[str, str] = {}
    if len(plausible) < len(loaded):
        seconds, times = problems.IMPLAUSIBLE
        what = f"over {seconds * 1e3:g} ms and {times:g} times the roofline"
        notes[f"{command}: {len(loaded) - len(plausible)} problems"] = f"set aside, {what}"
    if len(known) < len(plausible):
        what = f"of files whose quick products take {problems.HOST * 1e6:g} µs: with the host"
        notes[f"{command}: {len(plausible) - len(known)} more problems"] = f"set aside, {what}"
    every = list(experiments(known))
    later = later_than(known)
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda one: _timed(command, one, data, refitted), every)
        for experiment, (answers, failed) in zip(every, results, strict=True):
            if failed:
                notes[f"{command} without {experiment.kind} {experiment.group}"] = failed
            found += cells(command, experiment, answers, later)
            if experiment.kind == "model":
                of_models += answers
    return LeftOutTable(
        {command: tuple(measured(known))},
        tuple(found),
        {command: tuple(slices(known, of_models))},
        notes,
    )


def _timed(
    command: str, experiment: Experiment, data: Path, refitted: bool
) -> tuple[list[tuple[PublishedProblem, float]], str]:
    started = time.perf_counter()
    answers, failed = run(command, experiment, data, refitted)
    errors = sorted(abs(seconds / problem.seconds - 1) for problem, seconds in answers)
    median = f"{errors[len(errors) // 2]:.1%}" if errors else "–"
    print(
        f"{command} without {experiment.kind} {experiment.group}: {len(answers)} problems, "
        f"median error {median}, {time.perf_counter() - started:.0f} s"
        + (f"; NOT REFITTED: {failed}" if failed else ""),
        file=sys.stderr,
        flush=True,
    )
    return answers, failed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sources", type=Path, help="a checkout of the HIP suite")
    parser.add_argument("--only", default="", help="families, with commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="keep the coefficients, do not refit")
    given = parser.parse_args()
    data = given.data.resolve()
    names = given.only.split(",") if given.only else list(FAMILIES)
    for name in names:
        if name == "kernel" and given.sources is None:
            print("kernel: not without --sources", file=sys.stderr)
            continue
        refitted = FAMILIES[name].refitted and not given.keep
        found = family_table(name, data, given.sources, given.jobs, refitted)
        table = read() if TABLE.is_file() else LeftOutTable({}, (), {}, {})
        table = table.without(name).joined(found)
        TABLE.write_text(table.document(), encoding="utf-8")


if __name__ == "__main__":
    main()
