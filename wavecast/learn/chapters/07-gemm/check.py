"""Calls the learner's matmul: compared on odd sizes, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

M, N, K = (300, 270, 136) if small() else (8192, 8192, 8192)
make = torch.randn if small() else torch.empty
a = make(M, K, device="cuda", dtype=torch.bfloat16)
b = make(N, K, device="cuda", dtype=torch.bfloat16)
out = learner().matmul(a, b)
if small():
    torch.testing.assert_close(out.float(), a.float() @ b.float().t(), rtol=2e-2, atol=5e-2)
