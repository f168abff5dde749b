"""A kernel of an operator's call, and the operations for calls that no predictor knows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from wavecast.arch import Device
from wavecast.errors import Unpredictable
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.ops.base import Op, UnstatedOp
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.prediction import Prediction

_BELOW, _ABOVE = 0.7, 2.0
"""Ends of the interval of a kernel that is priced by its bytes, over its time (assumed)."""


@dataclass(frozen=True, slots=True)
class KernelPart:
    """One kernel of a call: `op`, or where its predictor lacks a fact of the device the kernels
    `instead`, for the reason `why`."""

    name: str
    op: Op
    instead: tuple[KernelPart, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class SameBytes(UnstatedOp):
    """A kernel that moves `read` and `written` bytes, predicted as an element-wise copy of as many.

    For kernels of the operator `name` that memory bounds and no predictor knows.
    """

    kind: ClassVar[str] = "same bytes"
    shape_help: ClassVar[str] = "see wavecast model"
    predicted_by: ClassVar[str] = "wavecast model predicts whole models"

    name: str
    read: float
    written: float

    def work(self) -> Work:
        origin = "derived from the sizes of the tensors"
        return Work({}, self.read, self.written, "not counted", origin)

    def predict(self, device: Device) -> Prediction:
        """The time of the copy. Raises MissingFact as element-wise operations do."""
        elements = max(1, math.ceil((self.read + self.written) / 8))
        prediction = Elementwise.of("copy", (elements,), "fp32").predict(device)
        return replace(
            prediction,
            low=min(prediction.low, _BELOW * prediction.seconds),
            high=max(prediction.high, _ABOVE * prediction.seconds),
            assumed={"kernel": "a copy of as many bytes"},
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.read:,.0f} bytes read, {self.written:,.0f} written"


@dataclass(frozen=True, slots=True)
class GeneratedKernel(UnstatedOp):
    """A kernel that a compiler generated, predicted from its machine code: `flops` by dtype, and
    its bytes."""

    kind: ClassVar[str] = "generated code"
    shape_help: ClassVar[str] = "see wavecast model"
    predicted_by: ClassVar[str] = "wavecast explain predicts scripts"

    name: str
    flops: tuple[tuple[str, float], ...]
    read: float
    written: float

    def work(self) -> Work:
        return Work(dict(self.flops), self.read, self.written, "counted", "sizes of the tensors")

    def predict(self, device: Device) -> Prediction:
        """Raises Unpredictable: only a bound is known without the code."""
        del device
        raise Unpredictable(f"{self.name} has no prediction from its code")

    def __str__(self) -> str:
        return f"{self.read + self.written:,.0f} bytes of its arguments"


@dataclass(frozen=True, slots=True)
class UnknownOperator(UnstatedOp):
    """A call whose kernels are not known: `flops` (None: not known) of `dtype`, and its bytes."""

    kind: ClassVar[str] = "unknown"
    shape_help: ClassVar[str] = "see wavecast model"
    predicted_by: ClassVar[str] = "wavecast model predicts whole models"

    name: str
    dtype: str
    flops: float | None
    read: float
    written: float

    def work(self) -> Work:
        flops = {} if not self.flops else {self.dtype: self.flops}
        source = "not known, taken as none" if self.flops is None else "counted by PyTorch"
        origin = "derived from the sizes of the tensors"
        return Work(flops, self.read, self.written, source, origin)

    def predict(self, device: Device) -> Prediction:
        """Raises Unpredictable: only a bound of its time is known."""
        del device
        missing = ", FLOPs unknown" if self.flops is None else ""
        raise Unpredictable(f"no predictor knows {self.name}{missing}")

    def __str__(self) -> str:
        return f"{self.name}: {self.read:,.0f} bytes read, {self.written:,.0f} written"


__all__ = ["GeneratedKernel", "KernelPart", "SameBytes", "UnknownOperator"]
