"""Findings about the launches of a run together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wavecast.isa.instruction import SourceLocation
from wavecast.perfmodel.launches import launch_timing
from wavecast.pipeline.explain.fixing import LEAST, resources, simulated_outcome, sort_findings
from wavecast.pipeline.explain.result import Explanation
from wavecast.rules.sequences import NAME, TimedLaunch, sequence


def with_sequences(
    explanations: Sequence[Explanation], disabled: Sequence[str] = ()
) -> list[Explanation]:
    """The explanations, the first launch-bound one of each device with the finding about all."""
    results = list(explanations)
    if NAME in disabled:
        return results
    devices = dict.fromkeys(explanation.device.id for explanation in results)
    for device in devices:
        timed = {
            number: launch
            for number, explanation in enumerate(results)
            if explanation.device.id == device
            and (launch := _timed_launch(explanation)) is not None
        }
        sequence_result = sequence(list(timed.values()))
        if sequence_result is None:
            continue
        finding, now, fused = sequence_result
        saved = 1 - fused / now
        first = next(number for number, launch in timed.items() if launch.is_bound)
        if saved < LEAST:
            continue
        prediction = results[first].predicted.prediction
        if prediction is None:
            continue
        outcome = simulated_outcome(fused, prediction, resources(results[first].analysis))
        finding = replace(finding, time_saved=saved, outcome=outcome)
        findings = tuple(sort_findings((finding, *results[first].findings)))
        results[first] = replace(results[first], findings=findings)
    return results


def _timed_launch(explanation: Explanation) -> TimedLaunch | None:
    prediction, launch = explanation.predicted.prediction, explanation.launch
    profile, code = explanation.predicted.profile, explanation.code
    if prediction is None or launch is None or profile is None:
        return None
    start = prediction.bounds.get("launch", 0.0)
    work = prediction.seconds - start
    if launch.count > 1 and work < start:
        workgroups = profile.placement.workgroups * launch.count
        together = replace(profile, placement=replace(profile.placement, workgroups=workgroups))
        if together.traffic is not None:
            traffic = together.traffic
            times = launch.count
            traffic = replace(
                traffic,
                l2=traffic.l2 * times,
                mall=traffic.mall * times,
                hbm=traffic.hbm * times,
                written=traffic.written * times,
                atomics=traffic.atomics * times,
            )
            together = replace(together, traffic=traffic)
        work = launch_timing(together, explanation.device).seconds - start
    location = SourceLocation(code.source, code.source_line) if code.source_line else None
    return TimedLaunch(
        code.kernel, launch.grid, location, prediction.seconds, start, launch.count, work
    )


__all__ = ["with_sequences"]
