#!/usr/bin/env bash
# A compiled function whose first call is under FlopCounterMode stays uncompiled for the rest of the process.
#
# Expected: counting is over when the with-block ends. The next call compiles, as a first call without the mode
#   does; modes of functions (TorchFunctionMode, torch.device) do not prevent compilation.
# Happens: Dynamo skips frames under a dispatch mode, and notes the skip for the code object. Later calls run
#   eagerly, with other shapes too, and so does another torch.compile of the same function.
#   torch._dynamo.reset() makes it compile again. There is no error.
# Version: torch 2.13.0. pytorch/pytorch#190286 reports it.
# Seen: graphs compiled after three calls: 1 without the mode, 0 with it in the first call; 1 after a reset.
# Why it matters: "count FLOPs, then time" is the usual order of a benchmark. The time is then that of eager code,
#   beside a table that says torch.compile.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import contextlib

import torch
from torch.utils.flop_counter import FlopCounterMode


def plain(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).relu() + 1


def counted(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).relu() + 1


def on_device(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).relu() + 1


def graphs(function, first: contextlib.AbstractContextManager) -> tuple[int, int]:
    """Graphs compiled in three calls, the first in a context; and by a reset and a fourth call."""
    compiled = []
    call = torch.compile(function, backend=lambda graph, _: compiled.append(graph) or graph, dynamic=False)
    x = torch.ones(4, 4)
    with first:
        call(x)
    call(x)
    call(x)
    before = len(compiled)
    torch._dynamo.reset()
    call(x)
    return before, len(compiled) - before


seen = {
    "nothing": graphs(plain, contextlib.nullcontext()),
    "torch.device": graphs(on_device, torch.device("cpu")),
    "FlopCounterMode": graphs(counted, FlopCounterMode(display=False)),
}
print("torch", torch.__version__)
for name, (calls, reset) in seen.items():
    print(f"first call under {name}: {calls} graphs, {reset} more after a reset")
assert seen["nothing"] == (1, 1) and seen["torch.device"][0] >= 1
assert seen["FlopCounterMode"] == (0, 1)
PYTHON
echo "as recorded"
