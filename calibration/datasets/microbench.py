"""Microbenchmarks: streaming kernels as times, figures of the memory hierarchy as figures.

A stream of known size is an element-wise operation (copy, add, triad) and becomes a case;
latencies, bandwidths and sizes of levels become figures. Other programs of the HIP suite are
predicted where their sources are given. Rows of parts of a device (one die, fewer compute units)
and of kernels without an op have no op and a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from calibration import hip_suite
from calibration.datasets.hip_kernels import full_sizes, reason_of
from calibration.hip_program import HipProgram
from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case, MeasuredFigure, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each
from wavecast.errors import MissingFact, UnknownName
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import hbm_bandwidth, mall_bandwidth
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.elementwise import Elementwise

if TYPE_CHECKING:
    import pandas as pd

STREAMS: Final = {"Copy": "copy", "Mul": "scale", "Add": "add", "Triad": "add"}
"""BabelStream kernel -> function that moves the same tensors."""

KERNELS: Final = {"vectoradd": "add", "relu": "relu"}
UNITS: Final = {"KB": 1e3, "MB": 1e6, "GB": 1e9}
LEVELS: Final = {
    "memory/shared/latency/mean": "lds",
    "memory/scalarL1/latency/mean": "scalar",
    "memory/l1/latency/mean": "l1",
    "memory/l2/latency/mean": "l2",
    "memory/main/latency/mean": "hbm",
}
"""Metric of mt4g -> level of `Chip.latency`."""


class Microbench(Importer):
    """Measurements of `microbench.parquet`."""

    name = "microbench"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"arch", "device", "bench", "metric", "param", "value", "unit"}),
    )

    def __init__(self, sources: Path | None = None) -> None:
        """`sources` is a checkout of the HIP suite; without it its rows have no op."""
        self.sources = "" if sources is None else str(sources)

    def cases(self, frame: pd.DataFrame) -> Iterator[Case | MeasuredFigure]:
        """One case or figure per row."""
        rows = [
            {str(name): value for name, value in row.items()} for row in frame.to_dict("records")
        ]
        labels = [(str(row["metric"]), _label(row)) for row in rows]
        sizes = full_sizes(labels) if self.sources else [label for _, label in labels]
        same = ({**row, "problem_size": size} for row, size in zip(rows, sizes, strict=True))
        yield from each(same, self._item)

    def _item(self, row: dict[str, Any]) -> Case | MeasuredFigure:
        return _program(row, self.sources) or _row(row)


def _label(row: dict[str, Any]) -> str:
    """The problem size that a program of the suite printed, "" for other rows."""
    found = re.search(r"problem_size=(.*?),iterations=", str(row["param"]))
    return found.group(1) if found else ""


def _program(row: dict[str, Any], sources: str) -> Case | None:
    """A row of the HIP suite, where its sources are given and no element-wise op represents it."""
    program = str(row["metric"])
    size = str(row["problem_size"])
    if not sources or not _label(row) or program in KERNELS or program not in hip_suite.PROGRAMS:
        return None
    device, reason = _device(str(row["arch"]), str(row["device"]))
    reason = reason_of(program, size, sources) or reason
    return Case(
        kind="hip",
        op=None if reason else HipProgram(program, size, sources),
        device=device,
        seconds=float(row["value"]) * 1e-6,
        group=program,
        labels={"program": program},
        source=f"{program} {size or _label(row)}",
        reason=reason,
    )


def _row(row: dict[str, Any]) -> Case | MeasuredFigure:
    bench, metric, param = str(row["bench"]), str(row["metric"]), str(row["param"])
    value, unit = float(row["value"]), str(row["unit"])
    device, reason = _device(str(row["arch"]), str(row["device"]))
    source = f"{row.get('source_repo', '')}:{row.get('source_path', '')}"
    op, seconds, why = _stream(bench, metric, param, value, unit)
    if op is not None or unit.startswith("us"):
        return Case(
            kind=op.kind if op else "elementwise",
            op=op,
            device=device,
            seconds=seconds,
            group=bench,
            labels={"function": metric, "dtype": "fp64" if "fp64" in bench else "fp32"},
            source=source,
            reason=why or reason,
        )
    expected, missing = _expected(metric, device) if device else (None, reason)
    return MeasuredFigure(
        kind=bench,
        name=f"{metric} {param}".strip(),
        device=device,
        measured=value,
        expected=expected,
        unit=unit,
        source=source,
        reason=missing,
    )


def _device(target: str, name: str) -> tuple[str, str]:
    """Id of the device, or why it is none of the tables'."""
    if "restricted" in name:
        return "", "a part of a device"
    plain = re.sub(r"^(AMD Instinct|NVIDIA) ", "", re.split(r" [(@]", name)[0])
    given = next((text for text in (name, plain) if _known(text)), "")
    if target.startswith("sm_") and not given:
        return "", f"{plain} is not a known device"
    units = 80 if "80 CU" in name else None
    device, doubt = device_of(target, units, given)
    return device, "" if device else doubt


def _known(name: str) -> bool:
    try:
        arch.load(name)
    except UnknownName:
        return False
    return True


def _stream(
    bench: str, metric: str, param: str, value: float, unit: str
) -> tuple[Op | None, float, str]:
    """The op of a stream, its seconds, and why there is no op."""
    if bench.startswith("BabelStream"):
        return _babel(metric, param, value)
    if unit.startswith("us"):
        size = re.search(r"problem_size=(\d+)(MB)?,", param)
        op: Op | None = None
        if metric in KERNELS and size:
            op = Elementwise.of(KERNELS[metric], (int(size.group(1)),), "fp32", timing="launch")
        elif metric == "memcopy_d2d" and size:
            count = int(size.group(1)) * 2**20 // 4
            op = Elementwise.of("copy", (count,), "fp32", timing="launch")
        return op, value * 1e-6, "" if op else f"no op stands for {metric}"
    size = re.fullmatch(r"([\d.]+)(KB|MB|GB)", param)
    if unit != "GB/s" or not size:
        return None, 0.0, ""
    count = int(float(size.group(1)) * UNITS[size.group(2)] / 4)
    seconds = 4 * count / (value * 1e9)
    if "read+write" in bench or metric.endswith("memcpy_stream"):
        op = Elementwise.of("copy", (count // 2,), "fp32", timing="launch")
        return op, seconds, ""
    return None, 0.0, ""


def _babel(metric: str, param: str, value: float) -> tuple[Op | None, float, str]:
    elements = re.search(r"array_elements=(\d+)", param)
    if elements is None:
        return None, 0.0, ""
    count = int(elements.group(1))
    tensors = 3 if metric in ("Add", "Triad") else 1 if metric == "Dot" else 2
    seconds = (2 if metric == "Dot" else tensors) * 8 * count / (value * 1e9)
    if "mode=SPX" not in param:
        return None, seconds, "a part of a device"
    if metric not in STREAMS:
        return None, seconds, "a product of two tensors is no reduction of one"
    return Elementwise.of(STREAMS[metric], (count,), "fp64", timing="launch"), seconds, ""


def _expected(metric: str, device: str) -> tuple[float | None, str]:
    """What the tables have for a metric, in the unit it is measured in."""
    try:
        chip = Chip.of(arch.load(device))
    except MissingFact as error:
        return None, str(error)
    if metric in LEVELS:
        return chip.latency[LEVELS[metric]] * chip.clock, ""
    if metric == "memory/l3/latency/mean":
        return chip.latency["mall"] * chip.clock, ""
    if metric in ("memory/main/readBandwidth", "memory/main/writeBandwidth"):
        return float(hbm_bandwidth(chip, 1.0)) / 2**30, ""
    if metric == "memory/l2/readBandwidth" and chip.l2_bandwidth:
        return chip.l2_bandwidth / 2**30, ""
    if metric == "memory/l3/readBandwidth" and chip.mall_bandwidth:
        return mall_bandwidth(chip) / 2**30, ""
    if metric == "HBMBw":
        return float(hbm_bandwidth(chip, 2.0)) / 1e9, ""
    if metric == "compute/multiProcessorCount":
        return float(chip.units), ""
    return None, f"the model has no figure for {metric}"


__all__ = ["Microbench"]
