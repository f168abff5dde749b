"""Calls the learner's gated: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

n = 5000 if small() else 1 << 26
x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
out = learner().gated(x, y)
torch.testing.assert_close(out, torch.sigmoid(x + y) * x * x)
