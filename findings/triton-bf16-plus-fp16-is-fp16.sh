#!/usr/bin/env bash
# In Triton bf16 + fp16 is fp16, and overflows.
#
# Expected: float32, as in PyTorch, JAX and ml_dtypes: neither 16-bit format holds the other's numbers.
# Happens: fp16 wins over bf16 in every operation but division. The bf16 operand is converted first, and beyond
#   65504 it is infinite. fp8 + bf16, in contrast, is float32.
# Version: Triton 3.9.0; the rule is in the language, so for every target.
# Seen: 1e30 (bf16) + 1 (fp16) = inf in fp16; the quotient of both has type fp32.
# Why it matters: one operand of a mixed model (a bf16 residual, an fp16 scale) silently sets the type of the
#   expression to the one with the small range.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0
cat >"$work/add.py" <<'PYTHON'
import re
import struct

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(y_ptr):
    x = tl.full((1,), 1e30, tl.bfloat16)
    z = tl.full((1,), 1.0, tl.float16)
    tl.static_assert((x + z).dtype == tl.float16)
    tl.static_assert((x * z).dtype == tl.float16)
    tl.static_assert(tl.where(x > 0, x, z).dtype == tl.float16)
    tl.static_assert((x / z).dtype == tl.float32)
    tl.static_assert((x + z.to(tl.float8e5)).dtype == tl.float32)
    y = (x + z).to(tl.float32)
    tl.store(y_ptr + tl.arange(0, 1), y.to(tl.int32, bitcast=True))


print("triton", triton.__version__)
kernel = triton.compile(ASTSource(add, {"y_ptr": "*i32"}), target=GPUTarget("hip", "gfx942", 64))
bits = int(re.search(r"store <1 x i32> splat \(i32 (-?\d+)\)", kernel.asm["llir"])[1])
(value,) = struct.unpack("f", struct.pack("i", bits))
print("1e30 (bf16) + 1 (fp16) is fp16:", value)
assert value == float("inf")
PYTHON
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/add.py"
echo "as recorded"
