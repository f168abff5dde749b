"""An op whose time is known, and measurements of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from wavecast import arch
from wavecast.arch import Device
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.outcome import ScoredProblem
from wavecast.errors import MissingFact, UsageError
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.ops import Op
from wavecast.perfmodel.prediction import Prediction


@dataclass(frozen=True)
class Copy(Op):
    """Predicted to take a nanosecond per byte, half of it as `fast`."""

    kind: ClassVar[str] = "copy"
    shape_help: ClassVar[str] = "BYTES"

    bytes: int
    dtype: str = "fp32"
    fast: bool = False

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        if not shape.isdigit():
            raise UsageError(f"shape {shape!r} is not a number of bytes")
        return cls(int(shape), options.get("dtype", "fp32"))

    def work(self) -> Work:
        return Work({}, float(self.bytes), float(self.bytes), "none", "two per byte")

    def predict(self, device: Device) -> Prediction:
        if self.bytes == 0:
            raise MissingFact("nothing is known of empty copies")
        if self.bytes == 1:
            return Prediction(device.id, 1 // 0, 0, 0, "", "formula", {})
        seconds = self.bytes * (0.5e-9 if self.fast else 1e-9)
        return Prediction(
            device.id, seconds, seconds / 2, seconds * 2, "hbm", "formula", {"hbm": seconds}
        )

    def __str__(self) -> str:
        return f"copy {self.bytes} {self.dtype}{' fast' if self.fast else ''}"


def case(
    size: int,
    seconds: float,
    *,
    device: str = "mi300x",
    dtype: str = "fp32",
    fast: bool = False,
    problem: str = "",
    group: str = "",
) -> Case:
    """A measured copy."""
    return Case(
        kind="copy",
        op=Copy(size, dtype, fast),
        device=device,
        seconds=seconds,
        problem=problem,
        group=group,
        labels={"dtype": dtype},
        source="sample",
    )


def outcome(ratio: float, size: int = 1 << 20, **about: Any) -> ScoredProblem:
    """A copy of `size` bytes predicted at `ratio` times its measured time; `about` as in `case`."""
    op = case(size, 1.0, **about).op
    assert op is not None
    prediction = op.predict(arch.load(about.get("device", "mi300x")))
    measured = case(size, prediction.seconds / ratio, **about)
    return ScoredProblem("sample", measured, measured.seconds, 1, prediction)
