"""Calls the learner's matmul: compared on odd sizes, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

M, N, K = (70, 90, 50) if small() else (2048, 2048, 2048)
a = torch.randn(M, K, device="cuda", dtype=torch.float16)
b = torch.randn(K, N, device="cuda", dtype=torch.float16)
out = learner().matmul(a, b)
torch.testing.assert_close(out, (a.float() @ b.float()).half(), rtol=1e-2, atol=1e-2)
