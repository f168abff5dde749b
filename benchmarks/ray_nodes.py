"""How much faster a search is on two nodes of Ray than on one, on this machine.

    python -m benchmarks.ray_nodes [--model Llama-3.3-70B] [--rounds 2] [--tune 24]

A node has one processor. `wavecast model --search` and `wavecast tune` run on a cluster of one node
and on one of two, in turn; times are of the search in a running cluster. The reference is one
process without Ray. Two processors that other programs use as well give less than two of them
have: the ratio of two processes to one, without Ray, is the most that two nodes can reach.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from wavecast.arch.systems import system
from wavecast.pipeline import select
from wavecast.systems.answer import Deployment, loads
from wavecast.tune.budget import SearchBudget
from wavecast.tune.model_search import search
from wavecast.tune.model_space import configurations, dimensions
from wavecast.tune.run import tune
from wavecast.tune.script import TuneScript
from wavecast.tune.settings import TuneSettings

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPT = """
import sys
sys.path.insert(0, {examples!r})
import torch
from matmul import matmul
a = torch.zeros((1024, 1024), device="cuda", dtype=torch.bfloat16)
matmul(a, a)
"""

_GPUS: Final = ("MI300X", "MI325X", "MI355X", "H100", "H200", "B200")

Run = Callable[[int, str], object]
"""A search in a number of processes, or on the cluster at an address."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed-up of searches on two nodes of Ray.")
    parser.add_argument("--model", default="Llama-3.3-70B")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tune", type=int, default=24, help="configurations to tune; 0: none")
    given = parser.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    _measure("model --search", _model_search(given.model), given.rounds)
    if given.tune:
        _measure(f"tune, {given.tune} configurations", _tuning(given.tune), given.rounds)


def _measure(name: str, run: Run, rounds: int) -> None:
    """Print the fastest of each way to run, and ratios."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for jobs in (1, 2):
            found.setdefault(f"{jobs} without Ray", []).append(_seconds(run, jobs, ""))
        for nodes in (1, 2):
            with _cluster(nodes) as address:
                found.setdefault(f"{nodes} with Ray", []).append(_seconds(run, 1, address))
    best = {way: min(seconds) for way, seconds in found.items()}
    for way, seconds in best.items():
        print(f"{name}: {way} {seconds:.1f} s")
    print(f"{name}: two nodes {best['1 with Ray'] / best['2 with Ray']:.2f} times as fast as one")
    two = best["1 without Ray"] / best["2 without Ray"]
    print(f"{name}: two processes without Ray {two:.2f} times as fast as one")
    print(f"{name}: one node takes {best['1 with Ray'] / best['1 without Ray']:.2f} of no Ray")


def _seconds(run: Run, jobs: int, address: str) -> float:
    start = time.perf_counter()
    run(jobs, address)
    return time.perf_counter() - start


@contextlib.contextmanager
def _cluster(nodes: int) -> Iterator[str]:
    """A head without processors, and nodes with one each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head, connect=False)
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        cluster.shutdown()


def _model_search(model: str) -> Run:
    (load,) = loads(1024, 1024, concurrency=(1,), rate=None, requests=None)
    asked = dimensions("tp,dp,dtype,kv-dtype,engine=vllm|sglang,batch=16|64|256")
    machines = [(system(f"8x{name}"), Deployment()) for name in _GPUS]
    space = list(configurations(machines, asked, load))
    return lambda jobs, address: search(model, space, (), jobs=jobs, ray=address)


def _tuning(count: int) -> Run:
    """Compiles anew, in a cache of its own."""

    def run(jobs: int, address: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "product.py"
            cache = f"import os\nos.environ['TRITON_CACHE_DIR'] = {folder!r}\n"
            script.write_text(cache + SCRIPT.format(examples=str(EXAMPLES)))
            settings = TuneSettings(
                devices=(),
                journal="",
                space="wide",
                search="random",
                budget=SearchBudget(count),
                simulate=0,
                jobs=jobs,
            )
            tune(TuneScript(script), select(["gfx942"]), settings, ray=address)

    return run


if __name__ == "__main__":
    main()
