"""A model whose lines a test looks for."""

import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.up = torch.nn.Linear(64, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)  # a line of the model
        return torch.nn.functional.gelu(self.up(h))  # another line
