"""A transformer of two layers, and what one GPU computes for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, TOKENS = 32, 4, 6


class Layer(nn.Module):
    """Attention and MLP, each with a norm before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        y = self.norm1(x)
        q, k, v = (
            one(y).view(batch, tokens, -1, self.head).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(found.transpose(1, 2).reshape(batch, tokens, -1))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


@dataclass(frozen=True)
class Expected:
    """The model before and after a step of SGD, its input and output, on the host."""

    state: dict[str, Tensor]
    after: dict[str, Tensor]
    x: Tensor
    y: Tensor


def transformer(width: int = WIDTH, heads: int = HEADS) -> nn.Module:
    return nn.Sequential(Layer(width, heads), Layer(width, heads))


def step(model: Any, x: Tensor, rate: float = 0.1) -> Tensor:
    """The output of the model, which is trained once."""
    y = model(x)
    y.square().mean().backward()
    torch.optim.SGD(model.parameters(), lr=rate, foreach=False).step()
    return y.detach()


def expected(width: int = WIDTH, heads: int = HEADS) -> Expected:
    torch.manual_seed(0)
    model = transformer(width, heads)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    x = torch.randn(2, TOKENS, width)
    y = step(model, x)
    return Expected(state, dict(model.state_dict()), x, y)
