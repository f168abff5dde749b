"""Writes exported.pt2, a program of torch.export."""

import torch

module = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
torch.export.save(torch.export.export(module, (torch.randn(64, 256),)), "exported.pt2")
