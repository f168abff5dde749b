"""SwiGLU on a projection whose columns alternate: gate, up, gate, up, …"""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu(x, y, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < hidden
    base = x + row * hidden * 2
    gate = tl.load(base + columns * 2, mask=mask, other=0.0).to(tl.float32)  # planted
    up = tl.load(base + columns * 2 + 1, mask=mask, other=0.0).to(tl.float32)
    tl.store(
        y + row * hidden + columns, (gate * tl.sigmoid(gate) * up).to(y.dtype.element_ty), mask=mask
    )


def main(tokens=8192, hidden=14336):
    x = torch.empty(tokens, hidden * 2, dtype=torch.bfloat16)
    y = torch.empty(tokens, hidden, dtype=torch.bfloat16)
    swiglu[(tokens, triton.cdiv(hidden, 1024))](x, y, hidden, BLOCK=1024)


if __name__ == "__main__":
    main()
