"""Errors of predictions on a fixed sample of the measurements, compared with a committed table.

    python -m calibration.accuracy DATA            # compare; exit code 1 where a median got worse
    python -m calibration.accuracy DATA --write    # write calibration/accuracy.json

DATA is the folder of the published measurements. Of every op on every device `SAMPLE` problems of a
file are predicted, chosen by the digest of what was measured and so always the same. A median worse
than the table's by more than `TOLERANCE` of itself is a failure, and so are a share of choices
named right (the algorithm of a convolution) that is lower by more than that, and another number of
predictions: all change the table only through `--write`. `python -m calibration.validate` scores
all problems.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from calibration import datasets
from wavecast.benchmarking.accuracy import importers, predicting, scores
from wavecast.benchmarking.accuracy.cases import MeasuredFigure
from wavecast.benchmarking.accuracy.validate import MeasuredProblem, load
from wavecast.errors import InputError
from wavecast.perfmodel.prediction import Prediction

TABLE: Final = Path(__file__).with_name("accuracy.json")
SAMPLE: Final = 300
"""Problems of one op on one device, of one file."""
TOLERANCE: Final = 0.05
"""Share of itself by which a median error may exceed the table's, or a share of choices named right
may be below it."""
ROUNDING: Final = 1e-5
"""Absolute difference of medians that the table does not resolve."""


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """Errors of `n` predictions, or of `n` figures of the tables in `unit`, on one device.

    `median` and `p90` are quantiles of |predicted / measured - 1|, `bias` is the median of
    log(predicted / measured); NaN is never written: n is at least 1. `named` is the share of
    problems with a known measured best (`Case.chosen`) whose prediction names it, None without any.
    """

    op: str
    device: str
    unit: str
    n: int
    median: float
    p90: float
    bias: float
    named: float | None = None


@dataclass(frozen=True, slots=True)
class AccuracyFile:
    """The rows of one file, and the digest of its content (sha256)."""

    digest: str
    rows: tuple[AccuracyRow, ...]


def errors(path: Path) -> AccuracyFile:
    """The errors on the sample of one file. Raises InputError for a file that no importer reads."""
    loaded = load(path, (*datasets.importers(), *importers.all_importers()))
    groups: dict[tuple[str, str], list[MeasuredProblem]] = defaultdict(list)
    for problem in loaded.problems:
        groups[problem.op.op_class, problem.case.device].append(problem)
    rows = list(_figures(loaded.figures))
    for (op, device), problems in sorted(groups.items()):
        rows += _row(op, device, sorted(problems, key=_digest)[:SAMPLE])
    return AccuracyFile(_sha256(path), tuple(rows))


def _row(op: str, device: str, problems: Sequence[MeasuredProblem]) -> Iterator[AccuracyRow]:
    answers = predicting.predict([(one.op, one.case.device) for one in problems], jobs=1)
    found = [
        (problem, answer.prediction)
        for problem, answer in zip(problems, answers, strict=True)
        if answer.prediction is not None
    ]
    if found:
        pairs = [(prediction.seconds, problem.measured) for problem, prediction in found]
        yield replace(_scored(op, device, "s", pairs), named=_named(found))


def _named(found: Iterable[tuple[MeasuredProblem, Prediction]]) -> float | None:
    right = [
        all(str(prediction.assumed.get(name)) == best for name, best in problem.case.chosen.items())
        for problem, prediction in found
        if problem.case.chosen
    ]
    return round(sum(right) / len(right), 5) if right else None


def _figures(figures: Iterable[MeasuredFigure]) -> Iterator[AccuracyRow]:
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in figures:
        if one.expected is not None and one.expected > 0 and one.measured > 0:
            groups[one.kind, one.device, one.unit].append((one.expected, one.measured))
    for (kind, device, unit), pairs in sorted(groups.items()):
        yield _scored(kind, device, unit, pairs)


def _scored(op: str, device: str, unit: str, pairs: Sequence[tuple[float, float]]) -> AccuracyRow:
    found = scores.error(*zip(*pairs, strict=True))
    rounded = (round(value, 5) for value in (found.median, found.p90, found.bias))
    return AccuracyRow(op, device, unit, found.n, *rounded)


def _digest(problem: MeasuredProblem) -> bytes:
    """Of what was measured, not of the op: a renamed field of an op keeps the sample."""
    case = problem.case
    text = f"{case.device} {problem.measured!r} {problem.repeats} {case.source} {case.problem}"
    return hashlib.sha256(text.encode()).digest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differences(before: AccuracyFile, now: AccuracyFile) -> list[str]:
    """What is worse than before, one line each; empty where nothing is.

    Other content of the file is one line: its errors cannot be compared.
    """
    if before.digest != now.digest:
        return ["the file is not the one the table was written for"]
    known = {(row.op, row.device, row.unit): row for row in before.rows}
    found = {(row.op, row.device, row.unit): row for row in now.rows}
    lines = []
    for key in sorted({*known, *found}):
        old, new = known.get(key), found.get(key)
        name = " ".join(part for part in key if part != "s")
        if old is None or new is None or old.n != new.n:
            counts = [0 if row is None else row.n for row in (old, new)]
            lines.append(f"{name}: {counts[1]} predictions, {counts[0]} in the table")
            continue
        if new.median > old.median * (1 + TOLERANCE) + ROUNDING:
            lines.append(f"{name}: median error {new.median:.2%}, {old.median:.2%} in the table")
        named = new.named or 0.0
        if old.named is not None and named < old.named * (1 - TOLERANCE) - ROUNDING:
            lines.append(f"{name}: {named:.1%} of choices named, {old.named:.1%} in the table")
    return lines


def read(path: Path = TABLE) -> dict[str, AccuracyFile]:
    """The committed table by file name."""
    files = json.loads(path.read_text(encoding="utf-8"))["files"]
    return {
        name: AccuracyFile(file["sha256"], tuple(AccuracyRow(*row) for row in file["rows"]))
        for name, file in files.items()
    }


def _cells(row: AccuracyRow) -> list[object]:
    """The columns of a row; `named` only where there is one."""
    cells = list(asdict(row).values())
    return cells if row.named is not None else cells[:-1]


def document(files: Mapping[str, AccuracyFile]) -> str:
    """The table as JSON, one row a line."""
    parts = []
    for name, file in sorted(files.items()):
        rows = ",\n".join(f"    {json.dumps(_cells(row))}" for row in file.rows)
        parts.append(f' {json.dumps(name)}: {{"sha256": "{file.digest}",\n   "rows": [\n{rows}]}}')
    columns = json.dumps(list(AccuracyRow.__dataclass_fields__))
    about = json.dumps("Written by `python -m calibration.accuracy DATA --write`: do not edit.")
    body = ",\n".join(parts)
    head = f'"about": {about},\n"sample": {SAMPLE},\n"columns": {columns}'
    return f'{{{head},\n"files": {{\n{body}}}}}\n'


def main() -> int:
    """Returns the exit code: 0 fine, 1 worse than the table, 2 no measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    given = parser.parse_args()
    paths = sorted(given.data.glob("*.parquet"))
    if not paths:
        print(f"{given.data} holds no measurements", file=sys.stderr)
        return 2
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, context) as pool:
        results = dict(zip(paths, pool.map(_readable, paths), strict=True))
    found = {path.name: file for path, file in results.items() if isinstance(file, AccuracyFile)}
    for file in results.values():
        if isinstance(file, str):
            print(f"not read: {file}")
    if given.write:
        TABLE.write_text(document(found), encoding="utf-8")
        return 0
    return _compared(found)


def _readable(path: Path) -> AccuracyFile | str:
    """The errors of a file, or why no importer reads it."""
    try:
        return errors(path)
    except InputError as error:
        return error.message


def _compared(found: Mapping[str, AccuracyFile]) -> int:
    worse = 0
    table = read()
    for name, before in table.items():
        if name not in found:
            print(f"{name}: absent")
            continue
        for line in differences(before, found[name]):
            print(f"{name}: {line}")
            worse += 1
    for name in sorted(set(found) - set(table)):
        print(f"{name}: not in the table, add it with --write")
        worse += 1
    rows = sum(len(file.rows) for file in found.values())
    print(f"{rows} medians of {len(found)} files, {worse} worse than {TABLE.name}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
