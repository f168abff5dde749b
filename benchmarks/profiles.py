"""Speed and memory of reading a trace of PyTorch's profiler, next to `json.load` in the same run.

    python -m benchmarks.profiles [--events 1000000]

For each launch there are an operator with sizes, a call of the runtime, a flow and a kernel. The
processor time is that of the command's part which reads, and of the whole report without
predictions; the memory is the most that a new process has in use.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

LAYERS = 1_000
"""Launches after which names and sizes repeat."""
SHARE = 10
"""`json.load` reads a trace with so many times fewer events: it needs the memory of all objects."""


def events(number: int) -> Iterator[dict[str, Any]]:
    """Events of a training step on one stream."""
    for launch in range(number // 4):
        at, kind = launch * 12.5, launch % LAYERS
        host = {"pid": 4711, "tid": 4711}
        yield {
            "ph": "X", "cat": "cpu_op", "name": f"aten::op{kind % 40}", **host, "ts": at,
            "dur": 9.25,
            "args": {
                "External id": launch, "Record function id": 0, "Concrete Inputs": ["", "", ""],
                "Input type": ["c10::BFloat16", "c10::BFloat16", ""],
                "Input Strides": [[4096, 1], [1, 4096], []],
                "Input Dims": [[8192, 4096], [4096, 64 * (1 + kind % 8)], []], "Ev Idx": launch,
            },
        }  # fmt: skip
        yield {
            "ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", **host, "ts": at + 3,
            "dur": 4.5, "args": {"External id": launch, "cbid": 211, "correlation": launch + 1},
        }  # fmt: skip
        yield {
            "ph": "s", "id": launch + 1, **host, "ts": at + 3, "cat": "ac2g", "name": "ac2g"
        }  # fmt: skip
        yield {
            "ph": "X", "cat": "kernel", "pid": 0, "tid": 3, "ts": at + 20, "dur": 11.75,
            "name": f"void at::native::vectorized_elementwise_kernel<4, Functor{kind}>(int)",
            "args": {
                "External id": launch, "queued": 0, "device": 0, "stream": 3,
                "correlation": launch + 1, "grid": [1024, 1, 1], "block": [256, 1, 1],
                "registers per thread": 32, "shared memory": 0,
            },
        }  # fmt: skip


def write(path: Path, number: int) -> None:
    """The trace as a file."""
    with path.open("w") as out:
        out.write('{"schemaVersion": 1, "traceEvents": [\n')
        for index, event in enumerate(events(number)):
            out.write((",\n" if index else "") + json.dumps(event))
        out.write("\n]}\n")


def measured(code: str, path: Path) -> tuple[float, float]:
    """(seconds of processor time of `run()`, GiB of memory in use) of a new process that defines
    it."""
    script = (
        "import resource, sys, time\n"
        f"{code}\n"
        "start = time.process_time()\n"
        "run(sys.argv[1])\n"
        "most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(time.process_time() - start, most / 2**20)\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, memory = (float(number) for number in out.split())
    return seconds, memory


READ = """
from pathlib import Path
from wavecast.profiles.reading import read
def run(path):
    read(Path(path))
"""
REPORT = """
from pathlib import Path
from wavecast.profiles.reading import read
from wavecast.profiles.summary import summarise, variations
from wavecast.profiles.critical import critical_path
from wavecast.report import profiles_activity
def run(path):
    profile = read(Path(path))
    summarise(profile)
    variations(profile)
    critical_path(profile, 0)
    list(profiles_activity.sections(profile, 12))
    profiles_activity.queue_entries(profile, 0)
"""
LOAD = """
import json
def run(path):
    with open(path) as file:
        json.load(file)
"""


@click.command()
@click.option("--events", "number", default=1_000_000, help="Events of the trace.")
def main(number: int) -> None:
    """Print a table."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder, "trace.json"), Path(folder, "small.json")
        write(path, number)
        write(small, number // SHARE)
        size = path.stat().st_size
        loaded, loaded_memory = measured(LOAD, small)
        reference = small.stat().st_size / loaded
        click.echo(f"{number:,} events, {size / 1e9:.2f} GB")
        click.echo("| what | MB/s | times json.load | GiB |\n|---|---|---|---|")
        click.echo(
            f"| json.load, a {SHARE}th of it | {reference / 1e6:.1f} | 1 | {loaded_memory:.2f} |"
        )
        for name, code in (("read", READ), ("read and summarise", REPORT)):
            seconds, memory = measured(code, path)
            rate = size / seconds
            click.echo(f"| {name} | {rate / 1e6:.1f} | {rate / reference:.2f} | {memory:.2f} |")
    click.echo(f"{time.perf_counter() - start:.0f} s", err=True)


if __name__ == "__main__":
    main()
