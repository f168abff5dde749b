#!/usr/bin/env bash
# On gfx1250 a Triton cast of one float32 per lane to an 8-bit float reads seven registers that nothing has written.
#
# Expected: a conversion of as many values as there are, as on gfx942 and gfx950 (v_cvt_pk_bf8_f32 of a value with itself).
# Happens: the only conversion takes eight consecutive registers (v_cvt_scalef32_pk8_bf8_f32). With one value per lane it is
#   the first of them; the other seven are whatever the registers contain, and their bytes of the result are not stored.
# Version: Triton 3.9.0.
# Seen: v_cvt_scalef32_pk8_bf8_f32 v[4:5], v[2:9], 1.0 with v2 loaded and v3 to v9 never written; buffer_store_b8 of v4.
# Why it matters: a tool that follows undefined registers must follow bytes here, or it reports every such kernel; and a
#   cast of one value needs eight registers in a row.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0
cat >"$work/cast.py" <<'PYTHON'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def cast(x_ptr, y_ptr):
    at = tl.arange(0, 32)
    tl.store(y_ptr + at, tl.load(x_ptr + at).to(tl.float8e5))


print("triton", triton.__version__)
source = ASTSource(cast, {"x_ptr": "*fp32", "y_ptr": "*fp8e5"})
kernel = triton.compile(source, target=GPUTarget("hip", "gfx1250", 32), options={"num_warps": 1})
lines = [line.split(";")[0].strip() for line in kernel.asm["amdgcn"].splitlines()]
lines = lines[lines.index("cast:") + 1 :] if "cast:" in lines else lines
number = next(i for i, line in enumerate(lines) if line.startswith("v_cvt_scalef32_pk8_bf8_f32"))
first, last = map(int, re.search(r"\], v\[(\d+):(\d+)\]", lines[number]).groups())
written = set()
for line in lines[:number]:
    match = re.match(r"(?:v_|buffer_load|global_load)\S*\s+v(?:(\d+)\b|\[(\d+):(\d+)\])", line)
    if match:
        low, high = (match[1], match[1]) if match[1] else (match[2], match[3])
        written |= set(range(int(low), int(high) + 1))
unwritten = [f"v{n}" for n in range(first, last + 1) if n not in written | {0}]
print(lines[number], "never written:", " ".join(unwritten))
assert last - first == 7
assert len(unwritten) == 7
PYTHON
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/cast.py"
echo "as recorded"
