"""`python -m calibration.elementwise DATA_DIR`: streaming kernels, norms, softmax and their timing.

Fits memory, timing, elementwise and norm to `elementwise_norm.parquet`. `--without TARGET` leaves a
target out and predicts it; `--halves` fits to half of the shapes and predicts the other half;
`--ablate` prints the error without each term; `--write` writes the values.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.datasets.elementwise_norm import ElementwiseNorm
from calibration.table import Sample, Setting, drop, fit, get, put, samples, table, thinned
from calibration.table import write as write_table
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel.timing import TIMINGS

FAMILIES = ("chips", "memory", "timing", "elementwise", "norm")
EAGER_TARGETS = ("gfx908", "gfx90a")
MOST = 20
"""Samples per function and device in a search."""

TERMS: dict[str, dict[Setting, float]] = {
    "residency in caches": {("memory", "cache_share", "default"): 1e-6},
    "bandwidth per stream": {
        ("memory", "stream_loss", scope): 1e-9 for scope in ("default", *EAGER_TARGETS)
    },
    "what other kernels touch in between": {("memory", "reuse_distance", "default"): 1.0},
    "divisions of indices": {
        ("elementwise", "division_instructions", "default"): 1e-3,
        ("elementwise", "division_instructions", "nvidia"): 1e-3,
    },
    "conversion of bf16": {("norm", "conversion_instructions", "gfx942"): 1e-3},
    "L2 bandwidth": {("memory", "l2_fraction", "default"): 1e3},
    "arithmetic": {
        ("elementwise", name, "default"): 1e-3
        for name in ("special_instructions", "exponential_instructions")
    },
    "host path of a call": {
        ("timing", name, "default"): 1e-9
        for name in ("host_frame", "host_number", "host_softmax", "host_norm")
    },
    "reduction across lanes": {
        ("norm", name, "default"): 1e-3
        for name in ("norm_reduction", "wave_reduction", "block_reduction")
    },
}
"""What an ablation takes away: settings and the value that means nothing."""


PER_TARGET = (
    ("chips", "hbm_fraction"),
    ("memory", "stream_loss"),
    ("timing", "host_call"),
    ("timing", "eager_start"),
    ("elementwise", "power_instructions"),
    ("elementwise", "tensor_power_instructions"),
)
"""Family and name of what element-wise calls decide for every target of its own."""


def streaming_settings(targets: Sequence[str]) -> list[Setting]:
    """What element-wise calls decide."""
    shared = [
        ("memory", "cache_share"),
        ("memory", "l2_fraction"),
        ("timing", "host_frame"),
        ("timing", "host_number"),
        ("timing", "eager_overlap"),
        ("elementwise", "special_instructions"),
        ("elementwise", "overlap"),
        ("elementwise", "drain"),
    ]
    found = [(family, name, target) for family, name in PER_TARGET for target in targets]
    return found + [(family, name, "default") for family, name in shared]


ROW_SETTINGS: list[Setting] = [
    ("timing", "host_norm", "default"),
    ("timing", "host_softmax", "default"),
    *(
        ("norm", name, "default")
        for name in (
            "overlap",
            "norm_reduction",
            "norm_instructions",
            "walk_chain",
            "softmax_chain",
            "wave_reduction",
            "softmax_instructions",
            "batch_cost",
            "batch_chain",
            "block_reduction",
            "unaligned_walk",
            "aligned_walk",
        )
    ),
]

REDUCTION_SETTINGS: list[Setting] = [
    ("norm", "reduction_chain", "default"),
    ("norm", "reduction_step", "default"),
    ("norm", "reduction_step", "nvidia"),
]

PROFILED_SETTINGS: list[Setting] = [
    ("timing", "kernel_start", "default"),
    ("timing", "kernel_start", "nvidia"),
    ("memory", "reuse_distance", "default"),
    ("memory", "stream_loss", "nvidia"),
    ("memory", "l2_fraction", "nvidia"),
    ("elementwise", "exponential_instructions", "default"),
    ("elementwise", "division_instructions", "default"),
    ("elementwise", "division_instructions", "nvidia"),
    ("elementwise", "offset_instructions", "default"),
    ("elementwise", "offset_instructions", "nvidia"),
    ("elementwise", "index_chain", "default"),
    ("elementwise", "index_overlap", "default"),
    ("elementwise", "cast_chain", "default"),
    ("elementwise", "random_instructions", "default"),
    ("norm", "norm_reduction", "nvidia"),
    ("norm", "channel_instructions", "default"),
    ("norm", "conversion_instructions", "gfx942"),
    ("norm", "mask_instructions", "default"),
    ("norm", "sum_reduction", "default"),
    *REDUCTION_SETTINGS,
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--without", default="", help="a target to leave out and predict")
    parser.add_argument("--halves", action="store_true", help="fit to half of the shapes")
    parser.add_argument("--ablate", action="store_true", help="the error without each term")
    parser.add_argument("--write", action="store_true", help="write the fitted values")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    everything = load(given.data)
    if given.without:
        drop(given.without, FAMILIES)
    fitted = [s for s in everything if s.target != given.without]
    if given.halves:
        fitted = [s for s in fitted if _half(s)]
    calibrate(fitted, given.rounds, given.without)
    _print("in sample", fitted)
    for setting in [*streaming_settings(EAGER_TARGETS), *ROW_SETTINGS, *PROFILED_SETTINGS]:
        print(".".join(setting), f"{get(setting):.4g}")
    if given.without or given.halves:
        known = {id(s) for s in fitted}
        _print("left out", [s for s in everything if id(s) not in known])
    if given.ablate:
        ablate(everything)
    if given.write:
        targets = [target for target in EAGER_TARGETS if target != given.without]
        averaged = [(family, name, "default") for family, name in PER_TARGET if family != "chips"]
        settings = [*streaming_settings(targets), *averaged, *ROW_SETTINGS, *PROFILED_SETTINGS]
        write_table(settings)


def load(folder: Path) -> list[Sample]:
    """Problems of the data set with the median of their repeats."""
    frame = pd.read_parquet(folder / "elementwise_norm.parquet")
    cases = ElementwiseNorm().cases(frame)
    return samples([case for case in cases if isinstance(case, Case)])


def calibrate(fitted: Sequence[Sample], rounds: int, without: str = "") -> None:
    """Fit in steps, each to the calls that decide its settings; rows again once their start is."""
    eager = [s for s in fitted if _eager(s)]
    targets = [target for target in EAGER_TARGETS if target != without]
    plain = [s for s in eager if s.op.kind == "elementwise"]
    fit(streaming_settings(targets), thinned(plain, MOST), rounds)
    _average(targets)
    profiled = [s for s in fitted if not _eager(s)]
    rows = thinned([s for s in eager if s.op.kind in ("norm", "softmax")], 4 * MOST)
    fit(ROW_SETTINGS, rows, rounds)
    fit(PROFILED_SETTINGS, profiled, rounds)
    fit(ROW_SETTINGS, rows, rounds)


def ablate(everything: Sequence[Sample]) -> None:
    """Print the error without each term of the model, nothing refitted."""
    for term, values in TERMS.items():
        kept = {setting: get(setting) for setting in values}
        put(values)
        for name, part in _parts(everything):
            table(f"without {term}, {name}", part, by_function=False)
        put(kept)


def _average(targets: Sequence[str]) -> None:
    """A chip that was not measured is taken to be like the mean of those that were."""
    for family, name in PER_TARGET:
        if family != "chips":
            values = [get((family, name, target)) for target in targets]
            put({(family, name, "default"): float(np.mean(values))})


def _eager(sample: Sample) -> bool:
    timing = getattr(sample.op, "timing", "kernel")
    assert timing in TIMINGS
    return timing.startswith("eager")


def _half(sample: Sample) -> bool:
    return zlib.crc32(str(sample.op).encode()) % 2 == 0


def _print(title: str, chosen: Sequence[Sample]) -> None:
    for name, part in _parts(chosen):
        table(f"{title}, {name}", part)


def _parts(chosen: Sequence[Sample]) -> list[tuple[str, list[Sample]]]:
    parts = [
        ("eager calls", [s for s in chosen if _eager(s)]),
        ("kernels", [s for s in chosen if not _eager(s)]),
    ]
    return [(name, part) for name, part in parts if part]


if __name__ == "__main__":
    main()
