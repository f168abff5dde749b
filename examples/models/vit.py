"""A vision transformer, ViT-B/16 (Dosovitskiy et al., 2020).

wavecast model examples/models/vit.py:base --system mi300x,h200 --train --optimizer adamw
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class VisionTransformer(nn.Module):
    """Images [n, 3, 224, 224] to scores [n, 1000]."""

    def __init__(self, hidden: int = 768, heads: int = 12, depth: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, hidden, 16, 16)
        self.position = nn.Parameter(torch.empty(1, 197, hidden))
        self.token = nn.Parameter(torch.empty(1, 1, hidden))
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, 1000)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(images.shape[0], -1, -1), tokens), 1) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Block(nn.Module):
    """Attention and an MLP, each after a norm and around a shortcut."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def base() -> tuple[nn.Module, Tensor]:
    """The network and 64 images, in bf16."""
    model = VisionTransformer().to("cuda", torch.bfloat16)
    return model, torch.empty(64, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
