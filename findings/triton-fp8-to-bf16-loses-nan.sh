#!/usr/bin/env bash
# Triton's conversion of fp8 to bf16 on AMD turns NaN and infinity into ordinary numbers.
#
# Expected: a conversion to a wider format is exact, NaN and infinity included, whatever the target type.
# Happens: fp8 -> fp16 and fp8 -> fp32 keep NaN. fp8 -> bf16 only moves the bits and multiplies by a power of two
#   where the chip has no instruction for it, so that the codes of NaN and infinity continue the finite ones.
# Version: Triton 3.9.0, gfx90a, gfx942 (OCP formats), gfx1100, gfx1201.
# Seen: e4m3 NaN (0x7f) -> 480; e5m2 infinity (0x7c) -> 65536, NaN (0x7f) -> 114688.
# Why it matters: bf16 is the type such caches and weights are widened to. A NaN in an fp8 KV cache comes out as
#   a large finite score, and checks for NaN after the kernel pass.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0
cat >"$work/convert.py" <<'PYTHON'
import math
import re
import struct

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def convert(y_ptr, CODE: tl.constexpr, NARROW: tl.constexpr, WIDE: tl.constexpr):
    x = tl.full((1,), CODE, tl.uint8).to(NARROW, bitcast=True)
    y = x.to(WIDE).to(tl.float32)  # exact
    tl.store(y_ptr + tl.arange(0, 1), y.to(tl.int32, bitcast=True))


def folded(chip: str, lanes: int, code: int, narrow: tl.dtype, wide: tl.dtype) -> float:
    """What LLVM's constant folding makes of Triton's conversion: the value that the kernel stores."""
    source = ASTSource(
        convert,
        {"y_ptr": "*i32", "CODE": "constexpr", "NARROW": "constexpr", "WIDE": "constexpr"},
        {"CODE": code, "NARROW": narrow, "WIDE": wide},
    )
    ir = triton.compile(source, target=GPUTarget("hip", chip, lanes)).asm["llir"]
    bits = int(re.search(r"store <1 x i32> splat \(i32 (-?\d+)\)", ir)[1])
    return struct.unpack("f", struct.pack("i", bits))[0]


CASES = ((tl.float8e4nv, 0x7F, 480.0), (tl.float8e5, 0x7C, 65536.0), (tl.float8e5, 0x7F, 114688.0))
print("triton", triton.__version__)
for chip, lanes in (("gfx90a", 64), ("gfx942", 64), ("gfx1100", 32), ("gfx1201", 32)):
    for narrow, code, bf16 in CASES:
        values = [folded(chip, lanes, code, narrow, wide) for wide in (tl.bfloat16, tl.float16, tl.float32)]
        print(chip, narrow, hex(code), "-> bf16 {}, fp16 {}, fp32 {}".format(*values))
        assert values[0] == bf16
        assert not any(map(math.isfinite, values[1:]))
PYTHON
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/convert.py"
echo "as recorded"
