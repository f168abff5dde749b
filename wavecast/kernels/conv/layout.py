"""Tensors brought into the order that matrix instructions want, channels innermost, and back."""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.arch import Device
from wavecast.kernels import choice
from wavecast.kernels.conv.geometry import Geometry, is_last
from wavecast.kernels.spec import KernelSpec, Problem, Settings

_FEW_CHANNELS = 16
"""With fewer, the taps of a filter's row are taken together."""
_LINE_BYTES = 128


@triton.jit
def channels_last_kernel(
    x_ptr, y_ptr, pixels, channels, x_batch, x_pixel, x_channel, width, left, x_width,
    PADDED: tl.constexpr, FRAMED: tl.constexpr, PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """[batch, channels, pixels] in any order to [batch, pixels, PADDED], zeros in the padding.
    FRAMED: rows of `x_width` become rows of `width` that begin with `left` zeros."""
    tiles = tl.cdiv(pixels, PIXELS)
    image = tl.program_id(0) // tiles
    offs_p = tl.program_id(0) % tiles * PIXELS + tl.arange(0, PIXELS)
    if WIDE:
        image = image.to(tl.int64)
    offs_c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    pixel_mask = offs_p < pixels
    source = offs_p
    if FRAMED:
        column = offs_p % width - left
        pixel_mask = pixel_mask & (column >= 0) & (column < x_width)
        source = offs_p // width * x_width + column
    x = tl.load(
        x_ptr + image * x_batch + source[:, None] * x_pixel + offs_c[None, :] * x_channel,
        mask=pixel_mask[:, None] & (offs_c < channels)[None, :],
        other=0.0,
    )
    tl.store(
        y_ptr + image * pixels * PADDED + offs_p[:, None] * PADDED + offs_c[None, :],
        x,
        mask=(offs_p < pixels)[:, None] & (offs_c < PADDED)[None, :],
    )


class Rows(NamedTuple):
    """An input of few channels in a form where the taps of a filter's row are adjacent: `x` [batch,
    channels, …] with `channels` innermost and frames of zeros at the sides of its rows, so that
    `depth` elements from where a window begins are there, the first of them its row of taps."""

    x: Tensor
    channels: int
    depth: int

    def pad_filters(self, weight: Tensor) -> Tensor:
        """Filters with zeros up to as many channels and taps."""
        more = self.depth // self.channels - weight.shape[-1]
        between = [0, 0] * (weight.dim() - 3)
        wider = self.channels - weight.shape[1]
        return torch.nn.functional.pad(weight, [0, more, *between, 0, wider])


def channels_last(x: Tensor) -> Tensor:
    """`x` [batch, channels, …] with channels innermost."""
    return x if is_last(x) else _to_channels_last(x, x.shape[1], x.shape[-1], 0)


def channels_first(x: Tensor) -> Tensor:
    """`x` [batch, channels, …], which has channels innermost, contiguous."""
    batch, channels = x.shape[:2]
    swapped = x.movedim(1, -1).reshape(batch, -1, channels)
    return _to_channels_last(swapped, swapped.shape[1], channels, 0).movedim(1, -1).reshape(x.shape)


def in_rows(x: Tensor, g: Geometry) -> Rows | None:
    """The input of `g` as rows of taps; None where a tap's channels are enough for a product."""
    if g.groups > 1 or g.channels >= _FEW_CHANNELS or not g.dilation[2] == 1 < g.taps[2]:
        return None
    channels = triton.next_power_of_2(g.channels)
    depth = triton.cdiv(g.taps[2] * channels, 16) * 16
    width = (g.out[2] - 1) * g.stride[2] + depth // channels
    return Rows(
        _to_channels_last(x, channels, triton.cdiv(width, 16) * 16, g.padding[2]), channels, depth
    )


def _to_channels_last(x: Tensor, padded: int, width: int, pad_left: int) -> Tensor:
    """`x` with channels innermost, zeros up to `padded` of them, and its rows after `pad_left`
    zeros in rows of `width`."""
    batch, channels = x.shape[:2]
    x_width, x_pixels = x.shape[-1], math.prod(x.shape[2:])
    size = (*x.shape[2:-1], width)
    y = torch.empty((batch, *size, padded), dtype=x.dtype, device=x.device)
    last = is_last(x)
    problem = {
        "images": batch,
        "pixels": math.prod(size),
        "channels": padded,
        "bytes": x.element_size(),
        "last": last,
        "framed": width != x_width or pad_left > 0,
    }
    choice.run(
        CHANNELS_LAST, problem, x=x if last else x.contiguous(), y=y, channels=channels,
        x_batch=x_pixels * channels, x_pixel=channels if last else 1,
        x_channel=1 if last else x_pixels, width=width, left=pad_left, x_width=x_width,
        PADDED=padded,
    )  # fmt: skip
    return y.movedim(-1, 1)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    elements = settings["PIXELS"] * settings["CHANNELS"]
    if not 8 <= elements / settings["num_warps"] / 64 <= 64 or elements > 16384:
        return False
    # Both sides of a transposition move whole lines where there are any.
    line = _LINE_BYTES // problem["bytes"]
    return problem["last"] or all(
        settings[block] >= min(line, triton.next_power_of_2(problem[size]))
        for block, size in (("PIXELS", "pixels"), ("CHANNELS", "channels"))
    )


CHANNELS_LAST = KernelSpec.streaming(
    channels_last_kernel,
    grid="images * cdiv(pixels, PIXELS), cdiv(channels, CHANNELS)",
    axes={
        "PIXELS": (32, 64, 128, 256, 512, 1024),
        "CHANNELS": "up_to(next_power_of_2(channels), 32, 64, 128)",
        "num_warps": (2, 4, 8),
    },
    fits=_fits,
    read="images * pixels * channels * bytes",
    written="images * pixels * channels * bytes",
    elements="PIXELS * CHANNELS",
    instructions=4.0,
    rounded=("images", "pixels"),
)
