"""Sizes of a convolution in three spatial dimensions, and memory formats of tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from wavecast.kernels import checks

Triple = tuple[int, int, int]

ACTIVATIONS = ("none", "relu", "silu", "gelu")
"""Functions a convolution can end with (gelu: with erf)."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """A convolution of `batch` images, with sizes of 1 before its `dims` spatial dimensions up to
    three. `size` is that of the input, `out` of the output, `taps` of the filters."""

    dims: int
    batch: int
    channels: int
    filters: int
    groups: int
    size: Triple
    taps: Triple
    out: Triple
    stride: Triple
    padding: Triple
    dilation: Triple

    @property
    def pixels(self) -> int:
        """Output positions of all images."""
        return self.batch * math.prod(self.out)

    @property
    def depthwise(self) -> bool:
        """Whether every group has one input channel."""
        return self.groups == self.channels and self.groups > 1

    @property
    def pointwise(self) -> bool:
        """Whether output positions are input positions: unit filters, no stride, no padding."""
        return self.taps == (1, 1, 1) == self.stride and self.padding == (0, 0, 0)

    @property
    def described(self) -> dict[str, str]:
        """The entries of a problem that all kernels have."""
        sizes = {"filter": self.taps, "stride": self.stride, "dilation": self.dilation}
        return {name: "x".join(map(str, values)) for name, values in sizes.items()}

    def arguments(
        self, x_size: Triple, y_size: Triple, padding: Triple | None = None
    ) -> dict[str, int]:
        """What all kernels take per dimension: sizes of their input and output, padding (this one
        unless given), taps, strides and dilations."""
        arguments = dict(zip("TRS", self.taps, strict=True))
        sizes = {"x": x_size, "y": y_size, "pad": padding or self.padding}
        for name, values in {**sizes, "STRIDE": self.stride, "DILATION": self.dilation}.items():
            arguments |= by_axis(name, values)
        return arguments

    def input_shape(self) -> tuple[int, ...]:
        return (self.batch, self.channels, *self.size[3 - self.dims :])

    def output_shape(self) -> tuple[int, ...]:
        return (self.batch, self.filters, *self.out[3 - self.dims :])

    def weight_shape(self) -> tuple[int, ...]:
        return (self.filters, self.channels // self.groups, *self.taps[3 - self.dims :])


def geometry(
    operator: str, input_shape: Sequence[int], weight_shape: Sequence[int], stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], groups: int,
) -> Geometry:  # fmt: skip
    """The geometry of a convolution. Raises ArgumentError for one that cannot be."""
    dims = len(input_shape) - 2
    checks.require(1 <= dims <= 3, operator, f"{dims} spatial dimensions, not 1, 2 or 3")
    checks.require(
        len(weight_shape) == dims + 2,
        operator,
        f"weight has {len(weight_shape)} dimensions, expected {dims + 2}",
    )
    parameters = (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))
    for name, values, least in parameters:
        checks.require(
            len(values) == dims and min(values) >= least,
            operator,
            f"{name} is {list(values)}, expected {dims} numbers of at least {least}",
        )
    batch, channels = input_shape[:2]
    filters, per_group = weight_shape[:2]
    checks.require(
        groups >= 1 and channels == per_group * groups and filters % groups == 0,
        operator,
        f"{channels} channels and {filters} filters of {per_group} channels in {groups} groups",
    )
    checks.require(min(weight_shape) > 0, operator, f"weight is empty: {tuple(weight_shape)}")
    size, taps = tuple(input_shape[2:]), tuple(weight_shape[2:])
    reach = [(t - 1) * d + 1 for t, d in zip(taps, dilation, strict=True)]
    out = tuple(
        (n + 2 * p - r) // s + 1 for n, p, r, s in zip(size, padding, reach, stride, strict=True)
    )
    checks.require(
        min(size) > 0 and min(out) > 0,
        operator,
        f"filters of {'x'.join(map(str, reach))} are larger than the padded input",
    )
    ones = (_triple(values, 1) for values in (size, taps, out, stride))
    return Geometry(
        *(dims, batch, channels, filters, groups, *ones),
        padding=_triple(padding, 0),
        dilation=_triple(dilation, 1),
    )


def same(operator: str, **tensors: Tensor) -> None:
    """Two tensors lie on one device and have one dtype. Raises ArgumentError."""
    checks.same_device(operator, **tensors)
    (first, a), (second, b) = tensors.items()
    checks.require(a.dtype == b.dtype, operator, f"{first} is {a.dtype}, {second} {b.dtype}")


def is_last(tensor: Tensor) -> bool:
    """Whether channels (dimension 1) are innermost in memory, without gaps."""
    return tensor.movedim(1, -1).is_contiguous()


def keeps_last(tensor: Tensor) -> bool:
    """Whether results in the memory format of `tensor` have channels innermost."""
    return is_last(tensor) and not tensor.is_contiguous()


def empty(shape: Sequence[int], last: bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor [batch, channels, …] with channels innermost in memory, or contiguous."""
    if not last:
        return torch.empty(tuple(shape), dtype=dtype, device=device)
    order = (shape[0], *shape[2:], shape[1])
    return torch.empty(order, dtype=dtype, device=device).movedim(-1, 1)


def to_memory_format(tensor: Tensor, last: bool) -> Tensor:
    """A tensor with channels innermost in memory, or contiguous."""
    if not last:
        return tensor.contiguous()
    return tensor.movedim(1, -1).contiguous().movedim(-1, 1)


def strides(
    name: str, last: bool, channels: int, size: Triple, steps: str = "image plane row pixel channel"
) -> dict[str, int]:
    """Strides of a dense tensor as kernels take them: `<name>_image`, … for each of `steps`."""
    d, h, w = size
    if last:
        values = d * h * w * channels, h * w * channels, w * channels, channels, 1
    else:
        values = channels * d * h * w, h * w, w, 1, d * h * w
    axis_strides: dict[str, int] = dict(
        zip(("image", "plane", "row", "pixel", "channel"), values, strict=True)
    )
    return {f"{name}_{step}": axis_strides[step] for step in steps.split()}


def by_axis(name: str, values: Sequence[int]) -> dict[str, int]:
    """Three numbers as kernels take them: `<name>_d`, `<name>_h` and `<name>_w`, constants with
    capitals."""
    axes = "DHW" if name.isupper() else "dhw"
    return {f"{name}_{axis}": value for axis, value in zip(axes, values, strict=True)}


def _triple(values: Sequence[int], missing: int) -> Triple:
    filled = (*(missing,) * (3 - len(values)), *values)
    return filled[0], filled[1], filled[2]
