"""Speed and memory of reading machine code, over a folder of compiled kernels.

    python benchmarks/explain.py FOLDER [--processes N]

FOLDER holds NAME.TARGET.amdgcn. Prints instructions per second for parsing and for parsing plus
analysis, as ratios to a reference measured in the same run (splitting the same texts into stripped
lines), the time of the largest kernel, and peak memory. Absolute times vary with the machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from wavecast import analyze, arch, isa
from wavecast.compile.codeobject import CodeObject, Launch


def code_object(path: Path, text: str, target: str, kernel: str, threads: int) -> CodeObject:
    """A code object with assembly only, as an analysis needs it."""
    side = path.with_suffix(".json")
    lds = json.loads(side.read_text())["shared"] if side.exists() else 0
    return CodeObject(
        kernel, target, "assembly", {"amdgcn": text}, (), {}, threads, lds, str(path), 0, "", "", ""
    )


def measure(path: Path) -> tuple[str, int, float, float, float]:
    """Name, instructions, and seconds for reference, parse, and analysis of one file."""
    text = path.read_text()
    target = path.name.split(".")[-2]
    device = arch.load(target)
    start = time.perf_counter()
    lines = [line.strip() for line in text.split("\n")]
    reference = time.perf_counter() - start
    del lines
    start = time.perf_counter()
    module = isa.parse(text, target)
    parsed = time.perf_counter() - start
    count = 0
    start = time.perf_counter()
    for kernel in module.kernels.values():
        count += len(kernel.program.instructions)
        threads = kernel.descriptor.max_workgroup_size
        code = code_object(path, text, target, kernel.name, threads)
        launch = Launch(code, (1024, 1, 1), (threads, 1, 1), dynamic_lds=code.dynamic_lds)
        analyze.analyze(code, device, kernel.program, kernel.descriptor, launch)
    return path.name, count, reference, parsed, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory of reading machine code.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.amdgcn"))
    start = time.perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        rows = list(pool.map(measure, paths, chunksize=4))
    wall = time.perf_counter() - start
    instructions = sum(row[1] for row in rows)
    reference = sum(row[2] for row in rows)
    parse = sum(row[3] for row in rows)
    analysis = sum(row[4] for row in rows)
    slowest = max(rows, key=lambda row: row[3] + row[4])
    rates = [row[1] / (row[3] + row[4]) for row in rows if row[1]]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{len(rows)} kernels, {instructions} instructions, {options.processes} processes")
    print(f"wall                       {wall:8.1f} s")
    print(f"parse                      {instructions / parse:8.0f} instructions/s and process")
    print(f"parse and analyse          {instructions / (parse + analysis):8.0f} instructions/s")
    print(f"median kernel              {statistics.median(rates):8.0f} instructions/s")
    print(f"reference (split, strip)   {instructions / reference:8.0f} instructions/s")
    print(f"parse / reference          {parse / reference:8.1f} x")
    print(f"(parse + analyse) / ref    {(parse + analysis) / reference:8.1f} x")
    print(f"slowest kernel             {slowest[3] + slowest[4]:8.2f} s ({slowest[0]})")
    print(f"peak memory of a process   {memory:8.0f} MiB")


if __name__ == "__main__":
    main()
