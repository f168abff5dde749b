"""Scores predictions of Triton kernels on NVIDIA against Liger's benchmark.

`python -m calibration.nvidia DATA_DIR SOURCES [--write]`

SOURCES holds unpacked wheels of liger-kernel, one folder per version (`liger_kernel-0.2.1`). The
kernels are captured with the Triton of this environment, so their code may differ from what was
measured. Scored are the calls that launch one kernel and next to nothing else: forward passes, and
backward passes longer than the time the host needs for one. No coefficient is fitted to them, but
they are not unseen: what L1 and L2 keep, and the traffic of stacks, was decided with these rows in
view (docs/hardware.md). The last lines are the coverage of 80 % intervals from the residuals of
the other kernels, of the other chips, and of the intervals that predictions report. The roofline
baseline is the bytes of every tensor once, at the datasheet's bandwidth. `--write` puts the errors
into `calibration/left_out.json`, each chip and each kernel left out of the others; `python -m
calibration.residuals` makes intervals of them. It refuses fewer kernels than an interval needs:
their residuals would make no row for NVIDIA, widen those of other families, and take predictions
from the interval of what was not measured, which is honest, to one of other families.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from calibration import cells, common, conformal
from calibration.cells import Cell, LeftOutTable
from calibration.left_out import measured, sketch
from wavecast import arch
from wavecast.analyze import analyze_nvidia, sass_program
from wavecast.compile.codeobject import Launch
from wavecast.compile.nvidia import with_sass
from wavecast.errors import WavecastError
from wavecast.perfmodel import intervals
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.distance import Measured, PredictionSubject
from wavecast.perfmodel.launches import launch_timing
from wavecast.perfmodel.predict import subject_of
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.sm.profile import profile_of_sass
from wavecast.runtimes.triton import capture_script

SCRIPT: Final = Path(__file__).with_name("liger_kernels.py")
CONFIGURATION: Final = "extra_benchmark_config_str"
"""The column of which a part is compared, of the others the whole."""
HOST_BOUND: Final = 1.03
"""Calls within this factor of the shortest of their series wait for the host."""
COVERAGE: Final = 0.8
COMMAND: Final = "nvidia"
SOURCE: Final = "linkedin/Liger-Kernel"


@dataclass(frozen=True)
class Series:
    """Rows of the benchmark that are launches of one Triton kernel: its name in the code, the
    argument that has the size, and how the rows are found."""

    name: str
    kernel: str
    size: Callable[[Launch], int]
    device: str
    version: str
    script: tuple[str, str]
    rows: Mapping[str, str]


@dataclass(frozen=True)
class Scored:
    """A row: measured, predicted and roofline seconds, and its subject; `why_not` where there is no
    prediction."""

    series: str
    device: str
    size: int
    measured: float
    predicted: float
    roofline: float
    subject: PredictionSubject
    why_not: str = ""

    @property
    def log(self) -> float:
        """log(measured / predicted)."""
        return float(np.log(self.measured / self.predicted))


def _scalar(name: str) -> Callable[[Launch], int]:
    return lambda launch: int(launch.scalars[name])


def _rows_of_table(launch: Launch) -> int:
    return next(a.shape[0] for a in launch.arguments if a.name == "embeddings_ptr")


_EMBEDDING: Final = {"kernel_name": "embedding", "kernel_operation_mode": "forward"}
_NORM: Final = {
    "kernel_name": "fused_add_rms_norm",
    "kernel_provider": "liger_fused_add_rms_norm",
}
_A100: Final = "a100_80g_sxm"
SERIES: Final = (
    Series(
        "cross entropy", "liger_cross_entropy_kernel", _scalar("n_cols"), _A100, "0.2.1",
        ("cross_entropy", "forward"),
        {"kernel_name": "cross_entropy", "kernel_operation_mode": "forward"},
    ),
    Series(
        "embedding of 768", "embedding_forward_kernel", _rows_of_table, _A100, "0.4.0",
        ("embedding", "forward"), _EMBEDDING | {CONFIGURATION: '"D": 768'},
    ),
    Series(
        "embedding of 4096", "embedding_forward_kernel", _rows_of_table, _A100, "0.4.0",
        ("wide_embedding", "forward"), _EMBEDDING | {CONFIGURATION: '"D": 4096'},
    ),
    Series(
        "add and norm", "_fused_add_rms_norm_forward_kernel", _scalar("n_cols"), "h100_sxm",
        "0.7.0", ("add_rms_norm", "full"), _NORM | {"kernel_operation_mode": "forward"},
    ),
    Series(
        "add and norm, backward", "_fused_add_rms_norm_backward_kernel", _scalar("n_cols"),
        "h100_sxm", "0.7.0", ("add_rms_norm", "full"),
        _NORM | {"kernel_operation_mode": "backward"},
    ),
)  # fmt: skip


def scored(data: Path, sources: Path) -> Iterator[Scored]:
    """Every row of the series, predicted."""
    frame = pd.read_parquet(data / "nvidia_triton_liger.parquet")
    launches: dict[tuple[str, ...], list[Launch]] = {}
    for series in SERIES:
        rows = _rows(frame, series)
        shortest = min(rows.values())
        bound = shortest * HOST_BOUND if "backward" in series.name else 0.0
        key = (*series.script, series.device)
        if key not in launches:
            launches[key] = _captured(sources, series, sorted(rows))
        for launch in launches[key]:
            if launch.code.kernel != series.kernel:
                continue
            size = series.size(launch)
            if rows[size] > bound:
                yield _scored(series, launch, size, rows[size])


def _rows(frame: pd.DataFrame, series: Series) -> dict[int, float]:
    """Median seconds by size."""
    return {
        int(row["x_value"]): float(row["y_value_50"]) * 1e-3
        for row in frame.to_dict("records")
        if all(
            text in row[column] if column == CONFIGURATION else text == row[column]
            for column, text in series.rows.items()
        )
    }


def _captured(sources: Path, series: Series, sizes: Sequence[int]) -> list[Launch]:
    folder = str(sources / f"liger_kernel-{series.version}")
    given = (folder, *series.script, *map(str, sizes))
    capture = capture_script(SCRIPT, given, [arch.load(series.device)], quiet=True)
    return [launch for found in capture.launches.values() for launch in found]


def _scored(series: Series, launch: Launch, size: int, time: float) -> Scored:
    device = arch.load(series.device)
    moved = sum(a.bytes for a in launch.arguments if a.kind == "tensor")
    roofline = moved / Chip.of(device).hbm_peak
    try:
        profile = _profile(launch, device)
        seconds = launch_timing(profile, device).seconds
    except WavecastError as error:
        nothing = PredictionSubject("kernel")
        return Scored(series.name, device.id, size, time, np.nan, roofline, nothing, error.message)
    return Scored(series.name, device.id, size, time, seconds, roofline, subject_of(profile))


def _profile(launch: Launch, device: arch.Device) -> LaunchProfile:
    code = with_sass(launch.code)
    launch, program = replace(launch, code=code), sass_program(code)
    analysis = analyze_nvidia(code, device, launch, program)
    return profile_of_sass(launch, analysis, program, device)


def left_out(rows: Sequence[Scored]) -> LeftOutTable:
    """Each chip and each kernel left out of the others. No coefficient was fitted to any."""
    found = []
    for kind in ("chip", "model"):
        for group in sorted({_group(row, kind) for row in rows}):
            same = [row for row in rows if _group(row, kind) == group]
            others = [row for row in rows if _group(row, kind) != group]
            found += _cells(kind, group, same, Measured(measured(others)))
    return LeftOutTable({COMMAND: tuple(measured(rows))}, tuple(found), {}, {})


def _group(row: Scored, kind: str) -> str:
    return row.device if kind == "chip" else row.series


def _cells(kind: str, group: str, same: Sequence[Scored], known: Measured) -> Iterator[Cell]:
    distances = [known.distance(row.subject, row.device).distance_class for row in same]
    for distance in dict.fromkeys(distances):
        rows = [row for row, own in zip(same, distances, strict=True) if own is distance]
        for device, library in sorted({(row.device, row.subject.library) for row in rows}):
            own = [r for r in rows if (r.device, r.subject.library) == (device, library)]
            rooflines = [abs(row.roofline / row.measured - 1) for row in own]
            logs = sketch(np.array([row.log for row in own]))
            yield Cell(
                COMMAND, kind, group, own[0].subject.family, device, library, SOURCE,
                distance.value, False, len(own), float(np.median(rooflines)),
                tuple(round(float(value), 4) for value in logs),
            )  # fmt: skip


def covered(rows: Sequence[Scored], group: Callable[[Scored], str]) -> str:
    """How many rows lie in 80 % intervals from the residuals of the other groups."""
    count = 0
    for name in {group(row) for row in rows}:
        others = [row.log for row in rows if group(row) != name]
        if not others:
            return "one group only"
        low, high = np.quantile(others, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
        count += sum(low <= row.log <= high for row in rows if group(row) == name)
    return f"{count} of {len(rows)}"


def reported(rows: Sequence[Scored]) -> str:
    """How many rows lie in the intervals that predictions report."""
    known, count = intervals.table(), 0
    for row in rows:
        found, _ = intervals.residuals(known, row.subject, arch.load(row.device))
        count += min(0.0, found.low) <= row.log <= max(0.0, found.high)
    return f"{count} of {len(rows)}"


def refusal(rows: Sequence[Scored]) -> str:
    """Why the errors are not written; "" where they are enough for an interval."""
    kernels = len({row.series for row in rows})
    if kernels >= conformal.LEAST_GROUPS:
        return ""
    return (
        f"not written: an interval needs {conformal.LEAST_GROUPS} kernels, these rows have "
        f"{kernels}; predictions keep the interval of what was not measured"
    )


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = []
    for row in scored(given.data, given.sources):
        if row.why_not:
            print(f"{row.series} {row.size} on {row.device}: {row.why_not}")
            continue
        rows.append(row)
        error = row.predicted / row.measured - 1
        print(
            f"{row.series} {row.size} on {row.device}: measured {row.measured * 1e6:.1f} µs, "
            f"predicted {row.predicted * 1e6:.1f} µs ({error:+.1%}), "
            f"roofline {row.roofline * 1e6:.1f} µs"
        )
    groups: Mapping[str, Callable[[Scored], str]] = {
        "kernel": lambda row: row.series,
        "chip": lambda row: row.device,
        "all": lambda _: "",
    }
    for title, group in groups.items():
        for name in sorted({group(row) for row in rows}):
            chosen = [row for row in rows if group(row) == name]
            measured = np.array([row.measured for row in chosen])
            for what in ("predicted", "roofline"):
                ratio = np.array([getattr(row, what) for row in chosen]) / measured
                print(f"{title} {name}, {what}: {common.scores(ratio)}")
        if title != "all":
            print(f"in intervals of other {title}s: {covered(rows, group)}")
    print(f"in reported intervals: {reported(rows)}")
    if given.write:
        if why_not := refusal(rows):
            parser.exit(1, f"{why_not}\n")
        table = cells.read().without(COMMAND).joined(left_out(rows))
        cells.TABLE.write_text(table.document(), encoding="utf-8")


if __name__ == "__main__":
    main()
