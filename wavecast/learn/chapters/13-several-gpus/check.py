"""Calls the learner's all_reduce on four GPUs: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

GPUS, N = 4, 10007 if small() else 16 << 20
torch.manual_seed(0)
make = torch.randn if small() else torch.empty
inputs = [make(N, device=f"cuda:{rank}") for rank in range(GPUS)]
expected = sum(x.cpu() for x in inputs) if small() else None
outputs = learner().all_reduce(inputs)
torch.cuda.synchronize()
if small():
    for rank, out in enumerate(outputs):
        assert out.get_device() == rank, f"the result of GPU {rank} is on {out.device}"
        torch.testing.assert_close(out.cpu(), expected)
