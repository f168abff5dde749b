#!/usr/bin/env bash
# The profiler's trace has the shapes of a list of 30 tensors, and none of a list of 31.
#
# Expected: with record_shapes=True "Input Dims" has the shapes of all tensors of an operator, or says that
#   some were left out.
# Happens: a list of more than 30 entries is written as []. So are lists of numbers in "Concrete Inputs" ("").
#   An empty list looks the same. The execution trace of the same call has all of them.
# Version: torch 2.13.0.
# Seen: cat of 30 tensors: 30 shapes; cat of 31: [].
# Why it matters: what runs on long lists is just what counts in training: foreach and fused optimisers, gradient
#   clipping, cat of experts. Bytes and times computed from the trace take them for empty calls.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$work"
KINETO_LOG_LEVEL=99 venv/bin/python - <<'PYTHON'
import json

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile


def arguments(call) -> dict[str, dict]:
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        call()
    profiled.export_chrome_trace("trace.json")
    with open("trace.json") as file:
        events = json.load(file)["traceEvents"]
    return {event["name"]: event["args"] for event in events if event.get("cat") == "cpu_op"}


print("torch", torch.__version__)
for count, known in ((30, True), (31, False)):
    tensors = [torch.ones(2, 3) for _ in range(count)]
    joined = arguments(lambda: torch.cat(tensors))["aten::cat"]["Input Dims"][0]
    scaled = arguments(lambda: torch._foreach_mul(tensors, 2.0))["aten::_foreach_mul"]["Input Dims"][0]
    sizes = arguments(lambda: torch.zeros([1] * count))["aten::zeros"]["Concrete Inputs"][0]
    print(f"{count} tensors: cat {len(joined)} shapes, foreach {len(scaled)} shapes; {count} sizes: {sizes[:12]!r}")
    assert len(joined) == len(scaled) == (count if known else 0)
    assert bool(sizes) == known

observer = ExecutionTraceObserver()
observer.register_callback("execution.json")
observer.start()
torch.cat(tensors)
observer.stop()
observer.unregister_callback()
with open("execution.json") as file:
    (node,) = (node for node in json.load(file)["nodes"] if node["name"] == "aten::cat")
print("execution trace: cat", len(node["inputs"]["shapes"][0]), "shapes")
assert len(node["inputs"]["shapes"][0]) == 31
PYTHON
echo "as recorded"
