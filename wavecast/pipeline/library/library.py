"""Operators of the kernel library on GPUs that are not there: what they launch, in which
configuration, what that takes and how long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wavecast import arch, dtypes
from wavecast.arch import Device
from wavecast.errors import UsageError, WavecastError
from wavecast.kernels import choice, registry
from wavecast.kernels.operator import Operator, Sizes
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.roofline import roofline
from wavecast.perfmodel.sequence import CallSequence
from wavecast.pipeline.explain.result import Explanation
from wavecast.pipeline.explain.steps import Given, explain_launch
from wavecast.pipeline.processes import map_unordered
from wavecast.systems.sources.calls import TensorSizes

Call = tuple[str, Sizes, str]
"""An operator's name, sizes, and the device."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel of an operator, launched `count` times.

    `registers` and `spills` are vector registers per lane, `waves` those resident per SIMD;
    `configuration` says how it was launched and `source` who chose that (`table`, `formula`, or ""
    for a kernel without choice). Seconds are those of one launch, from the code (`fidelity`
    `static`) or, where its loops or addresses depend on data, from an executed sample (`executed`);
    None where `why_not` says why there is no prediction.
    """

    kernel: str
    configuration: str
    source: str
    registers: int
    spills: int
    lds_bytes: int
    waves: float
    seconds: float | None
    low: float | None
    high: float | None
    limiter: str
    fidelity: str = ""
    why_not: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One call on one device. `floor` is the seconds its useful work needs at least, at sustained
    rates where they are known, and `bound` by what (`memory`, `compute`, `unknown`); `failure` says
    why there are no kernels."""

    operator: str
    sizes: Sizes
    device: str
    kernels: tuple[KernelFacts, ...] = ()
    floor: float | None = None
    bound: str = ""
    failure: str = ""

    @property
    def seconds(self) -> float | None:
        """Predicted seconds of all kernels, one after the other; None where one is not known."""
        times = [
            kernel.seconds * kernel.count for kernel in self.kernels if kernel.seconds is not None
        ]
        return sum(times) if times and len(times) == len(self.kernels) else None

    @property
    def share(self) -> float | None:
        """The floor as a share of the predicted time."""
        return self.floor / self.seconds if self.seconds and self.floor else None

    @property
    def spills(self) -> int:
        """The most registers a kernel spills."""
        return max((kernel.spills for kernel in self.kernels), default=0)


def survey(
    calls: Iterable[Call], *, jobs: int = 1, look: Callable[[Call], Surveyed] | None = None
) -> Iterator[Surveyed]:
    """What every call launches by `look` (`survey_call`), as they come; with several `jobs`, in
    processes, as they end."""
    look = look or survey_call
    if jobs == 1:
        yield from map(look, calls)
        return
    arguments = [(name, dict(sizes), device) for name, sizes, device in calls]
    for (name, sizes, device), result in map_unordered(look, arguments, jobs):
        yield result or Surveyed(name, sizes, device, failure="its process died")


def survey_call(call: Call) -> Surveyed:
    """What one call launches on a device, compiled for it but not run."""
    name, sizes, selector = call
    operator, device = registry.operator(name), arch.load(selector)
    work = operator.work(**sizes)
    roof = roofline(work, device)
    floor = roof.sustained_seconds or roof.floor_seconds
    try:
        with choice.record_decisions() as decisions:
            explained = explain_call(operator, sizes, device, work.flops)
    except WavecastError as error:
        return Surveyed(name, sizes, device.id, (), floor, roof.bound, str(error))
    by_kernel = {decision.spec.name: decision for decision in decisions}
    kernels = tuple(
        _facts(explanation, by_kernel.get(explanation.code.kernel)) for explanation in explained
    )
    return Surveyed(name, sizes, device.id, kernels, floor, roof.bound)


def explain_call(
    operator: Operator, sizes: Sizes, device: Device, flops: Mapping[str, float] | None = None
) -> list[Explanation]:
    """The launches of one call on a device, compiled for it and explained, each after those before
    it; with executed samples of those whose time the code alone does not tell. `flops` are those of
    the call by dtype. What advice saves is not predicted: it would compile kernels again. Raises
    WavecastError when a kernel does not compile."""
    from wavecast.launch.inputs import Make

    def inputs(*, values: bool) -> dict[str, Any]:
        return operator.call_inputs(Make(values=values), sizes)

    return explain_inputs(operator, inputs, device, flops)


def explain_inputs(
    operator: Operator,
    make: Callable[..., dict[str, Any]],
    device: Device,
    flops: Mapping[str, float] | None = None,
) -> list[Explanation]:
    """The same for a call with the keyword arguments that `make(values=...)` gives; their values
    matter where a kernel needs a sample of them only."""
    from wavecast.runtimes.triton import capture

    conditions = Given(flops_hint=dict(flops or {}), outcomes=False)
    inputs = make(values=False)
    with capture(device) as launches:
        operator.call(**inputs)
    explained, sequence = [], CallSequence(Chip.of(device))
    for launch in launches:
        launch_conditions = replace(conditions, mall_resident=sequence.mall_resident(launch))
        explained.append(explain_launch(launch, device, launch_conditions))
        sequence.ran(launch, explained[-1].analysis.requested_bytes)
    unknown = {
        explanation.code.kernel for explanation in explained if explanation.predicted.needs_sample
    }
    if not unknown or device.vendor != "amd":
        return explained
    if operator.needs_values:
        inputs = make(values=True)
    pattern = "|".join(f"^{re.escape(name)}$" for name in unknown)
    with capture(device, kernels=pattern, sample=True, run=operator.needs_values) as sampled:
        operator.call(**inputs)
    again = [
        explain_launch(launch, device, conditions, sampled.profiles.of(launch, device))
        for launch in sampled
    ]
    order = list(dict.fromkeys(explanation.code.kernel for explanation in explained))
    both = [
        explanation for explanation in explained if explanation.code.kernel not in unknown
    ] + again
    return sorted(both, key=lambda explanation: order.index(explanation.code.kernel))


def survey_arguments(call: Call) -> Surveyed:
    """What a call with these arguments launches: an operator, its arguments by name (tensors as
    `TensorSizes`), and the device. Data that decides how long kernels take is not known."""
    name, arguments, selector = call
    operator, device = registry.operator(name), arch.load(selector)

    def make(*, values: bool) -> dict[str, Any]:
        if values:
            raise UsageError(f"the time of {name} depends on data")
        return {key: _without_values(value) for key, value in arguments.items()}

    try:
        with choice.record_decisions() as decisions:
            explained = explain_inputs(operator, make, device)
    except WavecastError as error:
        return Surveyed(name, arguments, device.id, failure=str(error))
    by_kernel = {decision.spec.name: decision for decision in decisions}
    kernels = tuple(
        _facts(explanation, by_kernel.get(explanation.code.kernel)) for explanation in explained
    )
    return Surveyed(name, arguments, device.id, kernels)


def _without_values(value: Any) -> Any:
    """An argument of a call: memory that nobody has written for a tensor."""
    from wavecast.launch.inputs import unwritten

    if isinstance(value, TensorSizes):
        return unwritten(value.shape, value.strides, dtypes.lookup(value.dtype).name)
    if isinstance(value, (list, tuple)):
        return [_without_values(part) for part in value]
    return value


def _facts(explained: Explanation, decision: choice.Decision | None) -> KernelFacts:
    analysis, prediction = explained.analysis, explained.predicted.prediction
    times: dict[str, Any] = {"seconds": None, "low": None, "high": None}
    times |= {"limiter": "", "fidelity": ""}
    if prediction is not None:
        times = {name: getattr(prediction, name) for name in times}
    return KernelFacts(
        explained.code.kernel,
        str(decision.configuration) if decision else "",
        decision.source if decision else "",
        analysis.registers.vgpr + analysis.registers.agpr,
        analysis.registers.spilled_vgpr,
        analysis.lds_bytes,
        analysis.occupancy.resident_waves,
        why_not="" if prediction else explained.predicted.why_not,
        count=explained.launch.count if explained.launch else 1,
        **times,
    )


__all__ = [
    "Call",
    "KernelFacts",
    "Surveyed",
    "explain_call",
    "explain_inputs",
    "survey",
    "survey_arguments",
    "survey_call",
]
