"""A call of an operator for programs without Python: its plan on each device, and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.compile.call_plan import CallPlan
from wavecast.errors import UsageError
from wavecast.kernels.operator import Operator, Sizes
from wavecast.pipeline.library import launched
from wavecast.pipeline.result import Explanation


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
        found = [one and one.predicted.prediction for one in self.explained]
        known = [one for one in found if one]
        if not known or len(known) < len(found):
            return None
        return (
            sum(one.seconds for one in known),
            sum(one.low for one in known),
            sum(one.high for one in known),
        )


def export(operator: Operator, sizes: Sizes, devices: Sequence[Device]) -> tuple[ExportedCall, ...]:
    """A call compiled and predicted for every device.

    Raises UsageError where two devices share a compiler target, or the call launches no kernel or
    cannot be repeated without Python, CompileError where a kernel does not compile.
    """
    from wavecast.integrations.triton.call_plan import record_call

    _check(operator, devices)
    found = []
    for device in devices:
        plan = record_call(operator, sizes, device)
        if not plan.kernels:
            raise UsageError(f"{operator.describe(sizes)} launches no kernel on {device.id}")
        explained = {
            (one.code.digest, one.launch.grid): one
            for one in launched(operator, sizes, device)
            if one.launch is not None
        }
        launches = [step.launch for step in plan.kernels]
        found.append(
            ExportedCall(
                plan, tuple(explained.get((one.code.digest, one.grid)) for one in launches)
            )
        )
    first = found[0].plan.interface
    for one in found[1:]:
        if one.plan.interface != first:
            raise UsageError(
                f"{operator.name} has other tensors on {one.plan.device} than on "
                f"{found[0].plan.device}; export them one by one"
            )
    return tuple(found)


def _check(operator: Operator, devices: Sequence[Device]) -> None:
    by_target: dict[str, Device] = {}
    for device in devices:
        other = by_target.setdefault(device.target, device)
        if other is not device:
            raise UsageError(
                f"{other.id} and {device.id} run the same code, that of {device.target}"
            )
        if operator.targets and device.target not in operator.targets:
            known = ", ".join(operator.targets)
            raise UsageError(f"{operator.name} runs on {known}, not on {device.target}")


__all__ = ["ExportedCall", "export"]
