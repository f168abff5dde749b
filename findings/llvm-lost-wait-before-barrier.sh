#!/usr/bin/env bash
# LLVM drops the wait for LDS stores in front of a barrier in a loop.
#
# Expected: a workgroup release fence before s_barrier waits (lgkmcnt) until the stores to LDS are done, in
#   every iteration. The next wave may read them right after the barrier.
# Happens: the code before the loop has waited already, so the wait at the loop header looks redundant when
#   LLVM visits that block first. It erases the wait, and the stores of the previous iteration do not bring
#   it back. Waves pass the barrier with stores under way: a race that no source line shows.
# Version: LLVM 22.1.0 (llvmlite 0.50.0), gfx942 and gfx1100. llvm/llvm-project#220357 is about it.
# Seen: in the loop "barrier, read, wait, barrier, write, branch": one wait, none after the write.
# Why it matters: pipelined loops (Triton with num_stages=2) have this shape. The kernel is right in
#   source and in LLVM IR; only its machine code has the race.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet llvmlite==0.50.0
"$work/venv/bin/python" - <<'PYTHON'
import re

import llvmlite.binding as llvm

# Two waves of a workgroup exchange values through LDS, n times.
KERNEL = """
target triple = "amdgcn-amd-amdhsa"
@lds = internal addrspace(3) global [128 x i32] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
define amdgpu_kernel void @exchange(ptr addrspace(1) noalias %in, ptr addrspace(1) noalias %out, i32 %n) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %partner = xor i32 %t, 64
  %mine = getelementptr i32, ptr addrspace(3) @lds, i32 %t
  %other = getelementptr i32, ptr addrspace(3) @lds, i32 %partner
  %source = getelementptr i32, ptr addrspace(1) %in, i32 %t
  %first = load i32, ptr addrspace(1) %source
  store i32 %first, ptr addrspace(3) %mine
  BARRIER
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  BARRIER
  %read = load i32, ptr addrspace(3) %other
  BARRIER
  %sum = add i32 %read, %i
  store i32 %sum, ptr addrspace(3) %mine
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %target = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %sum, ptr addrspace(1) %target
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="128,128" }
""".replace("BARRIER", """fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire""")

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
print("LLVM", *llvm.llvm_version_info)
for chip in ("gfx942", "gfx1100"):
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=chip, opt=3)
    text = machine.emit_assembly(llvm.parse_assembly(KERNEL))
    loop = text[text.index(".LBB0_1:") : text.index("s_cbranch_scc1")]
    steps = re.findall(r"s_barrier|s_waitcnt|ds_(?:read|load|write|store)", loop)
    print(chip, "loop:", " ".join(steps))
    kinds = [step.replace("load", "read").replace("store", "write") for step in steps]
    assert kinds == ["s_barrier", "ds_read", "s_waitcnt", "s_barrier", "ds_write"], kinds
PYTHON
echo "as recorded"
