"""Calls the learner's scale_rows: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

rows, columns = (5, 30_000) if small() else (4096, 32_768)
x = torch.randn(rows, columns, device="cuda")
out, scales = learner().scale_rows(x)
torch.testing.assert_close(scales, x.abs().amax(1), rtol=0, atol=0)
torch.testing.assert_close(out, x / x.abs().amax(1, keepdim=True))
