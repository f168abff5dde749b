"""A diffusion transformer as in FLUX.1: 19 blocks with separate weights for text and image, then
38 with common ones, about 12 B parameters.

    wavecast model examples/models/diffusion.py:step --system mi300x,mi355x,h200
    wavecast model examples/models/diffusion.py:step --engine torch.compile
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HIDDEN, HEADS, HEAD = 3072, 24, 128


def modulated(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Layer norm without weights, scaled and shifted per sample."""
    return F.layer_norm(x, (HIDDEN,)) * (1 + scale[:, None]) + shift[:, None]


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary positions of [n, heads, tokens, head]."""
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    pair = (even * cosine - odd * sine, even * sine + odd * cosine)
    return torch.stack(pair, -1).flatten(-2)


class Attention(nn.Module):
    """Queries and keys with RMS norm and rotary positions."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_q, self.norm_k = nn.RMSNorm(HEAD), nn.RMSNorm(HEAD)

    def forward(self, qkv: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        q, k, v = qkv.unflatten(-1, (3, HEADS, HEAD)).permute(2, 0, 3, 1, 4)
        q, k = rotated(self.norm_q(q), cosine, sine), rotated(self.norm_k(k), cosine, sine)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)


class Stream(nn.Module):
    """The weights of text or image in a double block."""

    def __init__(self) -> None:
        super().__init__()
        self.modulation = nn.Linear(HIDDEN, 6 * HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def finish(self, x: Tensor, mixed: Tensor, parts: tuple[Tensor, ...]) -> Tensor:
        _, _, gate, scale, shift, second = parts
        x = x + gate[:, None] * self.out(mixed)
        inner = F.gelu(self.up(modulated(x, scale, shift)), approximate="tanh")
        return x + second[:, None] * self.down(inner)


class DoubleBlock(nn.Module):
    """Text and image have their own weights and a common attention."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.text, self.attention = Stream(), Stream(), Attention()

    def forward(
        self, image: Tensor, text: Tensor, time: Tensor, cosine: Tensor, sine: Tensor
    ) -> tuple[Tensor, Tensor]:
        parts = [one.modulation(F.silu(time)).chunk(6, -1) for one in (self.text, self.image)]
        qkv = [
            one.qkv(modulated(x, part[0], part[1]))
            for one, x, part in zip((self.text, self.image), (text, image), parts, strict=True)
        ]
        mixed = self.attention(torch.cat(qkv, 1), cosine, sine)
        of_text, of_image = mixed.split((text.shape[1], image.shape[1]), 1)
        return (
            self.image.finish(image, of_image, parts[1]),
            self.text.finish(text, of_text, parts[0]),
        )


class SingleBlock(nn.Module):
    """Attention and MLP at once, over text and image."""

    def __init__(self) -> None:
        super().__init__()
        self.modulation, self.attention = nn.Linear(HIDDEN, 3 * HIDDEN), Attention()
        self.inner = nn.Linear(HIDDEN, 7 * HIDDEN)
        self.out = nn.Linear(5 * HIDDEN, HIDDEN)

    def forward(self, x: Tensor, time: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        scale, shift, gate = self.modulation(F.silu(time)).chunk(3, -1)
        qkv, up = self.inner(modulated(x, scale, shift)).split((3 * HIDDEN, 4 * HIDDEN), -1)
        mixed = self.attention(qkv, cosine, sine)
        return x + gate[:, None] * self.out(torch.cat((mixed, F.gelu(up, approximate="tanh")), -1))


class DiffusionTransformer(nn.Module):
    """One denoising step: image tokens [n, tokens, 64], text [n, words, 4096], time [n, 256]."""

    def __init__(self, double: int = 19, single: int = 38) -> None:
        super().__init__()
        self.image_in, self.text_in = nn.Linear(64, HIDDEN), nn.Linear(4096, HIDDEN)
        self.time_in = nn.Sequential(nn.Linear(256, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN))
        self.double_blocks = nn.ModuleList(DoubleBlock() for _ in range(double))
        self.single_blocks = nn.ModuleList(SingleBlock() for _ in range(single))
        self.out = nn.Linear(HIDDEN, 64)

    def forward(
        self, image: Tensor, text: Tensor, time: Tensor, cosine: Tensor, sine: Tensor
    ) -> Tensor:
        image, text, time = self.image_in(image), self.text_in(text), self.time_in(time)
        for block in self.double_blocks:
            image, text = block(image, text, time, cosine, sine)
        x = torch.cat((text, image), 1)
        for block in self.single_blocks:
            x = block(x, time, cosine, sine)
        return self.out(F.layer_norm(x[:, text.shape[1] :], (HIDDEN,)))


def step() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A step of one image of 1024x1024 pixels (4096 tokens) with 512 tokens of text, in bf16."""
    model = DiffusionTransformer().to("cuda", torch.bfloat16).eval()
    sizes = ((1, 4096, 64), (1, 512, 4096), (1, 256), (1, 1, 4608, 64), (1, 1, 4608, 64))
    return model, tuple(torch.empty(size, device="cuda", dtype=torch.bfloat16) for size in sizes)
