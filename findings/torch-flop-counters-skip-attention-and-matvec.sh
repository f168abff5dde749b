#!/usr/bin/env bash
# PyTorch's FLOP counters count zero for matrix times vector, LSTM, and attention on a CPU.
#
# Expected: FlopCounterMode counts what does the same work alike: v[None] @ A and A @ v are 2 n^2 operations,
#   and scaled_dot_product_attention is two batched products wherever it runs.
# Happens: only operators in its registry count; others are 0 without a word. aten::mv, addmv, dot,
#   _int_mm, the fused LSTM and the CPU's flash attention are not in it. The profiler (with_flops=True)
#   has its own table, without attention and one-dimensional convolution, but with element-wise add and mul.
# Version: torch 2.13.0 on a CPU.
# Seen (FlopCounterMode, profiler): A @ A 524288, 524288; v[None] @ A 8192, 8192; A @ v 0, 0; attention 0, 0;
#   int8 product 0, 0; LSTM 0, 256; conv1d 5376, 0.
# Why it matters: decoding at batch 1 is matrix times vector, and a "model FLOPs utilisation" from these
#   counters is wrong by whatever part of the model is in such operators.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
KINETO_LOG_LEVEL=99 "$work/venv/bin/python" - <<'PYTHON'
import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

A, v, q = torch.ones(64, 64), torch.ones(64), torch.ones(1, 2, 64, 32)
bytes_, lstm = torch.ones(64, 64, dtype=torch.int8), torch.nn.LSTM(64, 64)
CASES = {
    "A @ A": (lambda: A @ A, 524288, 524288),
    "v[None] @ A": (lambda: v[None] @ A, 8192, 8192),
    "A @ v": (lambda: A @ v, 0, 0),
    "addmv": (lambda: torch.addmv(v, A, v), 0, 0),
    "attention": (lambda: F.scaled_dot_product_attention(q, q, q), 0, 0),
    "int8 product": (lambda: torch._int_mm(bytes_, bytes_), 0, 0),
    "LSTM": (lambda: lstm(torch.ones(3, 1, 64)), 0, 256),
    "conv1d": (lambda: F.conv1d(torch.ones(1, 8, 16), torch.ones(8, 8, 3)), 5376, 0),
    "A * A": (lambda: A * A, 0, 4096),
}
print("torch", torch.__version__)
print(f"{'':14}{'FlopCounterMode':>16}{'profiler':>10}")
for name, (call, *expected) in CASES.items():
    with FlopCounterMode(display=False) as counter:
        call()
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as profiled:
        call()
    seen = [counter.get_total_flops(), sum(event.flops or 0 for event in profiled.key_averages())]
    print(f"{name:14}{seen[0]:16}{seen[1]:10}", flush=True)
    assert seen == expected, (name, seen, expected)
PYTHON
echo "as recorded"
