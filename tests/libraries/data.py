"""Tensors as library kernels take them: shuffled weights and scales, and what they compute."""

from __future__ import annotations

import torch

FP8 = torch.float8_e4m3fnuz
FP4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_E8M0_BIAS = 127


def shuffled(weight: torch.Tensor) -> torch.Tensor:
    """A weight [N, K bytes] of one-byte elements in AITER's 16x16 layout (`BpreShuffle`)."""
    rows, columns = weight.shape
    blocks = weight.view(torch.uint8).view(-1, rows // 16, 16, columns // 32, 2, 16)
    return blocks.permute(0, 1, 3, 4, 2, 5).contiguous().view(rows, columns).view(weight.dtype)


def shuffled_scales(scale: torch.Tensor) -> torch.Tensor:
    """Scales [rows, K / 32] of uint8 in AITER's layout for matrix instructions of 32x32 values."""
    rows, columns = (-(-scale.shape[0] // 256) * 256, -(-scale.shape[1] // 8) * 8)
    padded = torch.zeros(rows, columns, dtype=torch.uint8)
    padded[: scale.shape[0], : scale.shape[1]] = scale
    blocks = padded.view(rows // 32, 2, 16, columns // 8, 2, 4)
    return blocks.permute(0, 3, 5, 2, 4, 1).contiguous().view(rows, columns)


def packed_fp4(codes: torch.Tensor) -> torch.Tensor:
    """Two codes from 0 to 15 per byte, the even one in the low half."""
    return (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8).contiguous()


def fp4_values(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The values [rows, K] of codes [rows, K] with E8M0 scales [rows, K / 32]."""
    table = torch.tensor([*FP4_VALUES, *(-value for value in FP4_VALUES)])
    return table[codes] * (2.0 ** (scale.float() - _E8M0_BIAS)).repeat_interleave(32, 1)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [batch, queries, heads, head] and log-sum-exp [batch, heads, queries] of attention in
    float32; heads of keys serve groups of heads."""
    group = q.shape[2] // k.shape[2]
    keys, values = (x.float().repeat_interleave(group, 2) for x in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), keys) * q.shape[-1] ** -0.5
    if causal:
        rows, columns = torch.arange(scores.shape[-2]), torch.arange(scores.shape[-1])
        scores = scores.masked_fill(columns > rows[:, None], -torch.inf)
    weights = scores.softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, values), scores.logsumexp(-1)


def row_bytes(tensor: torch.Tensor, dimension: int) -> int:
    """The stride of a dimension in bytes."""
    return tensor.stride(dimension) * tensor.element_size()
