"""A measured problem with its prediction and the times of baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel import intervals
from wavecast.perfmodel.prediction import Prediction


@dataclass(frozen=True, slots=True)
class ScoredProblem:
    """One problem with its prediction; all times in seconds.

    `case` is the first of `repeats` rows, `measured` the median of their times. `baselines` maps
    other methods to the times they predict.
    """

    dataset: str
    case: Case
    measured: float
    repeats: int
    prediction: Prediction
    baselines: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.prediction.seconds / self.measured

    @property
    def op_class(self) -> str:
        """The class of ops it is scored with."""
        return self.case.kind if self.case.op is None else self.case.op.op_class

    @property
    def covered(self) -> bool:
        """Whether the measured time lies in the predicted interval."""
        return self.prediction.low <= self.measured <= self.prediction.high

    @property
    def labels(self) -> dict[str, str]:
        """Labels that group scores: device, size, limiter, fidelity, and those of the case."""
        case_labels = {name: value for name, value in self.case.labels.items() if value}
        both = f"{self.case.device} {case_labels['dtype']}" if "dtype" in case_labels else ""
        return {
            "device": self.case.device,
            **case_labels,
            **({"device and dtype": both} if both else {}),
            "size": intervals.size_class(self.measured),
            "limiter": self.prediction.limiter,
            "fidelity": self.prediction.fidelity,
        }

    @property
    def log_ratio(self) -> float:
        """log(predicted / measured)."""
        return math.log(self.ratio)
