"""The activation of a gate, a row of 128 in each program."""

import torch
import triton
import triton.language as tl


@triton.jit  # planted
def silu(x, y, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    value = tl.load(x + row * BLOCK + columns).to(tl.float32)
    tl.store(y + row * BLOCK + columns, (value * tl.sigmoid(value)).to(tl.bfloat16))


def main(rows=1 << 18, columns=128):
    x = torch.empty(rows, columns, dtype=torch.bfloat16)
    y = torch.empty_like(x)
    silu[(rows,)](x, y, BLOCK=columns, num_warps=1)


if __name__ == "__main__":
    main()
