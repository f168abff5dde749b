#!/usr/bin/env bash
# On gfx1250 s_set_vgpr_msb gives VGPR operands of the following instructions their upper two bits, by position:
# src0, src1, src2, dst. The scales of v_wmma_scale_* are the src0 and src1 of the first half of the instruction.
#
# Expected: the bits of src0 and src1 hold for the scales of A and B too, as for every other VGPR operand.
# Happens: scales ignore the mode. They are always in v0 to v255, while A, B, C and D of the same instruction may be
#   above; the register allocator moves scales down. Code that reads a scale at 256 * bits + number reads another
#   register: products of hand-written fp8 kernels are then wrong by powers of two.
# Version: clang 22.1.8 (ziglang 0.17.1), gfx1250.
# Seen: of 39 scaled products with 680 values live, 28 have A or B above v255 and none has a scale there.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet ziglang==0.17.1
cat >"$work/scales.py" <<'PYTHON'
import pathlib
import re
import subprocess

import ziglang

NAME = "llvm.amdgcn.wmma.scale.f32.16x16x128.f8f6f4.v8f32.v16i32.v16i32"
COUNT = 40
lines = [
    f"declare <8 x float> @{NAME}(i32, <16 x i32>, i32, <16 x i32>, i16, <8 x float>, "
    "i32, i32, i32, i32, i32, i32, i1, i1)",
    'define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q) '
    '"amdgpu-flat-work-group-size"="128,128" {',
]
for i in range(COUNT):
    lines += [
        f"  %g{i} = getelementptr <16 x i32>, ptr addrspace(1) %p, i32 {i}",
        f"  %a{i} = load volatile <16 x i32>, ptr addrspace(1) %g{i}",
        f"  %h{i} = getelementptr i32, ptr addrspace(1) %q, i32 {i + 8}",
        f"  %s{i} = load volatile i32, ptr addrspace(1) %h{i}",
    ]
lines.append("  %c0 = load volatile <8 x float>, ptr addrspace(1) %q")
for i in range(COUNT - 1):
    lines.append(
        f"  %c{i + 1} = call <8 x float> @{NAME}(i32 0, <16 x i32> %a{i}, i32 0, <16 x i32> %a{i + 1}, i16 0, "
        f"<8 x float> %c{i}, i32 0, i32 0, i32 %s{i}, i32 0, i32 0, i32 %s{i + 1}, i1 false, i1 false)"
    )
lines += [f"  store <8 x float> %c{COUNT - 1}, ptr addrspace(1) %q", "  ret void", "}"]
pathlib.Path("scales.ll").write_text("\n".join(lines) + "\n")
zig = pathlib.Path(ziglang.__file__).parent / "zig"
flags = "clang -target amdgcn-amd-amdhsa -mcpu=gfx1250 -nogpulib -O2 -S -x ir scales.ll -o scales.s"
print(subprocess.check_output([zig, "clang", "--version"], text=True).splitlines()[0])
subprocess.run([zig, *flags.split()], check=True, capture_output=True)
text = pathlib.Path("scales.s").read_text()
products = re.findall(r"v_wmma_scale_f32_16x16x128_f8f6f4 (.*)", text)
above, scales_above = 0, 0
for operands in products:
    parts = re.split(r", (?=v)", operands)
    above += any("/*v" in part for part in parts[1:3])
    scales_above += any("/*v" in part for part in parts[4:6])
print(f"{len(products)} products, {above} with A or B above v255, {scales_above} with a scale there")
assert len(products) == COUNT - 1 and above > 0 and scales_above == 0
PYTHON
cd "$work"
venv/bin/python scales.py
echo "as recorded"
