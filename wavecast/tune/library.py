"""Configurations of the kernel library by prediction of the compiled code, for shipped tables.

The formula of a kernel's `Space` ranks its candidates; here the first of them are compiled inside
the whole operator, and the operator's predicted time decides: a split of K also pays for the kernel
that adds up.
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
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import CompileError, WavecastError
from wavecast.kernels import choice, registry
from wavecast.kernels.configuration import Configuration
from wavecast.kernels.operator import Operator, Sizes
from wavecast.kernels.tables import Entry
from wavecast.pipeline.library import launched
from wavecast.pipeline.processes import spread

CANDIDATES = 8
"""Configurations of one kernel that are compiled for one problem."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An operator in one configuration per kernel: predicted seconds of all its launches, `inf`
    where that is not known, and the most registers one of them spills."""

    configurations: Mapping[str, Configuration]
    seconds: float
    spills: int
    decisions: tuple[choice.Decision, ...]

    @property
    def rank(self) -> tuple[bool, float]:
        """What spills comes last."""
        return self.spills > 0, self.seconds


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was found for one call on one device; `failure` says why nothing was."""

    operator: str
    sizes: Sizes
    device: str
    entries: tuple[Entry, ...] = ()
    failure: str = ""


def tune(
    calls: Iterable[tuple[str, Sizes, str]], *, candidates: int = CANDIDATES, jobs: int = 1
) -> Iterator[Tuned]:
    """Tune calls (operator, sizes, device) in processes of their own, as they end.

    A call whose process the compiler takes down is a failure; the others go on.
    """
    given = [(name, dict(sizes), device, candidates) for name, sizes, device in calls]
    for (name, sizes, device, _), found in spread(_tune, given, jobs):
        yield found or Tuned(name, sizes, device, failure="its process died")


def tuned(
    operator: Operator, sizes: Sizes, device: Device, candidates: int = CANDIDATES
) -> tuple[Entry, ...]:
    """The best configurations of one call's kernels, one kernel after the other.

    Raises WavecastError when the call does not compile at all.
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
                found = trial(operator, sizes, device, forced)
                if found.rank < best.rank:
                    best = found
    if not math.isfinite(best.seconds):
        return ()
    before = first.seconds if math.isfinite(first.seconds) else None
    return tuple(
        Entry(
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
    """Compile a call for a device, its kernels in the configurations given, and predict it.

    Raises WavecastError when a kernel does not compile.
    """
    with contextlib.ExitStack() as stack:
        for kernel, configuration in forced.items():
            stack.enter_context(choice.forced(kernel, configuration))
        decisions = stack.enter_context(choice.watched())
        explained = launched(operator, sizes, device)
    seconds, spills = 0.0, 0
    for one in explained:
        code, found = one.code, one.predicted.prediction
        if code.is_amd and unfinished_stores(parse_kernel(code).program):
            raise CompileError(f"{code.kernel}: the compiler lost a wait before a barrier")
        spills = max(spills, one.analysis.registers.spilled_vgpr)
        count = one.launch.count if one.launch else 1
        seconds += found.seconds * count if found else math.inf
    chosen = {decision.spec.name: decision.configuration for decision in decisions}
    return Trial(chosen, seconds, spills, tuple(decisions))


def _tune(call: tuple[str, dict[str, Any], str, int]) -> Tuned:
    """In a process of its own."""
    name, sizes, device, candidates = call
    try:
        entries = tuned(registry.operator(name), sizes, arch.load(device), candidates)
    except WavecastError as error:
        return Tuned(name, sizes, device, failure=str(error))
    failure = "" if entries else "no configuration has a predicted time"
    return Tuned(name, sizes, device, entries, failure)


def _distinct(decisions: Iterable[choice.Decision]) -> list[choice.Decision]:
    found: dict[tuple, choice.Decision] = {}
    for decision in decisions:
        found[decision.spec.name, decision.spec.key(decision.problem)] = decision
    return list(found.values())


__all__ = ["CANDIDATES", "Trial", "Tuned", "trial", "tune", "tuned"]
