#!/usr/bin/env bash
# PyTorch's execution trace (Chakra's host format) writes numbers with six decimals: an epsilon becomes 0.
#
# Expected: a trace that is made to be replayed holds each number so that reading it gives the number again.
# Happens: doubles are printed as with %f. 1e-12 and 1e-8, the epsilons of BERT's layer norm and of Adam, are
#   0.000000, 2.5e-6 is 0.000003. The profiler's own trace (Kineto) of the same call has 1e-12.
# Version: torch 2.13.0, schema 1.1.1-chakra.0.0.4.
# Seen: layer_norm(eps=1e-12) is recorded with eps 0.0; replayed on a constant row it gives NaN, not 0.
# Why it matters: replayed and simulated kernels get other arguments than the run that was recorded. NaN in a replay
#   looks like a fault of the replayer.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$work"
KINETO_LOG_LEVEL=99 venv/bin/python - <<'PYTHON'
import json

import torch
import torch.nn.functional as F
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

row = torch.full((4,), 3.0)


def recorded(eps: float) -> tuple[float, str]:
    """The epsilon of one layer norm in the execution trace, and in the profiler's trace."""
    observer = ExecutionTraceObserver()
    observer.register_callback("execution.json")
    observer.start()
    F.layer_norm(row, (4,), eps=eps)
    observer.stop()
    observer.unregister_callback()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        F.layer_norm(row, (4,), eps=eps)
    profiled.export_chrome_trace("kineto.json")
    with open("execution.json") as file:
        nodes = json.load(file)["nodes"]
    with open("kineto.json") as file:
        events = json.load(file)["traceEvents"]
    (node,) = (node for node in nodes if node["name"] == "aten::layer_norm")
    (event,) = (event for event in events if event["name"] == "aten::layer_norm")
    return node["inputs"]["values"][4], event["args"]["Concrete Inputs"][4]


print("torch", torch.__version__)
for eps, written in ((1e-12, 0.0), (1e-8, 0.0), (2.5e-6, 0.000003), (1e-5, 0.00001)):
    execution, kineto = recorded(eps)
    print(f"eps {eps}: execution trace {execution}, profiler {kineto}")
    assert execution == written and float(kineto) == eps
replayed = F.layer_norm(row, (4,), eps=recorded(1e-12)[0])
print("a constant row:", F.layer_norm(row, (4,), eps=1e-12).tolist(), "replayed:", replayed.tolist())
assert replayed.isnan().all()
PYTHON
echo "as recorded"
