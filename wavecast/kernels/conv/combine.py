"""Sums of the parts of split reductions in a fixed order, with bias and activation."""

# pyright: reportGeneralTypeIssues=false

import triton
import triton.language as tl
from torch import Tensor

from wavecast.arch import Device
from wavecast.kernels import choice
from wavecast.kernels.pointwise.functions import sigmoid
from wavecast.kernels.spec import KernelSpec
from wavecast.perfmodel.ranking import SplitSums


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """An activation function by its name, in float32."""
    if ACTIVATION == "relu":
        x = tl.where(x < 0, 0.0, x)  # keeps NaN
    elif ACTIVATION == "silu":
        x = x * sigmoid(x)
    elif ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    return x


@triton.jit
def combine_splits_kernel(
    part_ptr, bias_ptr, y_ptr, rest_ptr, count, first_count, splits, channels,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, AHEAD: tl.constexpr, BLOCK: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """`part_ptr` holds `splits` times `count` elements, channels innermost; AHEAD of these parts
    are on their way at once. The first `first_count` sums go to `y_ptr`, others to `rest_ptr`."""
    start = tl.program_id(0) * BLOCK
    if WIDE:
        start = start.to(tl.int64)
        count = count.to(tl.int64)
    offs = start + tl.arange(0, BLOCK)
    mask = offs < count
    acc = tl.zeros((BLOCK,), tl.float32)
    for split in range(0, splits, AHEAD):
        for i in tl.static_range(AHEAD):
            part_mask = mask & (split + i < splits)
            acc += tl.load(part_ptr + (split + i) * count + offs, mask=part_mask, other=0.0)
    if BIAS:
        bias = tl.load(bias_ptr + offs % channels, mask=mask, other=0.0)
        acc += bias.to(tl.float32)
    acc = activated(acc, ACTIVATION)
    if rest_ptr is not None:
        rest = acc.to(rest_ptr.dtype.element_ty)
        tl.store(rest_ptr + (offs - first_count), rest, mask=mask & (offs >= first_count))
        mask &= offs < first_count
    tl.store(y_ptr + offs, acc.to(y_ptr.dtype.element_ty), mask=mask)


def combine(
    parts: Tensor, bias: Tensor | None, y: Tensor, activation: str, rest: Tensor | None = None
) -> None:
    """Write the sums of `parts` [splits, images · pixels · channels] to `y` [images, channels, …],
    dense with channels innermost; those of the elements that `parts` has beyond these to `rest`."""
    splits, count = parts.shape
    problem = {"count": count, "splits": splits, "bytes": y.element_size()}
    problem |= {"bias": bias is not None, "activation": activation}
    choice.run(
        COMBINE, problem, part=parts, bias=bias, y=y, rest=rest, first_count=y.numel(),
        channels=y.shape[1], AHEAD=min(8, triton.next_power_of_2(splits)),
    )  # fmt: skip


def split_sums(count: int, splits: int, device: Device) -> SplitSums:
    """What writing `count` sums in `splits` parts and adding them up needs."""
    problem = {"count": count, "splits": splits, "bytes": 2}
    blocks = ({"BLOCK": block} for block in (256, 512, 1024))
    kernels = tuple(COMBINE.demand(problem, settings, device) for settings in blocks)
    return SplitSums(count=count, splits=splits, kernels=kernels)


COMBINE = KernelSpec.streaming(
    combine_splits_kernel,
    grid="cdiv(count, BLOCK)",
    axes={"BLOCK": (256, 512, 1024, 2048), "num_warps": (1, 2, 4)},
    fits="BLOCK >= 128 * num_warps",
    read="4.0 * count * splits",
    written="count * bytes",
    elements="BLOCK",
    instructions="2.0 * splits + 8.0",
    live_registers=3.0,
    rounded=("count",),
)
