"""Calls the learner's all_reduce on four GPUs: its results are used and compared on an odd size."""

import torch
import triton
import triton.language as tl

from wavecast.learn.script import learner, small

GPUS, N = 4, 10007 if small() else 16 << 20


@triton.jit
def halve_kernel(x, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) * 0.5, mask=mask)


torch.manual_seed(0)
make = torch.randn if small() else torch.empty
inputs = [make(N, device=f"cuda:{rank}") for rank in range(GPUS)]
expected = sum(x.cpu() for x in inputs) / 2 if small() else None
outputs = learner().all_reduce(inputs)
if small():
    halves = []
    for rank, out in enumerate(outputs):  # the next kernel of each GPU waits for that GPU only
        assert out.get_device() == rank, f"the result of GPU {rank} is on {out.device}"
        halves.append(torch.empty_like(out))
        with torch.cuda.device(rank):
            halve_kernel[(triton.cdiv(N, 1024),)](out, halves[rank], N, BLOCK=1024)
    torch.cuda.synchronize()
    for half in halves:
        torch.testing.assert_close(half.cpu(), expected)
