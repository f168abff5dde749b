"""Calls the learner's attention: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

heads, N = (2, 150) if small() else (32, 4096)
make = torch.randn if small() else torch.empty
q, k, v = (make(heads, N, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
out = learner().attention(q, k, v)
if small():
    expected = torch.softmax(q.float() @ k.float().mT / 8, -1) @ v.float()
    torch.testing.assert_close(out.float(), expected, rtol=3e-2, atol=3e-2)
