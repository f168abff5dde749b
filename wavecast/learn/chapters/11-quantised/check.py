"""Calls the learner's matmul_w4: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

M, N, K = (5, 40, 256) if small() else (16, 16_384, 8192)
torch.manual_seed(0)
x = torch.randn(M, K, device="cuda", dtype=torch.float16)
packed = torch.randint(0, 256, (N, K // 2), device="cuda", dtype=torch.uint8)
scales = torch.rand(N, K // 64, device="cuda") * 0.1
out = learner().matmul_w4(x, packed, scales)
if small():
    numbers = torch.stack((packed & 15, packed >> 4), -1).reshape(N, K).float() - 8
    weights = (numbers * scales.repeat_interleave(64, 1)).half().float()
    torch.testing.assert_close(out.float(), x.float() @ weights.t(), rtol=1e-2, atol=5e-2)
