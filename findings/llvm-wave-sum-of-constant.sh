#!/usr/bin/env bash
# LLVM folds the sum of a constant over a wave to the constant.
#
# Expected: llvm.amdgcn.wave.reduce.add of 5 is 5 times the number of active lanes, as it is for a uniform
#   value that LLVM does not know.
# Happens: the code generator replaces the call by 5. With a uniform argument of the kernel it multiplies by the
#   count of EXEC. The same holds for sub and xor.
# Version: LLVM 22.1.0 (llvmlite 0.50.0). llvm/llvm-project#193142 takes the folding out again.
# Seen: constant: "v_mov_b32_e32 v1, 5", no s_mul. Argument: s_bcnt1_i32_b64 of EXEC, then s_mul_i32.
# Why it matters: a count of lanes written as "the sum of one" is 1, and a kernel is right until its
#   argument becomes a compile-time constant.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet llvmlite==0.50.0
"$work/venv/bin/python" - <<'PYTHON'
import llvmlite.binding as llvm

KERNEL = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.wave.reduce.OP(i32, i32 immarg)
define amdgpu_kernel void @total(ptr addrspace(1) %out, i32 %uniform) {
  %sum = call i32 @llvm.amdgcn.wave.reduce.OP(i32 VALUE, i32 0)
  store i32 %sum, ptr addrspace(1) %out
  ret void
}
"""
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
print("LLVM", *llvm.llvm_version_info)


def code(operation: str, value: str) -> list[str]:
    text = KERNEL.replace("OP", operation).replace("VALUE", value)
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx942", opt=3)
    lines = machine.emit_assembly(llvm.parse_assembly(text)).splitlines()
    return [line.strip() for line in lines if line.startswith(("\ts_", "\tv_"))]


for operation in ("add", "sub", "xor"):
    known, unknown = code(operation, "5"), code(operation, "%uniform")
    counts = [line for line in unknown if line.startswith(("s_bcnt1", "s_mul", "s_and"))]
    print(operation, "of 5:", [line for line in known if line.endswith(", 5")], "of an argument:", counts)
    assert any(line.startswith("v_mov_b32") and line.endswith(", 5") for line in known)
    assert not any("bcnt" in line or "s_mul" in line for line in known)
    assert any(line.startswith("s_bcnt1_i32_b64") for line in unknown)
PYTHON
echo "as recorded"
