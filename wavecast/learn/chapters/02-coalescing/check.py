"""Calls the learner's transpose: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

rows, columns = (100, 130) if small() else (4096, 4096)
x = torch.randn(rows, columns, device="cuda")
out = learner().transpose(x)
torch.testing.assert_close(out, x.t().contiguous(), rtol=0, atol=0)
