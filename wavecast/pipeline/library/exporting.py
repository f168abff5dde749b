"""A call of an operator for programs without Python: its plan on each device, and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.compile.call_plan import CallPlan
from wavecast.errors import UsageError
from wavecast.kernels.operator import Operator, Sizes
from wavecast.pipeline.explain.result import Explanation
from wavecast.pipeline.library.library import explain_call


@dataclass(frozen=True, slots=True)
class ExportedCall:
    """A call on one device, and its launches explained, one for each kernel of the plan; None where
    the launch could not be explained."""

    plan: CallPlan
    explained: tuple[Explanation | None, ...]

    @property
    def seconds(self) -> tuple[float, float, float] | None:
        """Predicted seconds of all launches, and the ends of their interval; None where a launch
        has no prediction."""
        predictions = [
            explanation and explanation.predicted.prediction for explanation in self.explained
        ]
        valid_predictions = [prediction for prediction in predictions if prediction]
        if not valid_predictions or len(valid_predictions) < len(predictions):
            return None
        return (
            sum(prediction.seconds for prediction in valid_predictions),
            sum(prediction.low for prediction in valid_predictions),
            sum(prediction.high for prediction in valid_predictions),
        )


def export(operator: Operator, sizes: Sizes, devices: Sequence[Device]) -> tuple[ExportedCall, ...]:
    """A call compiled and predicted for every device.

    Raises UsageError where two devices share a compiler target, or the call launches no kernel or
    cannot be repeated without Python, CompileError where a kernel does not compile.
    """
    from wavecast.runtimes.triton.call_plan import record_call

    _check(operator, devices)
    calls = []
    for device in devices:
        plan = record_call(operator, sizes, device)
        if not plan.kernels:
            raise UsageError(f"{operator.describe(sizes)} launches no kernel on {device.id}")
        explained = {
            (explanation.code.digest, explanation.launch.grid): explanation
            for explanation in explain_call(operator, sizes, device)
            if explanation.launch is not None
        }
        launches = [step.launch for step in plan.kernels]
        calls.append(
            ExportedCall(
                plan, tuple(explained.get((launch.code.digest, launch.grid)) for launch in launches)
            )
        )
    first = calls[0].plan.interface
    for call in calls[1:]:
        if call.plan.interface != first:
            raise UsageError(
                f"{operator.name} has other tensors on {call.plan.device} than on "
                f"{calls[0].plan.device}; export them one by one"
            )
    return tuple(calls)


def _check(operator: Operator, devices: Sequence[Device]) -> None:
    by_target: dict[str, Device] = {}
    for device in devices:
        other = by_target.setdefault(device.target, device)
        if other is not device:
            raise UsageError(
                f"{other.id} and {device.id} run the same code, that of {device.target}"
            )
        if operator.targets and device.target not in operator.targets:
            targets = ", ".join(operator.targets)
            raise UsageError(f"{operator.name} runs on {targets}, not on {device.target}")


__all__ = ["ExportedCall", "export"]
