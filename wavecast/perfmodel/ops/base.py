"""An operation with sizes: what it computes, and the best time a good library reaches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from wavecast.arch import Device
from wavecast.errors import MissingFact, UsageError
from wavecast.perfmodel.bounds import MemoryFloor, Roofline, Work
from wavecast.perfmodel.distance import PredictionSubject, sizes_of
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.roofline import roofline


class Op(ABC):
    """One problem. Subclasses are frozen dataclasses, hashable, whose fields are its sizes."""

    kind: ClassVar[str]
    """The name on the command line: `gemm`."""
    shape_help: ClassVar[str]
    """What `--shape` means: `MxNxK`, and the options the kind takes."""

    executes_code: ClassVar[bool] = False
    """Whether `predict` executes machine code, which leaves arrays and translations in memory."""

    @property
    def op_class(self) -> str:
        """The class that errors are counted by: the kind, or a part of it."""
        return self.kind

    @property
    def subject(self) -> PredictionSubject:
        """What a prediction is of, for its interval: `library`, `timing` and `dtype` are the
        attributes of these names, the sizes FLOPs and bytes.

        Raises MissingFact where the op has no known work.
        """
        library, timing, dtype = (
            str(getattr(self, name, "")) for name in ("library", "timing", "dtype")
        )
        timing_name = timing.partition(",")[0].removeprefix("kernel")
        source = " ".join(filter(None, (library, timing_name)))
        return PredictionSubject(self.op_class, source, dtype, sizes_of(self.work()))

    @classmethod
    @abstractmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """From `--shape` and the other options by name (`dtype`, `causal`, …).

        Raises UsageError for a shape or an option the op does not have, and for a missing one that
        has no natural default.
        """

    @abstractmethod
    def work(self) -> Work:
        """Useful FLOPs by dtype and the least bytes."""

    def memory_floor(self, device: Device) -> MemoryFloor | None:
        """The least time of its bytes, where that is not bytes over the bandwidth that all kernels
        sustain. Raises MissingFact where a number that matters is not known for the device."""
        del device
        return None

    def roofline(self, device: Device) -> Roofline:
        """Its roofline, which no prediction of it is below."""
        try:
            least = self.memory_floor(device)
        except MissingFact:
            least = None
        return roofline(self.work(), device, least)

    @abstractmethod
    def predict(self, device: Device) -> Prediction:
        """The best time a good library reaches on a device; `with_interval` gives its ends.

        Raises MissingFact where a number that matters is not known for the device.
        """

    @abstractmethod
    def __str__(self) -> str:
        """The problem in one line: `gemm 4096x4096x4096 fp8`."""


class UnstatedOp(Op):
    """A problem that the command line does not state: graphs of kernels, profiles and deployments
    have it."""

    predicted_by: ClassVar[str]
    """The command that predicts it: the hint of the error."""

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """Raises UsageError."""
        del shape, options
        raise UsageError(f"{cls.kind} has no --shape", hint=cls.predicted_by)


__all__ = ["Op", "UnstatedOp"]
