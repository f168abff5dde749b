"""How long tuning takes: configurations of one bf16 matrix product, compile included.

    python benchmarks/tune.py [--configurations 300] [--size 4096] [--jobs 2] [--arch gfx942]

Compiles anew, in a cache of its own. Prints wall and processor time, and the best configurations.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

from wavecast.pipeline import select
from wavecast.tuning.budget import SearchBudget
from wavecast.tuning.run import tune
from wavecast.tuning.script import TuneScript
from wavecast.tuning.settings import TuneSettings

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPT = """
import sys
sys.path.insert(0, {examples!r})
import torch
from matmul import matmul
a = torch.zeros(({size}, {size}), device="cuda", dtype=torch.bfloat16)
matmul(a, a)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="How long tuning takes.")
    parser.add_argument("--configurations", type=int, default=300)
    parser.add_argument("--simulate", type=int, default=6)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--search", default="evolution")
    parser.add_argument("--top", type=int, default=8)
    given = parser.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "triton")
        script = Path(folder) / "product.py"
        script.write_text(SCRIPT.format(examples=str(EXAMPLES), size=given.size))
        settings = TuneSettings(
            devices=(),
            journal="",
            space="wide",
            search=given.search,
            budget=SearchBudget(given.configurations),
            simulate=given.simulate,
            jobs=given.jobs,
        )
        started = time.perf_counter()
        tuned = tune(TuneScript(script), select([given.arch]), settings)
        wall = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime
    for entry in tuned.table.entries:
        count = len(entry.results) + len(entry.refused)
        kinds = Counter(result.fidelity for result in entry.results)
        print(
            f"{count} configurations, {kinds['executed']} simulated, {len(entry.refused)} refused"
        )
        print(f"wall {wall:.0f} s, processor {processor:.0f} s, {processor / count:.2f} s each")
        for result in entry.results[: given.top]:
            assert result.seconds is not None
            print(f"{result.seconds * 1e6:8.1f} µs  {result.fidelity:8}  {result.configuration}")


if __name__ == "__main__":
    main()
