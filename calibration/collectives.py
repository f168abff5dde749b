"""`python -m calibration.collectives DATA_DIR`: protocols, links and channels on a mesh.

`--halves` fits to half of the problems and predicts the other half; `--write` writes the values.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path

import pandas as pd

from calibration.datasets.collectives import Collectives
from calibration.table import Sample, Setting, fit, get, samples, table, write

SETTINGS: list[Setting] = [
    ("collectives", name, scope)
    for name, scope in (
        ("mesh_fraction", "default"),
        ("start", "amd"),
        ("slice_hop", "amd"),
        ("flag_fraction", "amd"),
        ("launch", "default"),
        ("host_call", "default"),
        ("channel_bandwidth", "default"),
        ("channel_overlap", "default"),
        ("concurrent_gemm", "default"),
    )
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--halves", action="store_true", help="fit to half of the problems")
    parser.add_argument("--write", action="store_true", help="write the fitted values")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    everything = load(given.data)
    fitted = [s for s in everything if not given.halves or _half(s)]
    fit(SETTINGS, fitted, given.rounds)
    table("in sample", fitted, by_function=False)
    for setting in SETTINGS:
        print(".".join(setting), f"{get(setting):.4g}")
    if given.halves:
        table("left out", [s for s in everything if not _half(s)], by_function=False)
    if given.write:
        write(SETTINGS)


def load(folder: Path) -> list[Sample]:
    """Problems of the data set with the median of their repeats."""
    frame = pd.read_parquet(folder / "collectives.parquet")
    return samples(list(Collectives().cases(frame)))


def _half(sample: Sample) -> bool:
    return zlib.crc32(repr(sample.op).encode()) % 2 == 0


if __name__ == "__main__":
    main()
