#!/usr/bin/env bash
# LLVM 22 gives packed bf16 instructions of gfx1250 a constant whose half they take is zero.
#
# Expected: an inline constant such as 1.0 of a 16-bit operand is that value in 16 bits, in the low half, as for f16:
#   op_sel_hi:[1,0] then adds 1.0 to both elements.
# Happens: constants of bf16 operands are those of float32 (0x3f800000), so 1.0 is in the upper half and the lower one
#   is 0. LLVM 22 selects the lower half for both elements; the LLVM of Triton 3.9.0 selects the upper one.
# Version: LLVM 22.1.0 (llvmlite 0.50.0), Triton 3.9.0 (LLVM 24), gfx1250.
# Source: llvm/llvm-project pull requests 209861 ("must use OPSEL to select the upper 16-bits", July 2026), 183487 and
#   223035.
# Seen: "v_pk_add_bf16 v0, v0, 1.0 op_sel_hi:[1,0]" from LLVM 22, "... 1.0 op_sel:[0,1]" from Triton 3.9.0.
# Why it matters: code compiled for gfx1250 before July 2026 adds 0, multiplies by 0 or clamps at 0 where the source
#   has a constant; it assembles and runs without a word.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet llvmlite==0.50.0 triton==3.9.0
cat >"$work/kernel.py" <<'PYTHON'
import re

import llvmlite.binding as llvm
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FUNCTION = """
target triple = "amdgcn-amd-amdhsa"
define <2 x bfloat> @more(<2 x bfloat> %x) {
  %sum = fadd <2 x bfloat> %x, <bfloat 1.0, bfloat 1.0>
  ret <2 x bfloat> %sum
}
"""


@triton.jit
def more(x, y):
    i = tl.arange(0, 1024)
    tl.store(y + i, tl.load(x + i) + 1)


llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx1250", opt=3)
older = machine.emit_assembly(llvm.parse_assembly(FUNCTION))
source = ASTSource(more, {"x": "*bf16", "y": "*bf16"})
newer = triton.compile(source, target=GPUTarget("hip", "gfx1250", 32)).asm["amdgcn"]
for name, text in (("LLVM " + ".".join(map(str, llvm.llvm_version_info)), older), ("Triton " + triton.__version__, newer)):
    line = next(line.strip() for line in text.splitlines() if "v_pk_add_bf16" in line)
    print(name, line)
    half = re.search(r" 1\.0(.*)", line)[1].strip()
    assert half == ("op_sel_hi:[1,0]" if text is older else "op_sel:[0,1]"), half
PYTHON
TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" -W ignore "$work/kernel.py"
echo "as recorded"
