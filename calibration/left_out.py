"""Errors of predictions on a target that is left out of the calibration.

    python -m calibration.left_out DATA OUT.json [--only gemm,moe]

For every family and target below: copies the sources, calibrates the copy without the target,
predicts the target's measurements with it, and writes log(measured / predicted) of all of them.
`calibration.validate --left-out OUT.json --write-intervals …` derives the intervals of unmeasured
chips from it. Takes as long as the calibrations do, each as often as it has targets.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wavecast
from wavecast import arch

ROOT = Path(wavecast.__file__).resolve().parents[1]

FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gemm": (("gemm_tuned",), ("gfx942", "gfx950")),
    "moe": (("moe_tuned",), ("gfx942", "gfx950")),
    "attention": (("attention_published",), ("gfx942", "gfx950")),
    "elementwise": (("elementwise_norm",), ("gfx908", "gfx90a", "gfx942")),
    "convolution": (("conv_miopen",), ("gfx908", "gfx90a")),
}
"""Family -> its files, and targets to leave out."""

LIMIT = 3000
"""Problems of a file that are predicted, about."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", default=",".join(FAMILIES), help="families, with commas")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for family in given.only.split(","):
        files, targets = FAMILIES[family]
        for target in targets:
            found = list(missed(given.data.resolve(), family, files, target))
            errors = sorted(abs(math.expm1(row["log"])) for row in found)
            median = f"{errors[len(errors) // 2]:.1%}" if errors else "–"
            print(f"{family} without {target}: {len(found)} problems, median error {median}")
            rows += found
    given.output.write_text(json.dumps({"left_out": rows}) + "\n", encoding="utf-8")


def missed(
    data: Path, family: str, files: tuple[str, ...], target: str
) -> Iterator[dict[str, Any]]:
    """Op, target and log(measured / predicted) of the target's problems."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for package in ("wavecast", "calibration"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, copy / package, ignore=ignored)
        calibrate = [f"calibration.{family}", str(data), "--without", target, "--write"]
        _run(copy, calibrate)
        paths = [str(data / f"{name}.parquet") for name in files]
        scored = [*paths, "--format", "json", "--cases", "--limit", str(LIMIT)]
        document = json.loads(_run(copy, ["calibration.validate", *scored]))
    for case in document["cases"]:
        if arch.load(case["device"]).target == target:
            log = math.log(case["measured"] / case["predicted"])
            yield {"op": case["op"], "target": target, "log": round(log, 5)}


def _run(folder: Path, command: list[str]) -> str:
    """Standard output of `python -m command` with the sources of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
