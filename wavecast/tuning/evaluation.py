"""Evaluation of one configuration: compiled and estimated, or simulated from a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wavecast.arch import Device
from wavecast.compile.configuration import Configuration
from wavecast.errors import WavecastError
from wavecast.perfmodel.prediction import Prediction
from wavecast.runtimes.triton.complaints import Refused
from wavecast.sampling.estimate import CodeEstimate, estimate, simulate
from wavecast.tuning.records import Result

if TYPE_CHECKING:
    from wavecast.runtimes.triton.trials import Trials


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """A configuration to evaluate: by its code, or, with the results of that per device
    (`estimated`), by an executed sample."""

    configuration: Configuration
    estimated: tuple[Result, ...] = ()


def evaluate(trials: Trials, devices: Sequence[Device], task: EvaluationTask) -> tuple[Result, ...]:
    """The result per device, with a reason where the compiler refuses the configuration or its time
    cannot be predicted."""
    configuration = task.configuration
    try:
        launch, ranges = trials.launch(configuration.settings)
    except Refused as error:
        return tuple(Result(configuration, reason=str(error)) for _ in devices)
    except WavecastError as error:
        return tuple(Result(configuration, reason=error.message) for _ in devices)
    except Exception as error:  # of the script: its hooks, its grid
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return tuple(Result(configuration, reason=reason) for _ in devices)
    if task.estimated:
        return tuple(
            with_simulation(estimated, simulate(launch, ranges, device))
            for estimated, device in zip(task.estimated, devices, strict=True)
        )
    return tuple(of_code(configuration, estimate(launch, ranges, device)) for device in devices)


def of_code(configuration: Configuration, estimated: CodeEstimate) -> Result:
    """The result of a configuration from its code."""
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
    return _with_prediction(result, estimated.prediction)


def with_simulation(estimated: Result, prediction: Prediction | str) -> Result:
    """A result with the prediction of an executed sample, or the reason why there is none."""
    if isinstance(prediction, str):
        return replace(estimated, reason=f"not simulated: {prediction}")
    return _with_prediction(estimated, prediction)


def _with_prediction(result: Result, prediction: Prediction | None) -> Result:
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


__all__ = ["EvaluationTask", "evaluate", "of_code", "with_simulation"]
