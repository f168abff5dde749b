#!/usr/bin/env bash
# The code object of a Triton kernel says that it uses no LDS, and so does its occupancy.
#
# Expected: .group_segment_fixed_size of an AMD code object, which llvm-readelf prints and occupancy calculators
#   read, holds the LDS of the kernel.
# Happens: Triton's shared memory is an external symbol of size 0, given at launch. Descriptor, metadata and the
#   comments of the assembly state 0 bytes, and the occupancy in the comments ignores LDS. Only Triton's own
#   metadata has the size; the code object alone cannot tell.
# Version: Triton 3.9.0, gfx942 (64 KiB of LDS per compute unit).
# Seen: 65536 bytes at launch, so one workgroup of 4 waves per unit, one wave per SIMD; the code object states
#   0 bytes, the assembly "Occupancy: 2" (waves per SIMD).
# Why it matters: tools that read the file alone rank such kernels by registers and miss their true limit.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0
cat >"$work/lds.py" <<'PYTHON'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, STEPS: tl.constexpr, K: tl.constexpr):
    offs, offs_k = tl.arange(0, 64), tl.arange(0, K)
    acc = tl.zeros((64, 64), tl.float32)
    for step in range(STEPS):
        a = tl.load(a_ptr + offs[:, None] * STEPS * K + offs_k[None, :] + step * K)
        b = tl.load(b_ptr + (offs_k[:, None] + step * K) * 64 + offs[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs[:, None] * 64 + offs[None, :], acc)


kernel = triton.compile(
    ASTSource(
        matmul,
        {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*fp32", "STEPS": "constexpr", "K": "constexpr"},
        {"STEPS": 16, "K": 256},
        {(number,): [["tt.divisibility", 16]] for number in range(3)},
    ),
    target=GPUTarget("hip", "gfx942", 64),
    options={"num_warps": 4, "num_stages": 2},
)
text, binary = kernel.asm["amdgcn"], kernel.asm["hsaco"]
name = b".group_segment_fixed_size"
(metadata,) = {binary[found.end()] for found in re.finditer(re.escape(name), binary)}  # msgpack: small integer
descriptor = int(re.search(r"\.amdhsa_group_segment_fixed_size (\d+)", text)[1])
occupancy = int(re.search(r"; Occupancy: (\d+)", text)[1])
print("triton", triton.__version__)
print(f"at launch: {kernel.metadata.shared} bytes of LDS, {65536 // kernel.metadata.shared} wave per SIMD")
print(f"code object: descriptor {descriptor} bytes, metadata {metadata} bytes; assembly: occupancy {occupancy}")
assert kernel.metadata.shared == 65536
assert descriptor == 0 and metadata == 0 and occupancy > 1
PYTHON
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/lds.py"
echo "as recorded"
