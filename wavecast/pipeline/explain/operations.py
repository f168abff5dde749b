"""Operations by their sizes on a list of GPUs: the best time a good library reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.errors import MissingFact, NothingAnalysed, Unpredictable
from wavecast.perfmodel.bounds import Roofline, Work
from wavecast.perfmodel.ops import Op, op
from wavecast.perfmodel.prediction import Prediction
from wavecast.pipeline.explain.selection import Selection


@dataclass(frozen=True, slots=True)
class Outlook:
    """One operation on one device: its prediction, or why there is none."""

    problem: Op
    device: Device
    roofline: Roofline
    prediction: Prediction | None
    why_not: str = ""

    @property
    def flops(self) -> float | None:
        """Useful FLOP/s at the predicted time; None without FLOPs or prediction."""
        work = self.roofline.work.flops
        total = sum(work.values()) if work else 0.0
        return total / self.prediction.seconds if self.prediction and total else None

    @property
    def bandwidth(self) -> float | None:
        """Least bytes over the predicted time, in byte/s."""
        traffic = self.roofline.work.bytes
        return traffic / self.prediction.seconds if self.prediction and traffic else None


@dataclass(frozen=True, slots=True)
class OperationReport:
    """What `explain` says of operations, shape by shape, devices in the order asked for."""

    outlooks: tuple[Outlook, ...]
    notes: tuple[str, ...] = ()


def explain_operation(
    kind: str, shapes: Sequence[str], options: Mapping[str, str], selection: Selection
) -> OperationReport:
    """Predict an operation for every shape and device.

    Raises UnknownName for a kind that is none, UsageError for a shape or option it does not have,
    NothingAnalysed where no device has a prediction.
    """
    problems = [op(kind).parse(shape, options) for shape in shapes]
    outlooks = tuple(
        _outlook(problem, device) for problem in problems for device in selection.devices
    )
    if not any(outlook.prediction for outlook in outlooks):
        raise NothingAnalysed("; ".join(dict.fromkeys(outlook.why_not for outlook in outlooks)))
    return OperationReport(outlooks, selection.notes)


def _outlook(problem: Op, device: Device) -> Outlook:
    work = problem.work()
    bound = problem.roofline(device)
    try:
        _check_fits(problem, work, device)
        return Outlook(problem, device, bound, problem.predict(device))
    except (MissingFact, Unpredictable) as error:
        return Outlook(problem, device, bound, None, error.message)


def _check_fits(problem: Op, work: Work, device: Device) -> None:
    """Raises Unpredictable for operands or a result larger than the memory, where it is known."""
    if device.get("mem_size") is None:
        return
    size, room = (
        max(work.bytes_read or 0.0, work.bytes_written or 0.0),
        device.facts.integer("mem_size", "B"),
    )
    if size > room:
        raise Unpredictable(
            f"{problem} takes {size / 1e9:,.0f} GB, {device.name} has {room / 1e9:,.0f} GB"
        )


__all__ = ["OperationReport", "Outlook", "explain_operation"]
