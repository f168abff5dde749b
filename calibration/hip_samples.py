"""Executed samples of the HIP suite, kept on disk: the simulator changes, what runs does not.

A sample depends on the code of a kernel and on its arguments only. Making it costs seconds, reading
it milliseconds, so a term of the model can be compared with and without in one sitting.
"""

from __future__ import annotations

import pickle
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pandas as pd

from calibration import hip_suite
from calibration.datasets.hip_kernels import full_sizes
from calibration.hip_program import HipProgram
from wavecast import arch
from wavecast.compile.parsing import parse_kernel
from wavecast.perfmodel import queue
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.sampling import executed
from wavecast.sampling.requests import RequestTable
from wavecast.sampling.sample import Sample

DEVICE: Final = arch.load("mi300a")
_NOT_KEPT: Final = ("kernel", "table")
"""Fields of a sample that follow from its launch."""


@dataclass(frozen=True)
class Problem:
    """A program with a problem size, the time it was measured to take, and its steps: launches as
    (sample, count, polluting bytes)."""

    program: str
    size: str
    seconds: float
    public: bool
    """Whether it is a program of `hip_kernels_mi300a`; the others are those of `microbench`."""
    steps: Sequence[tuple[Sample, float, float] | queue.Step] = field(repr=False)

    @cached_property
    def profiles(self) -> list[tuple[LaunchProfile, float] | queue.Step]:
        """The steps with launches as (profile, count)."""
        return [
            (executed.replay_sample(step[0], DEVICE, polluting_bytes=step[2]), step[1])
            if isinstance(step, tuple)
            else step
            for step in self.steps
        ]


@dataclass(frozen=True, slots=True)
class Row:
    """A measured time (seconds) of a program for a problem size."""

    program: str
    size: str
    seconds: float
    public: bool


def rows(data: Path) -> list[Row]:
    """The measurements of all programs on a whole MI300A: mean times, of 51 runs each.

    Rows whose problem size is not known (`full_sizes`) are left out.
    """
    frame = pd.read_parquet(data / "hip_kernels_mi300a.parquet")
    found = [
        Row(str(r["kernel_name"]), str(r["problem_size"]), float(r["avg_ms"]) * 1e-3, public=True)
        for r in frame.to_dict("records")
    ]
    programs = {row.program for row in found}
    bench = pd.read_parquet(data / "microbench.parquet")
    labels, seconds = [], []
    for r in bench.to_dict("records"):
        program = str(r["metric"])
        given = re.search(r"problem_size=(.*?),iterations=\d+,avg_us=([\d.]+)", str(r["param"]))
        if given is None or program in programs or program not in hip_suite.PROGRAMS:
            continue
        if r["device"] == "MI300A":
            labels.append((program, given[1]))
            seconds.append(float(given[2]) * 1e-6)
    found += [
        Row(program, size, time, public=False)
        for (program, _), size, time in zip(labels, full_sizes(labels), seconds, strict=True)
        if size
    ]
    return found


def evenly(found: Sequence[Row], most: int) -> list[Row]:
    """At most `most` sizes of every program, the last one and others at equal distances before."""
    chosen: list[Row] = []
    for program in dict.fromkeys(row.program for row in found):
        own = [row for row in found if row.program == program]
        step = max(1.0, len(own) / most)
        chosen += [own[len(own) - 1 - int(n * step)] for n in reversed(range(min(most, len(own))))]
    return chosen


def problems(asked: Sequence[Row], sources: Path, folder: Path) -> Iterator[Problem]:
    """The programs that were measured, executed unless `folder` has their samples."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in asked:
        op = HipProgram(row.program, row.size, str(sources))
        path = folder / f"{row.program}-{row.size}-{op.digest(DEVICE)[:12]}.z"
        if not path.is_file():
            steps = list(_executed(op))
            path.write_bytes(zlib.compress(pickle.dumps(steps), 1))
        content = pickle.loads(zlib.decompress(path.read_bytes()))
        steps = [(_whole(s[0]), *s[1:]) if isinstance(s, tuple) else s for s in content]
        yield Problem(row.program, row.size, row.seconds, row.public, steps)


def _executed(op: HipProgram) -> Iterator[tuple[dict[str, Any], float, float] | queue.Step]:
    for step in hip_suite.steps(op.program, op.size):
        if isinstance(step, hip_suite.Kernel):
            taken = op.sample(step, DEVICE)
            kept = {n: getattr(taken, n) for n in Sample.__slots__ if n not in _NOT_KEPT}
            yield kept, step.count, step.polluting_bytes
        else:
            yield step


def _whole(kept: dict[str, Any]) -> Sample:
    kernel = parse_kernel(kept["launch"].code)
    table = RequestTable.of(kernel.program, DEVICE, kernel.descriptor.wave_size)
    return Sample(kernel=kernel, table=table, **kept)


__all__ = ["DEVICE", "Problem", "Row", "evenly", "problems", "rows"]
