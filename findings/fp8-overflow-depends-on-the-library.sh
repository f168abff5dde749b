#!/usr/bin/env bash
# 1000 as float8_e4m3fn is 448, NaN or 256, depending on who converts.
#
# Expected: one answer for one format. OCP's e4m3 has no infinity, so overflow is NaN or the largest number, 448;
#   from memory PyTorch gave NaN.
# Happens: PyTorch saturates, infinity too, but only for e4m3: e5m2 becomes infinite. ml_dtypes (JAX,
#   TensorFlow) gives NaN. Triton compiles to a saturating instruction for both formats on sm_90. Triton's
#   interpreter lets the exponent wrap around to a smaller finite number, and NaN becomes finite too.
# Version: torch 2.13.0 (CPU), ml_dtypes 0.6.0, Triton 3.9.0.
# Seen (1000, inf, NaN): torch 448 448 nan; ml_dtypes nan nan nan; interpreter 256 256 384; sm_90 satfinite.
# Why it matters: a reference in another library, or the interpreter, disagrees with the kernel exactly where a scale
#   is wrong, and 256 for 1000 hides that anything overflowed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0 torch==2.13.0 numpy==2.4.6 ml_dtypes==0.6.0
cat >"$work/convert.py" <<'PYTHON'
import os
import re

import ml_dtypes
import numpy as np
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def convert(x_ptr, y_ptr, NARROW: tl.constexpr):
    offs = tl.arange(0, 4)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs).to(NARROW))


if os.environ.get("TRITON_INTERPRET") == "1":
    x, y = torch.tensor([1000.0, float("inf"), float("nan"), 448.0]), torch.zeros(4, dtype=torch.float8_e4m3fn)
    convert[(1,)](x, y, tl.float8e4nv)
    answers = {
        "torch": x.to(y.dtype).float().tolist(),
        "torch, e5m2": (x * 1000).to(torch.float8_e5m2).float().tolist(),
        "ml_dtypes": x.numpy().astype(ml_dtypes.float8_e4m3fn).astype(np.float32).tolist(),
        "Triton's interpreter": y.float().tolist(),
    }
    for name, values in answers.items():
        print(f"{name:20}", values)
    assert str(answers["torch"]) == "[448.0, 448.0, nan, 448.0]"
    assert str(answers["torch, e5m2"]) == "[inf, inf, nan, inf]"
    assert str(answers["ml_dtypes"]) == "[nan, nan, nan, 448.0]"
    assert str(answers["Triton's interpreter"]) == "[256.0, 256.0, 384.0, 448.0]"
else:
    for narrow, name in ((tl.float8e4nv, "fp8e4nv"), (tl.float8e5, "fp8e5")):
        signature = {"x_ptr": "*fp32", "y_ptr": f"*{name}", "NARROW": "constexpr"}
        kernel = triton.compile(ASTSource(convert, signature, {"NARROW": narrow}), target=GPUTarget("cuda", 90, 32))
        (instruction,) = set(re.findall(r"cvt\.rn\.\w+\.e\dm\dx2\.f32", kernel.asm["ptx"]))
        print("Triton for sm_90    ", instruction)
        assert "satfinite" in instruction
PYTHON
TRITON_INTERPRET=1 "$work/venv/bin/python" "$work/convert.py"
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/convert.py"
echo "as recorded"
