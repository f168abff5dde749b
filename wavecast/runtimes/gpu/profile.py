"""Device times of the kernels a script launches, from torch's profiler (CUPTI or roctracer)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from wavecast.errors import CaptureError, InputError

Grid = tuple[int, int, int]

_PROFILED = """
import os, runpy, sys
import torch
script, trace, *arguments = sys.argv[1:]
sys.argv = [script, *arguments]
sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
runpy.run_path(script, run_name="__main__")
torch.cuda.synchronize()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
    runpy.run_path(script, run_name="__main__")
    torch.cuda.synchronize()
profiler.export_chrome_trace(trace)
"""
"""The script runs twice; the second time nothing is compiled or tuned any more."""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """Launches of one kernel with one grid: their number, their device times in seconds in order
    (`samples`) and the median of those."""

    kernel: str
    grid: Grid
    launches: int
    seconds: float
    samples: tuple[float, ...] = ()


def profile_script(
    path: Path, timeout: float = 600.0, *, arguments: Sequence[str] = ()
) -> tuple[KernelRun, ...]:
    """The kernels a script launches on the local GPU. Raises CaptureError when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        command = [sys.executable, "-c", _PROFILED, str(path), str(trace), *arguments]
        try:
            process = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise CaptureError(f"{path.name} ran for more than {timeout:g} s") from None
        if process.returncode:
            last = (process.stderr.strip().splitlines() or ["no message"])[-1]
            raise CaptureError(f"{path.name} failed: {last}")
        return kernel_runs(trace)


def kernel_runs(trace: Path) -> tuple[KernelRun, ...]:
    """The kernels of a Chrome trace by torch's profiler, in order of first launch.

    Raises InputError for another file.
    """
    try:
        events: list[dict[str, Any]] = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        times: dict[tuple[str, Grid], list[float]] = defaultdict(list)
        for event in events:
            if event.get("cat") == "kernel":
                x, y, z = event["args"]["grid"]
                times[event["name"], (x, y, z)].append(event["dur"] * 1e-6)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{trace.name}: no trace of torch's profiler: {error}") from None
    return tuple(
        KernelRun(name, grid, len(durations), median(durations), tuple(durations))
        for (name, grid), durations in times.items()
    )
