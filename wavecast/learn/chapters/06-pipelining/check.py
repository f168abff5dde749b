"""Calls the learner's column_sums: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

rows, columns = (300, 40) if small() else (4096, 2048)
x = torch.randn(rows, columns, device="cuda")
out = learner().column_sums(x)
torch.testing.assert_close(out, x.sum(0), rtol=1e-4, atol=1e-3)
