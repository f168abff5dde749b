"""The sizes of convolutions as arrays, and the matrix product each of them amounts to.

One `ConvolutionBatch` has problems of one direction, dtype, layout and rank; its fields have the
shape (problems, 1), so that they broadcast against rows of candidate configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from wavecast.dtypes import lookup

Array = np.ndarray[Any, Any]

BYTES = {name: lookup(name).bits // 8 for name in ("fp32", "fp16", "bf16", "int8", "fp8")}
"""Bytes of an element by dtype."""


class ConvolutionSizes(Protocol):
    """What a geometry takes from a convolution: sizes of the forward pass."""

    @property
    def n(self) -> int: ...
    @property
    def c(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def image(self) -> tuple[int, ...]: ...
    @property
    def filter(self) -> tuple[int, ...]: ...
    @property
    def output(self) -> tuple[int, ...]: ...
    @property
    def stride(self) -> tuple[int, ...]: ...
    @property
    def padding(self) -> tuple[int, ...]: ...
    @property
    def dilation(self) -> tuple[int, ...]: ...
    @property
    def direction(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def layout(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ConvolutionBatch:
    """Convolutions of one kind. Arrays of shape (problems, 1); sizes are those of forward.

    `c` and `k` are input and output channels of one group; `pixels` and `outputs` the input and
    output positions of an image and channel; `taps` the positions of the filter. `height`, `width`
    and `out_height`, `out_width` are the last two dimensions of the images, `rows` and `columns`
    those of the filter, `step_rows` and `step_columns` the strides along them.
    `steps` is the product of strides, `phases` into how many dense products a data gradient falls
    apart, `pointwise` whether the filter is one tap, unpadded; `strided` whether it has steps.
    """

    direction: str
    dtype: str
    layout: str
    rank: int
    element: int
    n: Array
    groups: Array
    c: Array
    k: Array
    pixels: Array
    outputs: Array
    taps: Array
    steps: Array
    phases: Array
    covered: Array
    height: Array
    width: Array
    out_height: Array
    out_width: Array
    rows: Array
    columns: Array
    step_rows: Array
    step_columns: Array
    dilated: Array
    pointwise: Array

    @staticmethod
    def of(problems: Sequence[ConvolutionSizes]) -> ConvolutionBatch:
        """The geometry of problems that share direction, dtype, layout and rank."""
        first = problems[0]
        table = np.array([_row(problem) for problem in problems], float)
        columns = [table[:, i : i + 1] for i in range(table.shape[1])]
        return ConvolutionBatch(
            first.direction,
            first.dtype,
            first.layout,
            len(first.image),
            BYTES[first.dtype],
            *columns[:-2],
            dilated=columns[-2] > 0,
            pointwise=columns[-1] > 0,
        )

    @property
    def strided(self) -> Array:
        return self.steps > 1

    @property
    def input_bytes(self) -> Array:
        return self.n * self.groups * self.c * self.pixels * self.element

    @property
    def output_bytes(self) -> Array:
        return self.n * self.groups * self.k * self.outputs * self.element

    @property
    def filter_bytes(self) -> Array:
        return self.groups * self.k * self.c * self.taps * self.element

    @property
    def result_bytes(self) -> Array:
        """Bytes of the tensor that is computed."""
        if self.direction == "forward":
            return self.output_bytes
        return self.input_bytes if self.direction == "data" else self.filter_bytes

    @property
    def scattered_bytes(self) -> Array:
        """Bytes of a data gradient whose steps are wider than its filter: holes are filled with
        zeros first, and what lies between them is written a few bytes of every line at a time."""
        if self.direction != "data":
            return np.zeros_like(self.n)
        return np.where(self.covered < 1.0, self.input_bytes, 0.0)

    def product(self) -> tuple[Array, Array, Array, Array]:
        """M, N, K of the matrix product of one group, and how many of them a group has.

        forward: channels out x (images x outputs), over channels in x taps; data: channels in x
        pixels of a phase of the stride, over channels out x taps that reach it; weights: channels
        out x (channels in x taps), over images x outputs.
        """
        ones = np.ones_like(self.n)
        if self.direction == "forward":
            return self.k, self.n * self.outputs, self.c * self.taps, ones
        if self.direction == "weights":
            return self.k, self.c * self.taps, self.n * self.outputs, ones
        dense = np.where(self.pointwise & ~self.strided, self.pixels, self.outputs)
        return self.c, self.n * dense, self.k * np.ceil(self.taps / self.phases), self.phases


def _row(problem: ConvolutionSizes) -> tuple[float, ...]:
    image, filter_, stride = problem.image, problem.filter, problem.stride
    output = problem.output
    pairs = list(zip(filter_, stride, strict=True))
    taps = prod(filter_)
    return (
        problem.n,
        problem.groups,
        problem.c // problem.groups,
        problem.k // problem.groups,
        prod(image),
        prod(output),
        taps,
        prod(stride),
        prod(min(taps_, step) for taps_, step in pairs),
        prod(min(1.0, taps_ / step) for taps_, step in pairs),
        image[-2],
        image[-1],
        output[-2],
        output[-1],
        filter_[-2],
        filter_[-1],
        stride[-2],
        stride[-1],
        max(problem.dilation) > 1,
        taps == 1 and not any(problem.padding),
    )


__all__ = ["BYTES", "Array", "ConvolutionBatch", "ConvolutionSizes"]
