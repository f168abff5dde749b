#!/usr/bin/env bash
# Two threads whose DistributedDataParallel forward passes overlap leave the module of one of them "active" for ever.
#
# Expected: DDP's note of the module in its forward pass is per thread, or at least gone when all passes have ended.
# Happens: it is one class attribute. Each pass saves the old value and restores it. The first pass saves None,
#   the second saves the first's module; the first ends and restores None, the second ends and puts the first's
#   module back. From then on Dynamo believes that it compiles inside of a DDP forward pass.
# Version: torch 2.13.0.
# Seen: _active_ddp_module is the first module; a plain model of 30 linear layers, which DDP never saw,
#   compiles to 3 graphs. After the attribute is cleared it compiles to 1.
# Why it matters: ranks as threads (simulators, tests, inference of two replicas) get split graphs, other dispatch modes
#   and other failures in unrelated torch.compile calls later in the process, depending on timing.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import threading

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
first_began, second_began, first_ended = (threading.Event() for _ in range(3))


class Waiting(torch.nn.Module):
    """Its forward pass reports that it began, and ends when it is told to."""

    def __init__(self, began: threading.Event, end: threading.Event) -> None:
        super().__init__()
        self.weight, self.began, self.end = torch.nn.Parameter(torch.ones(1)), began, end

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.began.set()
        assert self.end.wait(60)
        return x * self.weight


first = DDP(Waiting(first_began, end=second_began))
second = DDP(Waiting(second_began, end=first_ended))


def run_first() -> None:
    first(torch.ones(1))
    first_ended.set()


def run_second() -> None:
    assert first_began.wait(60)
    second(torch.ones(1))


threads = [threading.Thread(target=run) for run in (run_first, run_second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()


def graphs_of_plain_model() -> int:
    graphs = []
    torch._dynamo.reset()
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(30)))
    torch.compile(model, backend=lambda graph, _: graphs.append(graph) or graph)(torch.ones(1, 512))
    return len(graphs)


left, split = DDP._active_ddp_module is first, graphs_of_plain_model()
DDP._active_ddp_module = None
whole = graphs_of_plain_model()
print("torch", torch.__version__)
print("active after both ended: the first module:", left)
print("graphs of a model without DDP:", split, "- after clearing the attribute:", whole)
assert left and split == 3 and whole == 1
dist.destroy_process_group()
PYTHON
echo "as recorded"
