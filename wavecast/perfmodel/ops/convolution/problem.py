"""Convolution of images or volumes: forward, gradient of the data, gradient of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import ClassVar, Self

from wavecast.arch import Device
from wavecast.errors import MissingFact, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.convolution.algorithms import timings
from wavecast.perfmodel.ops.convolution.geometry import BYTES, ConvolutionBatch
from wavecast.perfmodel.ops.convolution.library import library_kernels
from wavecast.perfmodel.ops.convolution.units import has_matrix
from wavecast.perfmodel.prediction import Prediction, WhatIf

DIRECTIONS = ("forward", "data", "weights")
LAYOUTS = ("nchw", "nhwc")
_OPTIONS = {
    "dtype": "",
    "stride": "1",
    "padding": "0",
    "dilation": "1",
    "groups": "1",
    "direction": "forward",
    "layout": "nchw",
}


@dataclass(frozen=True, slots=True)
class Convolution(Op):
    """One convolution; sizes are those of the forward pass in every direction.

    `n` images of `c` channels, `image` their size in two or three dimensions; `k` output channels,
    `filter` its taps per dimension; `stride`, `padding` and `dilation` per dimension. `direction`
    is `forward`, `data` or `weights`; `layout` `nchw` (channels first) or `nhwc` (last), of any
    rank; fp32 accumulation.
    """

    kind: ClassVar[str] = "conv"
    shape_help: ClassVar[str] = (
        "NxCxHxW,KxRxS (or NxCxDxHxW,KxZxRxS); options stride, padding, dilation (one number or "
        "one per dimension: 2x1), groups, direction (forward, data, weights), layout (nchw, nhwc)"
    )

    n: int
    c: int
    image: tuple[int, ...]
    k: int
    filter: tuple[int, ...]
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    direction: str = "forward"
    dtype: str = "fp32"
    layout: str = "nchw"

    def __post_init__(self) -> None:
        rank = len(self.image)
        sizes = (self.filter, self.stride, self.padding, self.dilation)
        if rank not in (2, 3) or any(len(size) != rank for size in sizes):
            raise UsageError(f"a convolution has 2 or 3 dimensions, the same in all sizes: {self}")
        positive = (self.n, self.c, self.k, self.groups, *self.image, *self.filter, *self.stride)
        if min(*positive, *self.dilation) < 1 or min(self.padding) < 0:
            raise UsageError(f"sizes must be positive: {self}")
        if self.c % self.groups or self.k % self.groups:
            raise UsageError(f"groups must divide both channel counts: {self}")
        for value, choices in (
            (self.direction, DIRECTIONS),
            (self.layout, LAYOUTS),
            (self.dtype, tuple(BYTES)),
        ):
            if value not in choices:
                raise UsageError(f"{value or 'nothing'!r} is none of {', '.join(choices)}")
        if min(self.output) < 1:
            raise UsageError(f"the filter does not fit into the padded image: {self}")

    @property
    def output(self) -> tuple[int, ...]:
        """Size of the output image."""
        return tuple(
            (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
            for size, taps, stride, padding, dilation in zip(
                self.image, self.filter, self.stride, self.padding, self.dilation, strict=True
            )
        )

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """From `NxCxHxW,KxRxS` and the options of `shape_help`. Raises UsageError."""
        for name in options:
            if name not in _OPTIONS:
                raise UsageError(f"conv has no option {name}", hint=cls.shape_help)
        values = {**_OPTIONS, **options}
        if not values["dtype"]:
            raise UsageError("conv needs a dtype", hint=", ".join(BYTES))
        tensor, comma, filter_ = shape.partition(",")
        n, c, *image = _numbers(tensor, shape)
        if not comma or len(image) not in (2, 3):
            raise UsageError(f"{shape!r} is not a shape of a convolution", hint=cls.shape_help)
        k, *taps = _numbers(filter_, shape)
        rank = len(image)
        return cls(
            n,
            c,
            tuple(image),
            k,
            tuple(taps),
            *(_each(values[name], rank) for name in ("stride", "padding", "dilation")),
            groups=_numbers(values["groups"], shape)[0],
            direction=values["direction"],
            dtype=values["dtype"],
            layout=values["layout"],
        )

    def work(self) -> Work:
        """FLOPs of the direct algorithm, every tensor once."""
        element = BYTES[self.dtype]
        source = self.n * self.c * prod(self.image) * element
        result = self.n * self.k * prod(self.output) * element
        taps = self.k * (self.c // self.groups) * prod(self.filter)
        flops = 2.0 * self.n * prod(self.output) * taps
        sizes = {"forward": result, "data": source, "weights": taps * element}
        written = sizes[self.direction]
        read = source + result + taps * element - written
        origin = "derived from the sizes of the convolution"
        return Work({self.dtype: flops}, float(read), float(written), origin, origin)

    def predict(self, device: Device) -> Prediction:
        """The fastest algorithm a library has for the problem on a device.

        Raises MissingFact for devices that are not AMD's (the algorithms are MIOpen's), and for
        problems no algorithm takes.
        """
        if device.vendor != "amd":
            raise MissingFact(f"no convolution library is calibrated for {device.id}")
        chip = Chip.of(device)
        constants = coefficients.values("convolution", device)
        by_algorithm = timings(ConvolutionBatch.of([self]), chip, constants)
        times = {name: float(timing.seconds[0]) for name, timing in by_algorithm.items()}
        if min(times.values(), default=inf) == inf:
            raise MissingFact(f"{device.id} has no known library kernel for {self}")
        best = min(times, key=lambda name: times[name])
        timing = by_algorithm[best]
        bounds = {name: float(part[0]) for name, part in timing.parts.items() if part[0] > 0.0}
        others = {name: t for name, t in times.items() if name != best and t < inf}
        prediction = Prediction(
            device=device.id,
            seconds=times[best],
            low=times[best],
            high=times[best],
            limiter=max(bounds, key=lambda name: bounds[name]),
            fidelity="formula",
            bounds=bounds,
            assumed={
                "algorithm": best,
                **{name: int(value[0]) for name, value in timing.choice.items() if value[0]},
            },
            what_if=tuple(
                WhatIf(f"{name} instead of {best}", time, 1.0 - time / times[best])
                for name, time in sorted(others.items(), key=lambda item: item[1])
            ),
            not_modelled=("FFT", "data that caches keep from one call to the next"),
            notes=_notes(device),
        )
        return with_interval(prediction, self.subject, device)

    def __str__(self) -> str:
        sizes = [(self.n, self.c, *self.image), (self.k, *self.filter)]
        words = ["conv", ",".join("x".join(map(str, size)) for size in sizes), self.dtype]
        for name, plain in (("stride", 1), ("padding", 0), ("dilation", 1)):
            value = getattr(self, name)
            if any(step != plain for step in value):
                words.append(f"{name} {'x'.join(map(str, value))}")
        if self.groups > 1:
            words.append(f"groups {self.groups}")
        return " ".join([*words, self.direction, self.layout])


def _notes(device: Device) -> tuple[str, ...]:
    """What makes predictions for a device less sure than others."""
    note = library_kernels(device.target).note
    if note:
        return (note,)
    if not has_matrix(device):
        return ("matrix instructions of RDNA are left out of kernels but those of BLAS",)
    return ()


def _numbers(text: str, shape: str) -> list[int]:
    try:
        return [int(part) for part in text.split("x")]
    except ValueError:
        raise UsageError(f"{shape!r}: {text!r} are not numbers joined by x") from None


def _each(text: str, rank: int) -> tuple[int, ...]:
    """One number for every dimension, or a number for each."""
    numbers = _numbers(text, text)
    return tuple(numbers * rank if len(numbers) == 1 else numbers)


__all__ = ["DIRECTIONS", "LAYOUTS", "Convolution"]
