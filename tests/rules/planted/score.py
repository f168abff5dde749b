"""Score of the findings of planted kernels: the line, the rule that comes first, what it saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.rules.planted.cases import PlantedKernel
from tests.rules.planted.explained import seconds, wrong_and_fixed
from wavecast.report.explain.summary import lines_of

CLOSE = 0.10
"""A promised part of the time is close to the predicted one within this."""


@dataclass(frozen=True)
class PlantedScore:
    """What was found in one kernel. `promised` is the part of the time that the finding of the
    planted mistake saves (None where it says nothing), `predicted` that of the fixed kernel."""

    case: PlantedKernel
    found: tuple[str, ...]
    at_line: bool
    promised: float | None
    predicted: float
    microseconds: float

    @property
    def is_first(self) -> bool:
        """Whether the right advice comes first."""
        return self.found[:1] == (self.case.rule,)

    @property
    def is_close(self) -> bool:
        """Whether the promise is close."""
        return self.promised is not None and abs(self.promised - self.predicted) <= CLOSE


def score(case: PlantedKernel) -> PlantedScore:
    """The score of one kernel. Raises AssertionError where it is not explained or predicted."""
    wrong, fixed = wrong_and_fixed(case)
    findings = [finding for explanation in wrong for finding in explanation.findings]
    own = [finding for finding in findings if finding.rule == case.rule]
    promised = max((finding.time_saved or 0.0 for finding in own), default=None)
    if own and all(finding.time_saved is None for finding in own):
        promised = None
    before = seconds(wrong)
    return PlantedScore(
        case,
        tuple(finding.rule for finding in findings),
        any(case.line in lines_of(finding) for finding in own),
        promised,
        1 - seconds(fixed) / before,
        1e6 * before,
    )


def table(scores: Iterable[PlantedScore]) -> Iterator[str]:
    """The table as text, a line each, with the sums last."""
    yield f"{'kernel':24s} {'rule':26s} {'µs':>8s}  line first  promised predicted"
    done = []
    for found in scores:
        done.append(found)
        promised = "–" if found.promised is None else f"{100 * found.promised:.1f} %"
        yield (
            f"{found.case.name:24s} {found.case.rule:26s} {found.microseconds:8.1f}  "
            f"{_mark(found.at_line)} {_mark(found.is_first)} {promised:>10s} "
            f"{100 * found.predicted:7.1f} %  {'close' if found.is_close else ''}"
        )
    yield (
        f"of {len(done)}: the right line {sum(s.at_line for s in done)}, the right advice first "
        f"{sum(s.is_first for s in done)}, the promise within {100 * CLOSE:.0f} points "
        f"{sum(s.is_close for s in done)}"
    )


def _mark(good: bool) -> str:
    return "yes " if good else "no  "
