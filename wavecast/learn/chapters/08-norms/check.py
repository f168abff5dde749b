"""Calls the learner's layer_norm: compared on an odd size, timed on a large one."""

import torch

from wavecast.learn.script import learner, small

rows, columns = (7, 1000) if small() else (8192, 4096)
x = torch.randn(rows, columns, device="cuda").bfloat16()
weight = torch.randn(columns, device="cuda")
out = learner().layer_norm(x, weight)
expected = torch.nn.functional.layer_norm(x.float(), (columns,), weight).bfloat16()
torch.testing.assert_close(out, expected, rtol=2e-2, atol=2e-2)
