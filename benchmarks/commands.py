"""Processor time of commands with warm caches, all their processes together.

    python benchmarks/commands.py [--rounds N]

Runs every command once to fill the caches, then N times in turn with a Python that only imports
PyTorch and Triton, as every script with Triton kernels does. Prints the median user and system
seconds, and the median ratio to that import in the same round. Ratios vary less with the load of
the machine than seconds do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
REFERENCE = "python -c 'import torch, triton'"
HIP = """
#include <hip/hip_runtime.h>
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


def commands(folder: Path) -> dict[str, list[str]]:
    """Command line -> arguments of Python."""
    hip = folder / "saxpy.hip"
    hip.write_text(HIP)
    lines = {
        "wavecast --help": ["--help"],
        "wavecast explain examples/softmax.py": [
            "explain", str(ROOT / "examples" / "softmax.py"), "--arch", "gfx942",
        ],
        "wavecast explain --recapture examples/softmax.py": [
            "explain", str(ROOT / "examples" / "softmax.py"), "--arch", "gfx942", "--recapture",
        ],
        "wavecast explain x.hip": [
            "explain", str(hip), "--arch", "gfx942", "--grid", "1024", "--block", "256",
        ],
        "wavecast explain gemm --shape …": [
            "explain", "gemm", "--shape", "4096x4096x4096", "--dtype", "fp8", "--arch", "mi300x",
        ],
        "wavecast ops": ["ops"],
        "wavecast ops matmul --arch mi300x,mi355x --shapes 1": [
            "ops", "matmul", "--arch", "mi300x,mi355x", "--shapes", "1",
        ],
    }  # fmt: skip
    found = {name: ["-m", "wavecast", *line] for name, line in lines.items()}
    return {REFERENCE: ["-c", "import torch, triton"], **found}


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Processor time of a Python and of the processes that it waited for."""
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time of commands.")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = commands(Path(folder))
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, "PYTHONPATH": path}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have bytecode
        for arguments in measured.values():
            seconds(arguments, environment)
        rounds = [
            {name: seconds(arguments, environment) for name, arguments in measured.items()}
            for _ in range(options.rounds)
        ]
    print(f"{'processor seconds':>18} {'ratio':>6}")
    for name in measured:
        median = statistics.median(one[name] for one in rounds)
        ratio = statistics.median(one[name] / one[REFERENCE] for one in rounds)
        print(f"{median:18.2f} {ratio:6.2f}  {name}")


if __name__ == "__main__":
    main()
