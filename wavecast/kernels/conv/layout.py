"""Tensors brought into the order that matrix instructions want: channels innermost, padded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.geometry import is_last
from wavecast.kernels.space import Problem, Settings, Space


@triton.jit
def channels_last_kernel(
    x_ptr, y_ptr, pixels, channels, x_batch, x_pixel, x_channel,
    PADDED: tl.constexpr, PIXELS: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """[batch, channels, pixels] in any order to [batch, pixels, PADDED], zeros in the padding."""
    tiles = tl.cdiv(pixels, PIXELS)
    image = tl.program_id(0) // tiles
    pixel = tl.program_id(0) % tiles * PIXELS + tl.arange(0, PIXELS)
    if WIDE:
        image = image.to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = (pixel < pixels)[:, None] & (channel < channels)[None, :]
    x = tl.load(
        x_ptr + image * x_batch + pixel[:, None] * x_pixel + channel[None, :] * x_channel,
        mask=inside,
        other=0.0,
    )
    tl.store(
        y_ptr + image * pixels * PADDED + pixel[:, None] * PADDED + channel[None, :],
        x,
        mask=(pixel < pixels)[:, None] & (channel < PADDED)[None, :],
    )


def channels_last(x: torch.Tensor, padded: int = 0) -> torch.Tensor:
    """`x` [batch, channels, …] with channels innermost and zeros up to `padded` of them."""
    batch, channels = x.shape[:2]
    padded = padded or channels
    if is_last(x) and padded == channels:
        return x
    pixels = math.prod(x.shape[2:])
    y = torch.empty((batch, *x.shape[2:], padded), dtype=x.dtype, device=x.device)
    last = is_last(x)
    given = x if last else x.contiguous()
    problem = {
        "images": batch,
        "pixels": pixels,
        "channels": padded,
        "bytes": x.element_size(),
        "last": last,
    }

    def grid(settings: Settings) -> tuple[int, ...]:
        tiles = triton.cdiv(pixels, settings["PIXELS"])
        return batch * tiles, triton.cdiv(padded, settings["CHANNELS"])

    steps = (pixels * channels, channels, 1) if last else (pixels * channels, 1, pixels)
    arguments = (given, y, pixels, channels, *steps)
    wide = checks.wide(given, y)
    launch(channels_last_kernel, grid, arguments, SPACE, problem, PADDED=padded, WIDE=wide)
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
    return 8 <= elements / settings["num_warps"] / 64 <= 64 and elements <= 16384


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

__all__ = ["SPACE", "channels_last"]
