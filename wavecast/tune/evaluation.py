"""One configuration: compiled, estimated, or simulated from an executed sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wavecast.arch import Device
from wavecast.errors import WavecastError
from wavecast.integrations.triton.complaints import Refused
from wavecast.kernels.configuration import Configuration
from wavecast.model.prediction import Prediction
from wavecast.predict.estimate import estimate, simulate
from wavecast.tune.records import Result

if TYPE_CHECKING:
    from wavecast.integrations.triton.trials import Trials


@dataclass(frozen=True, slots=True)
class Task:
    """What to find out about a configuration: its resources and time from its code, or, given what
    is known by device (`before`), its time from an executed sample."""

    configuration: Configuration
    before: tuple[Result, ...] = ()


def evaluate(trials: Trials, devices: Sequence[Device], task: Task) -> tuple[Result, ...]:
    """The result per device. What the compiler refuses, or nothing can predict, has its reason."""
    configuration = task.configuration
    try:
        launch, ranges = trials.launch(configuration.settings)
    except Refused as error:
        return tuple(Result(configuration, reason=str(error)) for _ in devices)
    except WavecastError as error:
        return tuple(Result(configuration, reason=error.message) for _ in devices)
    except Exception as error:  # the program's own: its hooks, its grid
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return tuple(Result(configuration, reason=reason) for _ in devices)
    if task.before:
        return tuple(
            _simulated(before, simulate(launch, ranges, device))
            for before, device in zip(task.before, devices, strict=True)
        )
    found = []
    for device in devices:
        estimated = estimate(launch, ranges, device)
        resources = estimated.resources
        result = Result(
            configuration,
            registers=resources.registers,
            spills=resources.spills,
            lds_bytes=resources.lds_bytes,
            waves=round(resources.waves, 2),
            matrix=resources.matrix,
            reason=estimated.why_not,
        )
        found.append(_timed(result, estimated.prediction))
    return tuple(found)


def _simulated(before: Result, found: Prediction | str) -> Result:
    if isinstance(found, str):
        return replace(before, reason=f"not simulated: {found}")
    return _timed(before, found)


def _timed(result: Result, prediction: Prediction | None) -> Result:
    if prediction is None:
        return result
    return replace(
        result,
        seconds=prediction.seconds,
        low=prediction.low,
        high=prediction.high,
        limiter=prediction.limiter,
        fidelity=prediction.fidelity,
        reason="",
    )


__all__ = ["Task", "evaluate"]
