"""What each instruction of a kernel takes of its time."""

from __future__ import annotations

from wavecast.benchmarking.diff.result import Basis
from wavecast.perfmodel.launches import launch_timing
from wavecast.pipeline.explain.result import Explanation


def basis_of(before: Explanation, after: Explanation) -> Basis:
    """Predicted seconds, where both sides have a prediction, else cycles."""
    predicted = before.predicted.profile is not None and after.predicted.profile is not None
    return "seconds" if predicted else "cycles"


def instruction_costs(explanation: Explanation, basis: Basis) -> tuple[float, ...]:
    """Per instruction: the seconds of the launch waves of the simulated unit spend at it (all
    together the predicted time without what comes before and after the work), or the cycles one
    execution takes its pipe. () where the code is not at hand."""
    if explanation.program is None:
        return ()
    profile = explanation.predicted.profile
    if basis == "cycles" or profile is None:
        return explanation.analysis.instruction_cycles
    simulated = launch_timing(profile, explanation.device)
    clocks = simulated.unit.stalls.sum(axis=1)
    total = float(clocks.sum()) or 1.0
    scale = (simulated.seconds - simulated.launch) / total
    return tuple((clocks * scale).tolist())


__all__ = ["basis_of", "instruction_costs"]
