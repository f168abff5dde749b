import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


x = torch.arange(1000, dtype=torch.float32, device="cuda")
y = torch.zeros_like(x)
add[(4,)](x, y, 1000, 256)  # type: ignore[arg-type]
assert torch.equal(y, x + 1)
