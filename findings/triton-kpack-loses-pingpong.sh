#!/usr/bin/env bash
# On gfx942 `kpack=2` with `matrix_instr_nonkdim=16` takes away the ping-pong schedule of a Triton product.
#
# Expected: `kpack` packs the operands in LDS for wider reads; the schedule of the loop stays, as it does with
#   `matrix_instr_nonkdim=32`.
# Happens: a tile of 256 x 256 x 64 in fp16 with eight warps gets priorities and eight more barriers, which let the
#   halves of the workgroup alternate at the matrix pipe, with kpack=1 and with kpack=2 and nonkdim=32. With kpack=2 and
#   nonkdim=16 it gets none of them, and no word says so.
# Version: Triton 3.9.0 (and 3.6.0); gfx942. On gfx950 kpack is ignored, with a warning, and neither value has the schedule.
# Seen: s_setprio 8, 8, 0, 8 and s_barrier 11, 11, 3, 11 for (kpack, nonkdim) = (1, 16), (1, 32), (2, 16), (2, 32).
# Why it matters: kpack=2 is often set for MI300X. ROCm/tritonBLAS measured it 5 % slower than kpack=1 on MI300X
#   (results/autoresearch/phase4_mfma.json, 8192 to 16384 cubed, nonkdim 16) and gained nothing from it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0
cat >"$work/product.py" <<'PYTHON'
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, depth, stride, TILE: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, STEP)
    x = a + rows[:, None] * stride + k[None, :]
    y = b + k[:, None] * stride + columns[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for _ in range(0, depth, STEP):
        total += tl.dot(tl.load(x), tl.load(y))
        x += STEP
        y += STEP * stride
    tl.store(c + rows[:, None] * stride + columns[None, :], total.to(tl.float16))


types = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "depth": "i32", "stride": "i32"}
source = ASTSource(
    product,
    {**types, "TILE": "constexpr", "STEP": "constexpr"},
    {"TILE": 256, "STEP": 64},
    {(number,): [["tt.divisibility", 16]] for number in range(5)},
)
print("triton", triton.__version__)
seen = {}
for kpack in (1, 2):
    for size in (16, 32):
        options = {"num_warps": 8, "num_stages": 2, "kpack": kpack, "matrix_instr_nonkdim": size}
        text = triton.compile(source, target=GPUTarget("hip", "gfx942", 64), options=options).asm["amdgcn"]
        seen[kpack, size] = text.count("s_setprio"), text.count("s_barrier")
        print(f"kpack={kpack} nonkdim={size}: s_setprio {seen[kpack, size][0]}, s_barrier {seen[kpack, size][1]}")
assert seen == {(1, 16): (8, 11), (1, 32): (8, 11), (2, 16): (0, 3), (2, 32): (8, 11)}
PYTHON
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/product.py"
echo "as recorded"
