"""Tensors brought into the order that matrix instructions want, channels innermost, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.geometry import Geometry, is_last
from wavecast.kernels.space import Problem, Settings, Space

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
    pixel = tl.program_id(0) % tiles * PIXELS + tl.arange(0, PIXELS)
    if WIDE:
        image = image.to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = pixel < pixels
    source = pixel
    if FRAMED:
        column = pixel % width - left
        known = known & (column >= 0) & (column < x_width)
        source = pixel // width * x_width + column
    x = tl.load(
        x_ptr + image * x_batch + source[:, None] * x_pixel + channel[None, :] * x_channel,
        mask=known[:, None] & (channel < channels)[None, :],
        other=0.0,
    )
    tl.store(
        y_ptr + image * pixels * PADDED + pixel[:, None] * PADDED + channel[None, :],
        x,
        mask=(pixel < pixels)[:, None] & (channel < PADDED)[None, :],
    )


class Rows(NamedTuple):
    """An input of few channels in a form where the taps of a filter's row are adjacent: `x` [batch,
    channels, …] with `channels` innermost and frames of zeros at the sides of its rows, so that
    `depth` elements from where a window begins are there, the first of them its row of taps."""

    x: torch.Tensor
    channels: int
    depth: int

    def filled(self, weight: torch.Tensor) -> torch.Tensor:
        """Filters with zeros up to as many channels and taps."""
        more = self.depth // self.channels - weight.shape[-1]
        between = [0, 0] * (weight.dim() - 3)
        wider = self.channels - weight.shape[1]
        return torch.nn.functional.pad(weight, [0, more, *between, 0, wider])


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """`x` [batch, channels, …] with channels innermost."""
    return x if is_last(x) else _moved(x, x.shape[1], x.shape[-1], 0)


def channels_first(x: torch.Tensor) -> torch.Tensor:
    """`x` [batch, channels, …], which has channels innermost, contiguous."""
    batch, channels = x.shape[:2]
    swapped = x.movedim(1, -1).reshape(batch, -1, channels)
    return _moved(swapped, swapped.shape[1], channels, 0).movedim(1, -1).reshape(x.shape)


def in_rows(x: torch.Tensor, g: Geometry) -> Rows | None:
    """The input of `g` as rows of taps; None where a tap's channels are enough for a product."""
    if g.groups > 1 or g.channels >= _FEW_CHANNELS or not g.dilation[2] == 1 < g.taps[2]:
        return None
    channels = triton.next_power_of_2(g.channels)
    depth = triton.cdiv(g.taps[2] * channels, 16) * 16
    width = (g.out[2] - 1) * g.stride[2] + depth // channels
    return Rows(_moved(x, channels, triton.cdiv(width, 16) * 16, g.padding[2]), channels, depth)


def _moved(x: torch.Tensor, padded: int, width: int, left: int) -> torch.Tensor:
    """`x` with channels innermost, zeros up to `padded` of them, and its rows after `left` zeros in
    rows of `width`."""
    batch, channels = x.shape[:2]
    x_width = x.shape[-1]
    framed = width != x_width or left > 0
    size = (*x.shape[2:-1], width)
    pixels = math.prod(size)
    y = torch.empty((batch, *size, padded), dtype=x.dtype, device=x.device)
    last = is_last(x)
    given = x if last else x.contiguous()
    problem = {
        "images": batch,
        "pixels": pixels,
        "channels": padded,
        "bytes": x.element_size(),
        "last": last,
        "framed": framed,
    }

    def grid(settings: Settings) -> tuple[int, ...]:
        tiles = triton.cdiv(pixels, settings["PIXELS"])
        return batch * tiles, triton.cdiv(padded, settings["CHANNELS"])

    held = math.prod(x.shape[2:])
    steps = (held * channels, channels, 1) if last else (held * channels, 1, held)
    arguments = (given, y, pixels, channels, *steps, width, left, x_width)
    flags = {"PADDED": padded, "FRAMED": framed, "WIDE": checks.wide(given, y)}
    launch(channels_last_kernel, grid, arguments, SPACE, problem, **flags)
    return y.movedim(-1, 1)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    wide = triton.next_power_of_2(problem["channels"])
    channels = tuple(n for n in (32, 64, 128) if n <= wide) or (wide,)
    return {
        "PIXELS": (32, 64, 128, 256, 512, 1024),
        "CHANNELS": channels,
        "num_warps": (2, 4, 8),
        "num_stages": (1,),
    }


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


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    pixels, channels = settings["PIXELS"], settings["CHANNELS"]
    size = problem["images"] * problem["pixels"] * problem["channels"] * problem["bytes"]
    down, across = (
        triton.cdiv(problem["pixels"], pixels),
        triton.cdiv(problem["channels"], channels),
    )
    return estimates.streaming(
        device,
        settings,
        workgroups=problem["images"] * down * across,
        read=size,
        written=size,
        elements=pixels * channels,
        operations=4.0,
    )


SPACE = Space(
    kernel="channels_last_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("images", "pixels"),
)

__all__ = ["SPACE", "Rows", "channels_first", "channels_last", "in_rows"]
