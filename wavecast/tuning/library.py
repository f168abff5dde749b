"""Tuning of the kernel library by prediction of the compiled code, for the shipped tables.

A formula ranks the candidates of a kernel. The first of them are compiled as part of the whole
operator, and the predicted time of the operator decides: a split of K also pays for the kernel that
sums the parts.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wavecast import arch
from wavecast.analyze.sync import unfinished_stores
from wavecast.arch import Device
from wavecast.compile.configuration import Configuration
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import CompileError, WavecastError
from wavecast.kernels import choice, registry
from wavecast.kernels.operator import Operator, Sizes
from wavecast.kernels.tables import TunedEntry
from wavecast.pipeline.library.library import explain_call
from wavecast.pipeline.processes import map_unordered

CANDIDATES = 8
"""Compiled configurations per kernel and problem."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An operator with one configuration per kernel: predicted seconds of all launches, `inf` if
    unknown, and the most registers that one of them spills."""

    configurations: Mapping[str, Configuration]
    seconds: float
    spills: int
    decisions: tuple[choice.Decision, ...]

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key: configurations that spill come last."""
        return self.spills > 0, self.seconds


@dataclass(frozen=True, slots=True)
class TunedCall:
    """The table entries of one call on one device, or the reason (`failure`) why there are none."""

    operator: str
    sizes: Sizes
    device: str
    entries: tuple[TunedEntry, ...] = ()
    failure: str = ""


def tune(
    calls: Iterable[tuple[str, Sizes, str]], *, candidates: int = CANDIDATES, jobs: int = 1
) -> Iterator[TunedCall]:
    """Tune calls (operator, sizes, device), each in its own process, in the order they finish.

    A crash of the compiler fails only its own call.
    """
    tasks = [(name, dict(sizes), device, candidates) for name, sizes, device in calls]
    for (name, sizes, device, _), tuned_call in map_unordered(_tune, tasks, jobs):
        yield tuned_call or TunedCall(name, sizes, device, failure="its process died")


def tune_call(
    operator: Operator, sizes: Sizes, device: Device, candidates: int = CANDIDATES
) -> tuple[TunedEntry, ...]:
    """The best configurations of the kernels of one call, found one kernel after the other.

    Raises WavecastError if the call does not compile with the first configurations.
    """
    first = trial(operator, sizes, device, {})
    best = first
    for decision in _distinct(first.decisions):
        space = decision.spec
        for candidate in space.ranked(decision.problem, device)[:candidates]:
            if candidate == decision.configuration:
                continue
            forced = {**best.configurations, space.name: candidate}
            with contextlib.suppress(WavecastError):
                alternative = trial(operator, sizes, device, forced)
                if alternative.rank < best.rank:
                    best = alternative
    if not math.isfinite(best.seconds):
        return ()
    before = first.seconds if math.isfinite(first.seconds) else None
    return tuple(
        TunedEntry(
            decision.spec.name,
            decision.text,
            dict(decision.spec.key(decision.problem)),
            decision.configuration,
            best.seconds,
            before,
        )
        for decision in _distinct(best.decisions)
    )


def trial(
    operator: Operator, sizes: Sizes, device: Device, forced: Mapping[str, Configuration]
) -> Trial:
    """Compile a call for a device with the `forced` configurations by kernel, and predict it.

    Raises WavecastError if a kernel does not compile.
    """
    with contextlib.ExitStack() as stack:
        for kernel, configuration in forced.items():
            stack.enter_context(choice.forced(kernel, configuration))
        decisions = stack.enter_context(choice.record_decisions())
        explained = explain_call(operator, sizes, device)
    seconds, spills = 0.0, 0
    for explanation in explained:
        code, prediction = explanation.code, explanation.predicted.prediction
        if code.is_amd and unfinished_stores(parse_kernel(code).program):
            raise CompileError(f"{code.kernel}: the compiler lost a wait before a barrier")
        spills = max(spills, explanation.analysis.registers.spilled_vgpr)
        count = explanation.launch.count if explanation.launch else 1
        seconds += prediction.seconds * count if prediction else math.inf
    configurations = {decision.spec.name: decision.configuration for decision in decisions}
    return Trial(configurations, seconds, spills, tuple(decisions))


def _tune(call: tuple[str, dict[str, Any], str, int]) -> TunedCall:
    """Tune one call. Runs in its own process."""
    name, sizes, device, candidates = call
    try:
        entries = tune_call(registry.operator(name), sizes, arch.load(device), candidates)
    except WavecastError as error:
        return TunedCall(name, sizes, device, failure=str(error))
    failure = "" if entries else "no configuration has a predicted time"
    return TunedCall(name, sizes, device, entries, failure)


def _distinct(decisions: Iterable[choice.Decision]) -> list[choice.Decision]:
    by_key: dict[tuple, choice.Decision] = {}
    for decision in decisions:
        by_key[decision.spec.name, decision.spec.key(decision.problem)] = decision
    return list(by_key.values())


__all__ = ["CANDIDATES", "Trial", "TunedCall", "trial", "tune", "tune_call"]
