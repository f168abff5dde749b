"""ResNet-50 (He et al., 2015; the stride is in the 3x3 convolution, as in torchvision).

wavecast model examples/models/resnet.py:resnet50 --system mi300x,h200
wavecast model examples/models/resnet.py:resnet50 --train --optimizer momentum
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))
"""Blocks and inner channels of every stage."""


def convolution(channels: int, out: int, taps: int, stride: int = 1) -> nn.Sequential:
    """A convolution without bias and its batch norm."""
    own = nn.Conv2d(channels, out, taps, stride, padding=taps // 2, bias=False)
    return nn.Sequential(own, nn.BatchNorm2d(out))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions around a shortcut: [n, channels, h, w] -> [n, 4 * inner, …]."""

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        self.reduce = convolution(channels, inner, 1)
        self.middle = convolution(inner, inner, 3, stride)
        self.expand = convolution(inner, 4 * inner, 1)
        same = stride == 1 and channels == 4 * inner
        self.shortcut = nn.Identity() if same else convolution(channels, 4 * inner, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.middle(torch.relu(self.reduce(x))))
        return torch.relu(self.expand(inner) + self.shortcut(x))


class ResNet(nn.Module):
    """Images [n, 3, h, w] to scores [n, classes]."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, channels = [], 64
        for number, (count, inner) in enumerate(STAGES):
            for block in range(count):
                blocks.append(Bottleneck(channels, inner, 2 if number and not block else 1))
                channels = 4 * inner
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.blocks(self.stem(images)).mean((2, 3)))


def resnet50() -> tuple[nn.Module, Tensor]:
    """The network and 64 images, in fp16 and channels last."""
    images = torch.empty(64, 3, 224, 224, device="cuda", dtype=torch.float16)
    model = ResNet().to("cuda", torch.float16).to(memory_format=torch.channels_last)
    return model, images.to(memory_format=torch.channels_last)
