#!/usr/bin/env bash
# LLVM leaves out the wait states between a matrix instruction and its reader behind a triangle of blocks.
#
# Expected: on gfx90a the result of v_mfma_f32_16x16x16bf16_1k (8 passes) may be read or overwritten 11 wait
#   states after it; the hazard recognizer counts the instructions on every way to the reader and adds s_nop
#   for the shortest.
# Happens: the reader's block has two predecessors, one that computes something else and waits long enough, and
#   the block of the matrix instruction. Where the first is visited first, the second is reached through it and
#   apparently not looked at again, so the short way is left out: two branches and a move are between.
# Version: LLVM 22.1.0 (llvmlite 0.50.0), gfx90a. LLVM IR reduced from an unrolled matrix product of Triton.
# Seen: "v_mfma, s_cbranch_execz, s_branch" in one block, "v_mov v0, v_cmp v2" in the other; no s_nop.
# Why it matters: a hardware hazard: what v_cmp reads is not defined, and no source line or IR shows it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet llvmlite==0.50.0
"$work/venv/bin/python" - <<'PYTHON'
import re

import llvmlite.binding as llvm

PRODUCT = "@llvm.amdgcn.mfma.f32.16x16x16bf16.1k"
KERNEL = f"""
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @product(i1 %odd) #0 {{
start:
  br i1 %odd, label %rest, label %whole
whole:
  %a = tail call <4 x float> {PRODUCT}(<4 x i16> zeroinitializer, <4 x i16> zeroinitializer, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  %half = shufflevector <4 x float> %a, <4 x float> zeroinitializer, <2 x i32> <i32 2, i32 3>
  br label %end
rest:
  %b = tail call <4 x float> {PRODUCT}(<4 x i16> zeroinitializer, <4 x i16> zeroinitializer, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  %c = tail call <4 x float> {PRODUCT}(<4 x i16> zeroinitializer, <4 x i16> zeroinitializer, <4 x float> %b, i32 0, i32 0, i32 0)
  br label %end
end:
  %x = phi <2 x float> [ %half, %whole ], [ zeroinitializer, %rest ]
  %nan = fcmp uno <2 x float> %x, zeroinitializer
  %y = select <2 x i1> %nan, <2 x bfloat> splat (bfloat 0xR3F80), <2 x bfloat> zeroinitializer
  %z = shufflevector <2 x bfloat> %y, <2 x bfloat> zeroinitializer, <8 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  store <8 x bfloat> %z, ptr addrspace(3) null, align 16
  ret void
}}
declare <4 x float> {PRODUCT}(<4 x i16>, <4 x i16>, <4 x float>, i32 immarg, i32 immarg, i32 immarg) #1
attributes #0 = {{ "amdgpu-agpr-alloc"="0" }}
attributes #1 = {{ convergent nounwind willreturn memory(none) }}
"""

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
print("LLVM", *llvm.llvm_version_info)
machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx90a", opt=3)
lines = machine.emit_assembly(llvm.parse_assembly(KERNEL)).splitlines()
code = [line.split(";")[0].strip() for line in lines]
code = [line for line in code if re.match(r"[sv]_|ds_|\.LBB", line)]
first = next(i for i, line in enumerate(code) if line.startswith("v_mfma"))
row = int(re.match(r"v_mfma\S+ v\[(\d+):", code[first])[1])
jump = next(i for i in range(first, len(code)) if code[i].startswith("s_branch"))
target = code.index(code[jump].split()[1] + ":")
way = [line for line in code[first + 1 : jump + 1] + code[target:] if not line.startswith(".LBB")]
reads = next(i for i, line in enumerate(way) if re.search(rf", v{row + 2}\b", line))
for line in [code[first], *way[: reads + 1]]:
    print("   ", line)
waits = sum(1 + int(line.split()[1]) if line.startswith("s_nop") else 1 for line in way[:reads])
print(f"wait states between v_mfma and its reader: {waits}, needed: 11")
assert waits < 11, "mended"
PYTHON
echo "as recorded"
