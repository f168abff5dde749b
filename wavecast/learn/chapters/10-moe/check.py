"""Calls the learner's moe: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

T, E, N, K = (45, 5, 72, 96) if small() else (2048, 32, 2048, 1024)
torch.manual_seed(0)
x = torch.randn(T, K, device="cuda", dtype=torch.bfloat16)
weights = torch.randn(E, N, K, device="cuda", dtype=torch.bfloat16)
experts = torch.randint(0, E, (T,), device="cuda")
out = learner().moe(x, weights, experts)
if small():
    expected = torch.einsum("tnk,tk->tn", weights[experts].float(), x.float())
    torch.testing.assert_close(out.float(), expected, rtol=2e-2, atol=0.2)
