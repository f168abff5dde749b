#!/usr/bin/env bash
# Triton's interpreter (TRITON_INTERPRET=1) does arithmetic on bfloat16 with the bits as integers.
#
# Expected: the sum 2.0 for 1.0 + 1.0, as compiled, or an error: the manual says that bfloat16 is not supported
#   there.
# Happens: NumPy has no bfloat16, so a loaded tile is an array of uint16. Addition and multiplication use these
#   numbers, the result goes on as bfloat16, and comparison orders negative numbers above positive ones. No
#   error, no warning. After a cast to float32 the numbers are right.
# Version: Triton 3.9.0, torch 2.13.0, NumPy 2.4.6.
# Seen: 1 + 1 = 1.7014118346046923e+38 (0x3f80 + 0x3f80 = 0x7f00), 1 * 1 = 2
#   (0x3f80 squared ends in 0x4000), maximum(-1, 1) = -1.
# Why it matters: the interpreter is how kernels are debugged without a GPU. Most of them cast first, so one
#   epilogue in bf16 looks like a fault of the kernel.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0 torch==2.13.0 numpy==2.4.6
cat >"$work/add.py" <<'PYTHON'
import torch
import triton
import triton.language as tl


@triton.jit
def arithmetic(x_ptr, y_ptr, z_ptr, CAST: tl.constexpr):
    x, y = tl.load(x_ptr), tl.load(y_ptr)
    if CAST:
        x, y = x.to(tl.float32), y.to(tl.float32)
    tl.store(z_ptr, x + y)
    tl.store(z_ptr + 1, x * y)


@triton.jit
def larger(x_ptr, y_ptr, z_ptr):
    tl.store(z_ptr, tl.maximum(tl.load(x_ptr), tl.load(y_ptr)))


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bfloat16)


one, result = tensor(1), tensor(0, 0)
print("triton", triton.__version__)
for cast, total, product in ((True, 2.0, 1.0), (False, 1.7014118346046923e38, 2.0)):
    arithmetic[(1,)](one, one, result, cast)
    print("cast to float32 first:" if cast else "bfloat16:", "1 + 1 =", result[0].item(), " 1 * 1 =", result[1].item())
    assert result.tolist() == [total, product]
larger[(1,)](tensor(-1), one, result)
print("maximum(-1, 1) =", result[0].item())
assert result[0].item() == -1
PYTHON
TRITON_INTERPRET=1 "$work/venv/bin/python" "$work/add.py"
echo "as recorded"
