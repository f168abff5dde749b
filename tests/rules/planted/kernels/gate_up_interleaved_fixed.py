"""SwiGLU on a projection whose columns alternate, loaded as one contiguous block."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu(x, y, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.program_id(1) * BLOCK
    columns = start + tl.arange(0, BLOCK)
    pairs = start * 2 + tl.arange(0, 2 * BLOCK)
    both = tl.load(x + row * hidden * 2 + pairs, mask=pairs < 2 * hidden, other=0.0)
    gate, up = tl.split(tl.reshape(both, (BLOCK, 2)))
    gate = gate.to(tl.float32)
    up = up.to(tl.float32)
    mask = columns < hidden
    tl.store(
        y + row * hidden + columns, (gate * tl.sigmoid(gate) * up).to(y.dtype.element_ty), mask=mask
    )


def main(tokens=8192, hidden=14336):
    x = torch.empty(tokens, hidden * 2, dtype=torch.bfloat16)
    y = torch.empty(tokens, hidden, dtype=torch.bfloat16)
    swiglu[(tokens, triton.cdiv(hidden, 1024))](x, y, hidden, BLOCK=1024)


if __name__ == "__main__":
    main()
