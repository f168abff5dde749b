"""How much faster a search is on two nodes of Ray than on one, on this machine.

    python -m benchmarks.ray_nodes [--model Llama-3.3-70B] [--rounds 1] [--tune 16]

A node has one processor. `wavecast model --search` and `wavecast tune` run in a running cluster of
one node and of two. Other programs on this machine change wall times, so the speed-up is that of
idle nodes: the processor time of the one node over that of the busier of two. The reference is the
same search in one process without Ray.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wavecast.arch.systems import system
from wavecast.pipeline import select
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, loads
from wavecast.tuning.budget import SearchBudget
from wavecast.tuning.model_search import search
from wavecast.tuning.model_space import configurations, dimensions
from wavecast.tuning.run import tune
from wavecast.tuning.script import TuneScript
from wavecast.tuning.settings import TuneSettings

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPT = """
import sys
sys.path.insert(0, {examples!r})
import torch
from matmul import matmul
a = torch.zeros((1024, 1024), device="cuda", dtype=torch.bfloat16)
matmul(a, a)
"""

_GPUS: Final = ("MI300X", "MI355X", "H200")

Run = Callable[[str], object]
"""A search in one process, or on the cluster at an address."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds of a run: by the clock, and of the processor on each node."""

    wall: float
    nodes: tuple[float, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed-up of searches on two nodes of Ray.")
    parser.add_argument("--model", default="Llama-3.3-70B")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tune", type=int, default=16, help="configurations to tune; 0: none")
    given = parser.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    _measure("model --search", _model_search(given.model), given.rounds)
    if given.tune:
        _measure(f"tune, {given.tune} configurations", _tuning(given.tune), given.rounds)


def _measure(name: str, run: Run, rounds: int) -> None:
    """Print the least processor time of the busiest node of each way to run, and ratios."""
    ways = {
        "without Ray": lambda: _alone(run),
        "one node": lambda: _on_nodes(run, 1),
        "two nodes": lambda: _on_nodes(run, 2),
    }
    best = {}
    for way, taken in ways.items():
        best[way] = min((taken() for _ in range(rounds)), key=lambda one: max(one.nodes))
        nodes = " and ".join(f"{seconds:.1f}" for seconds in best[way].nodes)
        print(f"{name}, {way}: {best[way].wall:.1f} s, {nodes} s of processor", flush=True)
    one, two = max(best["one node"].nodes), max(best["two nodes"].nodes)
    print(f"{name}: two idle nodes are {one / two:.2f} times as fast as one")
    print(f"{name}: a node takes {one / max(best['without Ray'].nodes):.2f} of a run without Ray")


def _alone(run: Run) -> Taken:
    start, before = time.perf_counter(), sum(os.times()[:4])
    run("")
    return Taken(time.perf_counter() - start, (sum(os.times()[:4]) - before,))


def _on_nodes(run: Run, count: int) -> Taken:
    """A run on a cluster: a head without processors, and nodes with one each."""
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head, connect=False)
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(count)]
        roots = [node.all_processes["raylet"][0].process.pid for node in nodes]
        start = time.perf_counter()
        with _watched(roots) as seconds:
            run(str(cluster.address))
            wall = time.perf_counter() - start
        return Taken(wall, tuple(sum(one.values()) for one in seconds.values()))
    finally:
        cluster.shutdown()


@contextlib.contextmanager
def _watched(roots: list[int]) -> Iterator[dict[int, dict[int, float]]]:
    """Processor seconds of the processes that those of `roots` start, looked at every 0.1 s."""
    found: dict[int, dict[int, float]] = {root: {} for root in roots}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            parents, used = {}, {}
            for path in Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError):
                    fields = path.read_text().rpartition(")")[2].split()
                    process = int(path.parent.name)
                    parents[process] = int(fields[1])
                    used[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            for process, seconds in used.items():
                root = parents[process]
                while root in parents and root not in found:
                    root = parents[root]
                if root in found:
                    found[root][process] = seconds

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _model_search(model: str) -> Run:
    (load,) = loads(1024, 1024, concurrency=(1,), rate=None, requests=None)
    asked = dimensions("tp,dp,dtype,kv-dtype,engine=vllm|sglang,batch=16|64|256")
    machines = [(system(f"8x{name}"), Deployment()) for name in _GPUS]
    space = list(configurations(machines, asked, load))
    config = huggingface.load(model)
    return lambda address: search(config, space, (), ray=address)


def _tuning(count: int) -> Run:
    """Compiles anew, in a cache of its own."""

    def run(address: str) -> None:
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
            )
            tune(TuneScript(script), select(["gfx942"]), settings, ray=address)

    return run


if __name__ == "__main__":
    main()
