"""A calibration without some of the measurements, and predictions with what it finds.

The calibration runs in a copy of the sources and of the data from which the left-out rows are
removed, so that no command can use them. Coefficients that only these rows tell of are forgotten:
those of a left-out chip get the value of chips nobody measured, or what facts say (`priors`), those
of a left-out library the middle of the other libraries'.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pandas as pd

import wavecast
from calibration import common
from calibration.priors import prior
from wavecast import arch
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.coefficients import Coefficient
from wavecast.perfmodel.ops.base import Op

ROOT = Path(wavecast.__file__).resolve().parents[1]
LEARNED = ("fitted", "measured")
"""Statuses of values that measurements of a chip gave."""


def files_of(command: str) -> tuple[str, ...]:
    """The files of measurements that `calibration.COMMAND` reads, without ending."""
    text = (ROOT / "calibration" / f"{command}.py").read_text(encoding="utf-8")
    return tuple(dict.fromkeys(re.findall(r"(\w+)\.parquet", text)))


def learned_scopes(left_out: Sequence[str], remaining: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The scopes of coefficients that only left-out devices (ids) belong to; of each the wider ones
    that others belong to, the narrowest first."""
    gone, kept = (
        [coefficients.scopes(arch.load(name)) for name in names] for names in (left_out, remaining)
    )
    known = {scope for scopes in kept for scope in scopes} | {"default"}
    return {
        scope: tuple(wider for wider in scopes[number + 1 :] if wider in known)
        for scopes in gone
        for number, scope in enumerate(scopes)
        if scope not in known
    }


def forgotten(
    rows: Mapping[str, Coefficient],
    scopes: Mapping[str, Sequence[str]],
    gone: set[str],
    libraries: set[str],
) -> dict[str, float]:
    """`name@scope` -> the value that does not know what was left out: of the coefficients of a
    family those with one of `scopes`, which take the value of a wider one, and those named after a
    library that is `gone`: the middle of those named after the other `libraries`, or, where these
    have none, the value of the coefficient that no library is named in."""
    found = {}
    for name, row in rows.items():
        for scope in row.values.keys() & scopes.keys():
            wider = next((other for other in scopes[scope] if other in row.values), None)
            if wider is not None and row.status_in(scope) in LEARNED:
                found[f"{name}@{scope}"] = prior(row.family, name, scope, row.values[wider])
        parts = name.split("_")
        if own := gone & set(parts):
            same = [
                "_".join(library if part in own else part for part in parts)
                for library in sorted(libraries)
            ]
            plain = "_".join(part for part in parts if part not in own)
            others = [rows[other] for other in same if other in rows]
            others = others or [rows[other] for other in (plain,) if other in rows]
            for scope in row.values:
                values = [row.values.get(scope, row.values.get("default")) for row in others]
                known = [value for value in values if value is not None]
                if known and row.status_in(scope) in LEARNED and "default" in row.values:
                    found[name if scope == "default" else f"{name}@{scope}"] = median(known)
    return found


@contextmanager
def sources() -> Iterator[Path]:
    """A folder with the packages, of which only the coefficients are copied."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        (copy / "calibration").symlink_to(ROOT / "calibration")
        for parts in (("wavecast",), ("wavecast", "perfmodel")):
            own = copy.joinpath(*parts)
            own.mkdir()
            for path in ROOT.joinpath(*parts).iterdir():
                if path.name != "__pycache__" and (*parts, path.name) != ("wavecast", "perfmodel"):
                    (own / path.name).symlink_to(path)
        table = copy / "wavecast" / "perfmodel" / "coefficients"
        files = list(table.iterdir())
        table.unlink()
        table.mkdir()
        for path in files:
            if path.suffix in (".py", ".toml"):
                (table / path.name).write_bytes((ROOT / path.relative_to(copy)).read_bytes())
        yield copy


def forget(copy: Path, values: Mapping[str, Mapping[str, float]]) -> None:
    """Write coefficients by family and `name@scope` into the sources of a folder."""
    for family, known in values.items():
        if known:
            folder = copy / "wavecast" / "perfmodel" / "coefficients"
            common.write(family, known, folder)


def calibrate(
    copy: Path,
    command: str,
    arguments: Sequence[str],
    frames: Mapping[str, pd.DataFrame],
    data: Path,
) -> str:
    """Run a calibration with the sources of a folder and tables in place of files of `data`.

    Returns "" or the last line of the error of a command that failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        for path in data.glob("*.parquet"):
            (Path(folder) / path.name).symlink_to(path.resolve())
        for name, frame in frames.items():
            path = Path(folder) / f"{name}.parquet"
            path.unlink()
            frame.to_parquet(path)
        done = _python(copy, ["-m", f"calibration.{command}", folder, "--write", *arguments])
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if done.returncode == 0 else (lines or ["no message"])[-1]


def predict(copy: Path, problems: Sequence[tuple[Op, str]]) -> list[float | None]:
    """Predicted seconds of ops on devices with the sources of a folder, None without a
    prediction. Raises RuntimeError when the process fails."""
    with tempfile.NamedTemporaryFile() as asked, tempfile.NamedTemporaryFile() as answered:
        asked.write(pickle.dumps(list(problems)))
        asked.flush()
        done = _python(copy, ["-m", "calibration.refit", asked.name, answered.name])
        if done.returncode:
            raise RuntimeError(done.stderr.decode("utf-8", "replace"))
        return pickle.loads(answered.read())


def _python(copy: Path, command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    return subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, check=False
    )


def main() -> None:
    """In the process of `predict`: read the problems, write their seconds."""
    from wavecast.benchmarking.accuracy import predicting

    asked, answered = map(Path, sys.argv[1:3])
    answers = predicting.predict(pickle.loads(asked.read_bytes()), jobs=1)
    seconds = [
        None if answer.prediction is None else answer.prediction.seconds for answer in answers
    ]
    answered.write_bytes(pickle.dumps(seconds))


__all__ = ["calibrate", "files_of", "forget", "forgotten", "learned_scopes", "predict", "sources"]

if __name__ == "__main__":
    main()
