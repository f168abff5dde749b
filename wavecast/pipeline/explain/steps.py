"""One launch on one device: read, bound, find, predict; nothing is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from wavecast import rules
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.replication import replication
from wavecast.perfmodel.roofline import roofline as roofline_of
from wavecast.perfmodel.work import work as work_of
from wavecast.pipeline.explain.fixing import (
    MOST_COMPILED,
    MOST_WITH_WHAT_IF,
    Fixing,
    with_outcomes,
)
from wavecast.pipeline.explain.prediction import predict_launch
from wavecast.pipeline.explain.reading import ReadLaunch, read_launch
from wavecast.pipeline.explain.result import Explanation
from wavecast.rules.finding import RuleInput, kernel_location
from wavecast.rules.floor_distance import NAME as FAR_FROM_FLOOR
from wavecast.rules.floor_distance import floor_distance


@dataclass(frozen=True, slots=True)
class Given:
    """What the user states instead of letting it be derived. Bytes and FLOPs per launch."""

    flops: float | None = None
    bytes: float | None = None
    dtype: str = ""
    disabled_rules: tuple[str, ...] = ()
    flops_hint: Mapping[str, float] = field(default_factory=dict)
    what_if: bool = False
    """Simulate what each change would bring."""
    outcomes: bool = True
    """Predict what the advice of findings saves: without, `with_advice` does it later."""
    mall_resident: Mapping[str, float] = field(default_factory=dict)
    """The share, by argument, of the bytes that are in the memory-side cache before the launch."""


def explain_launch(
    launch: Launch, device: Device, conditions: Given, sampled: LaunchProfile | None = None
) -> Explanation:
    """Analysis, bounds, findings and prediction of one launch on one device.

    `sampled` is the profile of an executed sample of the launch on the device. Raises WavecastError
    when the code cannot be read; the caller keeps other launches going.
    """
    read = read_launch(launch, device)
    launch, analysis = read.launch, read.analysis
    code = launch.code
    work = work_of(
        launch,
        analysis,
        given_flops=conditions.flops,
        given_bytes=conditions.bytes,
        given_dtype=conditions.dtype,
        flops_hint=conditions.flops_hint or None,
        replication=replication(code),
    )
    roofline = roofline_of(work, device)
    complete_launch = launch if all(launch.grid) else None
    subject = RuleInput(code, device, analysis, roofline, read.program, complete_launch)
    findings = rules.check(subject, disabled=conditions.disabled_rules, what_if=conditions.what_if)
    launch_prediction = predict_launch(
        launch,
        analysis,
        read.kernel,
        device,
        sampled=sampled,
        what_if=conditions.what_if,
        mall_resident=conditions.mall_resident,
    )
    program = read.program if code.is_amd else None
    explanation = Explanation(
        code, device, launch, analysis, roofline, findings, program, launch_prediction
    )
    return _with_outcomes(explanation, read, conditions) if conditions.outcomes else explanation


def with_advice(explanation: Explanation, conditions: Given) -> Explanation:
    """An explanation without outcomes, with the predicted ones of its findings: advice that saves
    nothing is left out. Raises WavecastError when the code cannot be read."""
    if explanation.launch is None:
        return explanation
    read = read_launch(explanation.launch, explanation.device)
    return _with_outcomes(explanation, read, conditions)


def _with_outcomes(explanation: Explanation, read: ReadLaunch, conditions: Given) -> Explanation:
    profile, prediction = explanation.predicted.profile, explanation.predicted.prediction
    if not profile or not prediction:
        return explanation
    fixing = Fixing(
        read,
        explanation.device,
        profile,
        prediction,
        conditions.mall_resident,
        MOST_WITH_WHAT_IF if conditions.what_if else MOST_COMPILED,
    )
    findings = with_outcomes(explanation.findings, fixing)
    if FAR_FROM_FLOOR not in conditions.disabled_rules and not any(
        (finding.time_saved or 0.0) > 0 for finding in findings
    ):
        location = kernel_location(explanation.code)
        remaining = floor_distance(prediction, explanation.roofline, location)
        findings += (remaining,) if remaining is not None else ()
    return replace(explanation, findings=findings)


def with_hint(conditions: Given, explanations: Iterable[Explanation], launch: Launch) -> Given:
    """`conditions` with the FLOPs derived from another target's code of the same launch.

    NVIDIA code is not walked, so its FLOPs come from an AMD target in the same report.
    """
    for explanation in explanations:
        other = explanation.launch
        if other is None or explanation.roofline.work.flops is None:
            continue
        if _same_work(other, launch):
            return replace(conditions, flops_hint=dict(explanation.roofline.work.flops))
    return conditions


def _same_work(first: Launch, other: Launch) -> bool:
    """One call seen on two targets: all is equal but what the autotuner chose on each.

    `storage` numbers the allocations of one run, so it differs for the same tensor of another run.
    """
    if first.code.common_symbol != other.code.common_symbol:
        return False
    tuned = _configuration_names(first) | _configuration_names(other)
    if not tuned and first.grid != other.grid:
        return False
    first_arguments, compared = (
        [
            replace(argument, storage=0)
            for argument in launch.arguments
            if argument.name not in tuned
        ]
        for launch in (first, other)
    )
    return first_arguments == compared


def _configuration_names(launch: Launch) -> set[str]:
    """Names in an autotuned launch's configuration, `BLOCK_M=64, num_warps=4`."""
    parts = (part.partition("=") for part in launch.configuration.split(", "))
    return {name for name, equals, _ in parts if equals}
