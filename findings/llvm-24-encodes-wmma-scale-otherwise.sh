#!/usr/bin/env bash
# The first half of v_wmma_scale_* (gfx1250) has a field for a third source, which the instruction does not have.
#
# Expected: an instruction has the same bytes with every LLVM that knows it, so that tables made of one read all objects.
# Happens: LLVM 22 writes register v0 (0x100) into the field, LLVM 24 the constant 0 (0x080). The disassembler of LLVM 22
#   (llvm-mc-22 22.1 of Debian, not run here) takes only its own: the first half prints as v_cndmask or data, and the second
#   half as a product without scales.
# Version: clang 22.1.8 (ziglang 0.17.1), LLVM 24.0.0git of Triton 3.9.0, gfx1250.
# Seen: 01050204 and 01050202 in the second word of the same line; the other words are equal.
# Why it matters: FlyDSL's and Triton's code of gfx1250 is of LLVM 24. A tool that disassembles it with an older LLVM, or
#   compares encodings with the mask of one, loses the scales without an error.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet ziglang==0.17.1 triton==3.9.0
cat >"$work/scale.py" <<'PYTHON'
import pathlib
import subprocess

import ziglang
from triton._C.libtriton import amd, llvm

LINE = "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[40:47], v1, v2\n"
pathlib.Path("scale.s").write_text(LINE)
zig = pathlib.Path(ziglang.__file__).parent / "zig"
flags = "clang -target amdgcn-amd-amdhsa -mcpu=gfx1250 -c -x assembler scale.s -o scale.o"
print(subprocess.check_output([zig, "clang", "--version"], text=True).splitlines()[0])
subprocess.run([zig, *flags.split()], check=True)
llvm.init_targets()
objects = {
    "LLVM 22": pathlib.Path("scale.o").read_bytes(),
    "LLVM 24": amd.assemble_amdgcn(LINE, "amdgcn-amd-amdhsa", "gfx1250", ""),
}
codes = {}
for name, data in objects.items():
    at = data.index(bytes.fromhex("000035cc"))
    codes[name] = [data[at + 4 * n : at + 4 * n + 4].hex() for n in range(4)]
    print(name, *codes[name])
assert codes["LLVM 22"] == ["000035cc", "01050204", "000033cc", "0831a204"]
assert codes["LLVM 24"] == ["000035cc", "01050202", "000033cc", "0831a204"]
PYTHON
cd "$work"
venv/bin/python scale.py
echo "as recorded"
