"""The published measurements as problems, with what a fit can leave out.

A problem is an op on a device with the median of its repeats. `rows` are the numbers of its rows in
its file, so that a copy of the file without them can be written.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from calibration import datasets
from wavecast import arch
from wavecast.benchmarking.accuracy import baselines, importers, reading
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.conv_miopen import PROBLEM
from wavecast.errors import WavecastError
from wavecast.perfmodel.distance import PredictionSubject
from wavecast.perfmodel.ops.base import Op

IMPLAUSIBLE = (1e-3, 100.0)
"""Seconds, and times of the sustained roofline, above which a time is not that of its problem: some
tables of a collection have another unit."""
QUICK = 2e-6
"""Seconds of roofline of a product that only its launch keeps from ending at once."""
HOST = 25e-6
"""Seconds of the quick ones of `QUICK` products of a file from which on its times contain the
host's: an empty kernel takes less than 10 µs on every chip."""
KINDS = ("chip", "target", "library", "source", "later", "model")
"""What an experiment leaves out: one chip, library, source or model, all chips of a compiler
target, or everything that was published later than the rest."""
LAUNCHED = ("kernel", "launch, client", "launch, client, warm")
"""Timings without the time of the host."""
_ROWS_OF_DECODING = 64
"""Rows of a product up to which it is one of decoding."""


@dataclass(frozen=True, slots=True)
class PublishedProblem:
    """One op on a device: `seconds` is the median of its repeats. `source` is the repository,
    `model` the file or the layer it is from, `shape` the family of its shape, `month` (2026-05, or
    a year) that of the first of its files' last changes, "" where it is not known."""

    file: str
    op: Op
    device: str
    subject: PredictionSubject
    seconds: float
    source: str
    model: str
    shape: str
    month: str
    rows: tuple[int, ...] = field(repr=False)

    @property
    def year(self) -> str:
        """The year of `month`."""
        return self.month[:4]

    def group(self, kind: str) -> str:
        """The group of one of `KINDS` that the problem belongs to."""
        return {
            "chip": self.device,
            "target": _target(self.device),
            "library": self.subject.library,
            "source": self.source,
            "model": self.model,
        }[kind]


def load(path: Path, sources: Path | None = None) -> list[PublishedProblem]:
    """The problems of a file. Raises InputError for a file that no importer reads."""
    table, importer = reading.read(path, (*datasets.importers(sources), *importers.all_importers()))
    frame = table.frame
    items = list(importer.cases(frame))
    numbers = range(len(frame)) if len(items) == len(frame) else None
    rows: dict[tuple[Op, str], list[int]] = {}
    cases: dict[tuple[Op, str], list[Case]] = {}
    for index, case in enumerate(items):
        if isinstance(case, Case) and case.op is not None and case.device and case.seconds > 0:
            cases.setdefault((case.op, case.device), []).append(case)
            if numbers is not None:
                rows.setdefault((case.op, case.device), []).append(index)
    return list(_problems(path.stem, frame, cases, rows))


def _problems(
    name: str,
    frame: pd.DataFrame,
    cases: dict[tuple[Op, str], list[Case]],
    rows: dict[tuple[Op, str], list[int]],
) -> Iterator[PublishedProblem]:
    repositories, months = _column(frame, "source_repo"), _months(frame)
    for key, same in cases.items():
        op, device = key
        try:
            subject = op.subject
        except WavecastError:
            continue
        numbers = tuple(rows.get(key, ()))
        first = numbers[0] if numbers else 0
        yield PublishedProblem(
            file=name,
            op=op,
            device=device,
            subject=subject,
            seconds=median(case.seconds for case in same),
            source=repositories[first] or name,
            model=_model(op, same[0]),
            shape=_shape(op, same[0]),
            month=min(months[number] for number in numbers or (0,)),
            rows=numbers,
        )


def _column(frame: pd.DataFrame, name: str) -> list[str]:
    if name not in frame:
        return [""] * len(frame)
    # the branches of a repository are one source
    return [str(cell).partition(" (")[0] for cell in frame[name]]


def _months(frame: pd.DataFrame) -> list[str]:
    if "source_date" not in frame:
        return [""] * len(frame)
    return [str(cell)[:7] for cell in frame["source_date"]]


def _model(op: Op, case: Case) -> str:
    """The model, layer or program a problem is from."""
    if op.kind == "conv":
        return layer(getattr(op, "c", 0), getattr(op, "k", 0), getattr(op, "filter", ()))
    return case.group


def layer(channels: int, outputs: int, taps: Sequence[int]) -> str:
    """A convolution without its batch and its image."""
    few, many = sorted((channels, outputs))  # backward passes exchange them
    return f"{few} and {many} channels, {'x'.join(map(str, taps[-2:]))}"


def _shape(op: Op, case: Case) -> str:
    """The family of a problem's shape."""
    for label in ("direction", "part", "function", "program"):
        if case.labels.get(label):
            return str(case.labels[label])
    rows = getattr(op, "m", 0)
    if not rows:
        return ""
    return f"{'at most' if rows <= _ROWS_OF_DECODING else 'more than'} {_ROWS_OF_DECODING} rows"


def roofline(problem: PublishedProblem) -> float | None:
    """Seconds of the sustained roofline, None where a rate is not known."""
    try:
        return baselines.roofline_seconds(problem.op, arch.load(problem.device))
    except (WavecastError, ArithmeticError):
        return None


def implausible(problem: PublishedProblem) -> bool:
    """Whether a measured time cannot be that of the problem."""
    seconds, times = IMPLAUSIBLE
    least = roofline(problem) if problem.seconds > seconds else None
    return least is not None and problem.seconds > times * least


def without_host(known: Sequence[PublishedProblem]) -> list[PublishedProblem]:
    """The problems without those of files whose times contain the host's: all but a tenth of their
    `QUICK` products take `HOST` or longer. The model of a timing other than a kernel's has the
    host."""
    quick: dict[tuple[str, str, str, str], list[float]] = {}
    for problem in known:
        if _launched(problem) and (roofline(problem) or math.inf) < QUICK:
            quick.setdefault(_file(problem), []).append(problem.seconds)
    hosts = {key for key, times in quick.items() if sorted(times)[len(times) // 10] >= HOST}
    return [problem for problem in known if not _launched(problem) or _file(problem) not in hosts]


def _launched(problem: PublishedProblem) -> bool:
    return problem.op.kind == "gemm" and getattr(problem.op, "timing", "") in LAUNCHED


def _file(problem: PublishedProblem) -> tuple[str, str, str, str]:
    return problem.file, problem.device, problem.source, problem.model


def kept_rows(
    path: Path, problems: Sequence[PublishedProblem], left_out: Sequence[PublishedProblem]
) -> pd.DataFrame:
    """The rows of a file without those of the problems left out."""
    frame: Any = pd.read_parquet(path)
    if all(problem.rows for problem in problems):
        gone = {row for problem in left_out for row in problem.rows}
        return frame[[number not in gone for number in range(len(frame))]]
    devices = Counter(problem.device for problem in problems)
    chips = devices - Counter(problem.device for problem in left_out)
    if len(chips) < len(devices):
        targets = sorted({_target(device) for device in chips})
        return frame[frame["arch"].isin(targets)]
    layers = {problem.model for problem in left_out}
    taps = list(zip(frame["R"], frame["S"], strict=True))
    names = [
        layer(int(c), int(k), tuple(map(int, rs)))
        for c, k, rs in zip(frame["C"], frame["K"], taps, strict=True)
    ]
    return frame[[name not in layers for name in names]]


def _target(device: str) -> str:
    return arch.load(device).target


def thinned(frame: Any, most: int) -> pd.DataFrame:
    """About `most` rows of a table, always the same: enough for a fit, quickly read. The rows of
    one problem of a table of alternatives stay together."""
    if len(frame) <= most:
        return frame
    names = list(PROBLEM)
    alternatives = set(names) <= {str(column) for column in frame.columns}
    keys: Any = (
        frame[names].astype(str).agg(" ".join, axis=1) if alternatives else frame.index.map(str)
    )
    share = most / len(frame) * 2**32
    return frame[[zlib.crc32(key.encode()) < share for key in keys]]


__all__ = [
    "HOST",
    "IMPLAUSIBLE",
    "KINDS",
    "PublishedProblem",
    "implausible",
    "kept_rows",
    "layer",
    "load",
    "roofline",
    "thinned",
    "without_host",
]
