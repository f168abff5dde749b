#!/usr/bin/env bash
# kpack=2 with a K of 16 makes Triton halve the accumulator of tl.dot in every step.
#
# Expected: kpack is a layout hint of the AMD backend (how many elements a lane reads from LDS at once). It
#   changes speed, never the result.
# Happens: with K = 16 each element of K is in two groups of lanes. Triton issues the matrix instruction twice and
#   multiplies the sum by 0.5, the accumulator of earlier steps included: of ones, steps give 16, 24, 28, not
#   16, 32, 48. No warning.
# Version: Triton 3.7.1, gfx942. Triton 3.8 has mended it (triton-lang/triton#10290).
# Seen: kpack 1: 2 matrix instructions for 2 steps, no fmul. kpack 2: 4, each pair followed by products by 0.5.
# Why it matters: tuned tables for MI300X set kpack=2; a small K (int4 groups, short heads) is then wrong
#   and looks like a bad scale.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.7.1
cat >"$work/dot.py" <<'PYTHON'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def products(x_ptr, w_ptr, y_ptr, STEPS: tl.constexpr):
    offs = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    for _ in range(STEPS):
        acc = tl.dot(tl.load(x_ptr + offs), tl.load(w_ptr + offs), acc)
    tl.store(y_ptr + offs, acc)


signature = {"x_ptr": "*bf16", "w_ptr": "*bf16", "y_ptr": "*fp32", "STEPS": "constexpr"}
print("triton", triton.__version__)
seen = {}
for kpack in (1, 2):
    kernel = triton.compile(
        ASTSource(products, signature, {"STEPS": 2}),
        target=GPUTarget("hip", "gfx942", 64),
        options={"num_warps": 1, "kpack": kpack, "matrix_instr_nonkdim": 16},
    )
    ir = kernel.asm["llir"]
    matrix = re.findall(r"call <4 x float> @llvm\.amdgcn\.mfma", ir)
    halvings = re.findall(r"fmul .*5\.000000e-01", ir)
    seen[kpack] = len(matrix), len(halvings)
    print(f"kpack={kpack}: {len(matrix)} matrix instructions, {len(halvings)} products by 0.5")
assert seen[1] == (2, 0), seen
assert seen[2][0] == 4 and seen[2][1] > 0, seen
PYTHON
TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/dot.py"
echo "as recorded"
