"""Slabs: the positions of some channels at a time, in any layout in which channels or positions are
contiguous. What the kernels of group norm over them, forward and backward, have in common."""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import describe
from wavecast.kernels.describe import Device, Problem, Settings, coefficient
from wavecast.launch import gpu


@triton.jit
def affine(weight_ptr, bias_ptr, channel, mask, scale):
    """(factor, shift) of channels: y = (x - mean) · factor + shift."""
    factor = scale
    if weight_ptr is not None:
        factor *= tl.load(weight_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    shift = tl.zeros_like(factor)
    if bias_ptr is not None:
        shift = tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    return factor, shift


@triton.jit
def last_first(XCDS: tl.constexpr):
    """The number of this program in a second pass, which begins with what the first one ended with:
    each of XCDS dies, to which programs go in turns, finds that in its own L2."""
    pid = tl.program_id(0)
    iteration = pid // XCDS
    iterations = tl.num_programs(0) // XCDS
    return tl.where(iteration < iterations, (iterations - 1 - iteration) * XCDS + pid % XCDS, pid)


@triton.jit
def slab_of(pid, channels, positions, span, CHANNELS: tl.constexpr, WIDE: tl.constexpr):
    """(image, channels, first and last position) of a program: spans of positions, then blocks of
    channels, then images."""
    spans = tl.cdiv(positions, span)
    blocks = tl.cdiv(channels, CHANNELS)
    image = pid // (spans * blocks)
    channel = pid // spans % blocks * CHANNELS + tl.arange(0, CHANNELS)
    first = pid % spans * span
    if WIDE:
        image, channel = image.to(tl.int64), channel.to(tl.int64)
    return image, channel, first, tl.minimum(first + span, positions)


Tensors = Mapping[str, Any]
"""The tensors of a call by the names of the kernels' parameters: x, weight, bias, mean, scale …"""
PARAMETERS = ("weight", "bias")


class Shape:
    """An image tensor as the kernels see it: channels, positions, strides, spans of positions."""

    def __init__(self, x: Tensor, groups: int) -> None:
        self.images, self.channels = x.shape[:2]
        self.groups = groups
        self.width = self.channels // groups
        self.positions = x.numel() // (self.images * self.channels)
        self.last = not x.is_contiguous()
        self.bytes = x.element_size()
        per_image = self.channels if not self.last else triton.cdiv(self.channels, 64)
        target_spans = triton.cdiv(8 * gpu.launching().compute_units, self.images * per_image)
        least = 64 if self.last else 2048
        spans = max(1, min(target_spans, self.positions // least))
        self.span = triton.cdiv(self.positions, spans)
        self.spans = triton.cdiv(self.positions, self.span)
        strides = (1, self.channels) if self.last else (self.positions, 1)
        self.sizes = {
            "width": self.width,
            "channel_stride": strides[0],
            "position_stride": strides[1],
        }

    def joined_at_once(self) -> int:
        """How many channels each program over a slab joins at a time, of those whose groups it
        needs; 0 where reading what all of them left would take longer than half the slab."""
        block = min(64, triton.next_power_of_2(self.channels)) if self.last else 1
        channels = min(self.channels, block + 2 * (self.width - 1))
        if channels * self.spans * 16 > self.span * block * self.bytes:
            return 0
        return min(64, triton.next_power_of_2(channels))

    def problem(self, tensors: Tensors, **flags: Any) -> dict[str, Any]:
        """What configurations depend on."""
        flags["parameters"] = sum(tensors[name] is not None for name in PARAMETERS)
        return self.plain_problem() | flags

    def plain_problem(self) -> dict[str, Any]:
        """What those depend on that take no weight or bias."""
        return {
            "images": self.images,
            "channels": self.channels,
            "groups": self.groups,
            "positions": self.positions,
            "span": self.span,
            "last": self.last,
            "bytes": self.bytes,
        }


def slab_kernel(function: Any, reads: int, writes: int, **fields: Any) -> describe.KernelSpec:
    """A kernel over slabs that reads and writes so many tensors like x."""

    def slowdown(kernel: Any, problem: Problem, settings: Settings, device: Device) -> float:
        lane = kernel.elements / (settings["num_warps"] * device.wave_lanes)
        best = coefficient("ranking", "slab_lane_elements").of(device)
        penalty = coefficient("ranking", "slab_lane_elements_penalty").of(device)
        return 1.0 + penalty * abs(lane / best - 1)

    return describe.KernelSpec.streaming(
        function,
        grid="images * cdiv(positions, span) * cdiv(channels, CHANNELS)",
        axes={  # slabs with the contiguous one of channels and positions in whole cache lines
            "CHANNELS": "(min(64, next_power_of_2(channels)),) if last else (1,)",
            "BLOCK": "up_to(next_power_of_2(span), "
            "*((32, 16, 64, 128) if last else (2048, 1024, 512, 4096)))",
            "num_warps": (4, 2, 8, 1),
        },
        read=f"{reads} * images * channels * positions * bytes",
        written=f"{writes} * images * channels * positions * bytes",
        elements="CHANNELS * BLOCK",
        instructions="8.0 * cdiv(span, BLOCK)",
        live_registers=1.0 + reads,
        slowed=slowdown,
        rounded=("images",),
        **fields,
    )
