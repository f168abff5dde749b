"""`python -m calibration.links DATA`: errors of collectives by chip, library and left-out chip.

DATA/collectives.parquet and DATA/systems/collectives_*.parquet. `--left-out DEVICE` predicts a chip
by the coefficients of the others; the only mesh gets the figures of switches. The baseline is bytes
over the bandwidth of the links. The tables are those of docs/machines.md. `--sizes DEVICE` lists
the all-reduces of all GPUs of a node by size.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.datasets.collectives import Collectives
from calibration.table import Sample, Setting, drop, get, put, ratios, samples
from wavecast import arch
from wavecast.arch.systems import node_size
from wavecast.benchmarking.accuracy.importers.collective_runs import cases
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import of_device
from wavecast.perfmodel.ops.collectives import Collective, one_node
from wavecast.perfmodel.ops.collectives.problem import LATENCIES

FILES = ("collectives_azure", "collectives_expert_parallel", "collectives_nvidia")
SCOPES: Mapping[str, str] = {
    "a100_80g_sxm": "ampere", "h100_sxm": "hopper", "b200": "blackwell", "mi300x": "amd"
}  # fmt: skip
"""Devices that are left out, and the scope of coefficients that only they belong to."""
LARGE = 1 << 20


def load(folder: Path) -> list[Sample]:
    """All problems with the median of their repeats."""
    found = list(Collectives().cases(pd.read_parquet(folder / "collectives.parquet")))
    alone = [case for case in found if isinstance(case.op, Collective) and not case.op.concurrent]
    for name in FILES:
        alone += cases(pd.read_parquet(folder / "systems" / f"{name}.parquet"))
    return samples(alone)


def baseline(chosen: Sequence[Sample]) -> np.ndarray:
    """Seconds of the bytes over the links of a node, or the NICs of several, over measured ones."""
    found = []
    for sample in chosen:
        op = sample.op
        assert isinstance(op, Collective)
        group = op.group or one_node(arch.load(sample.device), op.gpus)
        assert group.fabric is not None
        rate = group.fabric.rate(min(group.local, op.gpus))
        if group.nodes > 1 and group.network is not None:
            rate = group.network.rate
        found.append(op.wire / rate / sample.seconds)
    return np.array(found)


def kind(sample: Sample) -> str:
    """What a sample counts for in the table."""
    op = sample.op
    assert isinstance(op, Collective)
    if op.topk:
        return f"experts, {op.library}"
    return op.library or "NCCL, RCCL"


def table(chosen: Sequence[Sample], found: np.ndarray, title: str) -> list[str]:
    """Rows of Markdown: chip, what, problems, median and 90 % quantile, large ones, baseline."""
    simple = np.abs(baseline(chosen) - 1)
    error = np.abs(found - 1)
    keys = [(sample.device, kind(sample)) for sample in chosen]
    large = np.array([_bytes(sample) > LARGE for sample in chosen])
    lines = []
    for key in sorted(set(keys)):
        own = np.array([k == key for k in keys])
        big = np.median(error[own & large]) if (own & large).any() else np.nan
        lines.append(
            f"| {title}{key[0]} | {key[1]} | {own.sum()} | {np.median(error[own]):.1%} | "
            f"{np.quantile(error[own], 0.9):.0%} | {big:.1%} | {np.median(simple[own]):.0%} |"
        )
    return lines


def by_size(everything: Sequence[Sample], device: str) -> list[str]:
    """Rows of Markdown: library, bytes, timing, measured and predicted µs, error, of all-reduces on
    all GPUs of a node with as many channels as the library takes."""
    most = node_size(arch.load(device))
    chosen: list[tuple[Sample, Collective]] = []
    for sample in everything:
        op = sample.op
        assert isinstance(op, Collective)
        whole = op.function == "all_reduce" and op.gpus == most and not op.channels
        if sample.device == device and whole:
            chosen.append((sample, op))
    chosen.sort(key=lambda pair: (pair[1].library, pair[1].timing, pair[1].bytes))
    found = ratios([sample for sample, _ in chosen])
    lines = []
    for (sample, op), ratio in zip(chosen, found, strict=True):
        library = op.library or "NCCL, RCCL"
        lines.append(
            f"| {library} | {op.bytes} | {op.timing} | {sample.seconds * 1e6:.1f} | "
            f"{ratio * sample.seconds * 1e6:.1f} | {ratio - 1:+.1%} |"
        )
    return lines


def left_out(everything: Sequence[Sample], device: str) -> tuple[list[Sample], np.ndarray]:
    """The samples of a device, and predictions by the values of the other chips: a coefficient
    with scopes gets the geometric mean of theirs, latencies for their mean L2 latency; the others
    stay."""
    scope = SCOPES[device]
    l2 = {SCOPES[name]: of_device(arch.load(name)).latency["l2"] for name in SCOPES}
    reference = coefficients.coefficient("collectives", "l2_reference").values["default"]
    known: dict[Setting, float] = {}
    for name, row in coefficients.family("collectives").items():
        others = {
            key: value
            for key, value in row.values.items()
            if key in l2 and key not in (scope, "amd")
        }
        if others:
            unit = {key: reference / l2[key] if name in LATENCIES else 1.0 for key in others}
            logs = [np.log(value * unit[key]) for key, value in others.items()]
            known["collectives", name, "default"] = float(np.exp(np.mean(logs)))
    if device == "mi300x":
        known["collectives", "mesh_fraction", "default"] = get(
            ("collectives", "switch_fraction", "default")
        )
    drop(scope, ["collectives"])
    put(known)
    own = [sample for sample in everything if sample.device == device]
    return own, ratios(own)


def _bytes(sample: Sample) -> int:
    assert isinstance(sample.op, Collective)
    return sample.op.bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--left-out", default="", help="a device, instead of all in sample")
    parser.add_argument("--sizes", default="", help="a device, whose all-reduces to list")
    given = parser.parse_args()
    everything = load(given.data)
    if given.sizes:
        print("| library | bytes | timing | measured µs | predicted µs | error |")
        print("|---|--:|---|--:|--:|--:|")
        print("\n".join(by_size(everything, given.sizes)))
        return
    print("| chip | what | problems | median | p90 | above 1 MiB | baseline |")
    print("|---|---|--:|--:|--:|--:|--:|")
    if given.left_out:
        own, found = left_out(everything, given.left_out)
        print("\n".join(table(own, found, "left out: ")))
    else:
        print("\n".join(table(everything, ratios(everything), "")))


if __name__ == "__main__":
    main()
