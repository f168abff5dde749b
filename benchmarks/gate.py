"""How long a gate takes: operators of the library on GPUs of five targets, with warm caches.

    python benchmarks/gate.py [--kernels 20] [--arch gfx942,gfx950,gfx1100,gfx1201,sm_90]
                              [--jobs 2]

Runs `wavecast gate --update` in a project of its own to warm the caches of Triton and wavecast,
then `wavecast gate`; prints wall and processor seconds of both, every process counted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wavecast.kernels import registry


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a gate takes.")
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--arch", default="gfx942,gfx950,gfx1100,gfx1201,sm_90")
    parser.add_argument("--jobs", type=int)
    given = parser.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    every = list(registry.operators())
    names = every[:: max(1, len(every) // given.kernels)][: given.kernels]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pyproject.toml").write_text(settings(names, given.arch))
        for arguments in (["--update"], []):
            timed(arguments, folder, given.jobs)


def settings(names: list[str], arch: str) -> str:
    """A gate over operators at the first of the shapes they are judged on."""
    return f"[tool.wavecast.gate]\narch = {arch.split(',')!r}\nsubjects = {names!r}\n"


def timed(arguments: list[str], folder: str, jobs: int | None) -> None:
    """One run of the gate."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    more = [] if jobs is None else ["--jobs", str(jobs)]
    command = [sys.executable, "-m", "wavecast", "gate", *arguments, *more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    print(f"gate {' '.join(arguments):<9} {wall:6.1f} s, {spent:6.1f} s of processors, "
          f"exit code {done.returncode}: {' '.join(last)}")  # fmt: skip


if __name__ == "__main__":
    main()
