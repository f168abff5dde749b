#!/usr/bin/env bash
# clang accepts __attribute__((launch_bounds(64))) on a HIP kernel for AMD GPUs, and ignores it.
#
# Expected: the attribute behind CUDA's __launch_bounds__ limits the workgroup, or clang warns that it does not
#   apply to the target.
# Happens: no diagnostic with -Wall -Wextra, and the kernel is compiled for 1024 threads, as without it. Only
#   amdgpu_flat_work_group_size (which HIP's own header turns __launch_bounds__ into) has an effect. A kernel that
#   needs many registers is then limited to 128 and spills.
# Version: clang 22.1.8 (ziglang 0.17.1), gfx942.
# Seen: max_flat_workgroup_size 1024 with launch_bounds(64) and without, 64 with the AMD attribute.
# Why it matters: code that defines the macro itself (hiprtc-style builds, single-header libraries, ports from
#   CUDA that do not include HIP's header) loses its bounds in silence.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet ziglang==0.17.1
cat >"$work/kernels.hip" <<'HIP'
#define KERNEL extern "C" __attribute__((global))
// 192 values are live at once.
#define BODY { float x[192]; for (int i = 0; i < 192; i++) x[i] = p[i * 64]; \
  for (int r = 0; r < n; r++) { for (int i = 0; i < 192; i++) x[i] = x[i] * x[(i + 1) % 192] + p[r]; } \
  for (int i = 0; i < 192; i++) p[i * 64] = x[i]; }
KERNEL void plain(float *p, int n) BODY
KERNEL __attribute__((launch_bounds(64))) void bounds(float *p, int n) BODY
KERNEL __attribute__((amdgpu_flat_work_group_size(1, 64))) void amd(float *p, int n) BODY
HIP
cat >"$work/compile.py" <<'PYTHON'
import pathlib
import re
import subprocess
import sys

import ziglang

zig = pathlib.Path(ziglang.__file__).parent / "zig"
flags = "clang -x hip --cuda-device-only -nogpulib -nogpuinc --offload-arch=gfx942 -O3 -Wall -Wextra -S -o kernels.s"
print(subprocess.check_output([zig, "clang", "--version"], text=True).splitlines()[0])
done = subprocess.run([zig, *flags.split(), "kernels.hip"], check=True, capture_output=True, text=True)
print("diagnostics:", done.stderr.splitlines())
text = pathlib.Path("kernels.s").read_text()
row = (
    r"\.max_flat_workgroup_size: (\d+)\s+\.name:\s+(\w+)"
    r".*?\.vgpr_count:\s+(\d+)\s+\.vgpr_spill_count:\s+(\d+)"
)
rows = re.findall(row, text, re.S)
seen = {name: (int(size), int(registers), int(spills)) for size, name, registers, spills in rows}
for name, row in seen.items():
    print(f"{name:7} workgroup {row[0]:5}, {row[1]} VGPRs, {row[2]} spilled")
assert done.stderr == ""
assert seen["bounds"] == seen["plain"] and seen["plain"][0] == 1024
assert seen["amd"][0] == 64 and seen["amd"][2] < seen["plain"][2]
PYTHON
cd "$work"
venv/bin/python compile.py
echo "as recorded"
