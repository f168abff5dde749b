"""Launches that spend their time starting: what fusing them, or recording a graph, would save.

The rule is about the launches of a run together: its check of a single kernel finds nothing, and
`sequence` makes the finding, which the first of the launches is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wavecast.isa.instruction import SourceLocation
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.wording import count, join_names

NAME = "launch-bound"

SHARE = 0.5
"""Part of a launch's time that starting it takes, from which on it is launch-bound."""

LEAST = 4
"""Launches from which on a sequence is worth a finding."""


@dataclass(frozen=True, slots=True)
class TimedLaunch:
    """A predicted launch: `seconds` of which `start` before the work begins, `count` times.

    `work` are the seconds that all its repetitions take as one launch of as many workgroups.
    """

    kernel: str
    grid: tuple[int, int, int]
    location: SourceLocation | None
    seconds: float
    start: float
    count: int
    work: float

    @property
    def is_bound(self) -> bool:
        return self.start >= SHARE * self.seconds


def sequence(launches: Sequence[TimedLaunch]) -> tuple[Finding, float, float] | None:
    """The finding about launch-bound launches, and their seconds now and as one launch; None where
    there are fewer than `LEAST`."""
    bound = [launch for launch in launches if launch.is_bound]
    number = sum(launch.count for launch in bound)
    if number < LEAST:
        return None
    now = sum(launch.seconds * launch.count for launch in bound)
    start = max(launch.start for launch in bound)
    by_grid: dict[tuple[int, int, int], float] = {}
    for launch in bound:  # kernels over the same elements overlap when they are one
        by_grid[launch.grid] = max(by_grid.get(launch.grid, 0.0), launch.work)
    fused = start + sum(by_grid.values())
    names = list(dict.fromkeys(launch.kernel for launch in bound))
    what = "batch them into one launch" if len(names) == 1 else "fuse them into one kernel"
    return (
        Finding(
            rule=NAME,
            severity="warning",
            message=f"{count(number, 'launch', 'launches')} of {join_names(names[:4])} spend "
            "most of "
            "their time starting",
            evidence=f"{100 * sum(item.start * item.count for item in bound) / now:.0f}% of the "
            f"{1e6 * now:.3g} µs of these launches is before their first instruction",
            advice=f"If they follow each other, {what} (torch.compile does), or record them as a "
            "graph, which starts them without the host.",
            location=bound[0].location,
            locations=tuple(
                dict.fromkeys(item.location for item in bound if item.location is not None)
            ),
        ),
        now,
        fused,
    )


def _of_one_kernel(subject: RuleInput) -> Iterator[Finding]:
    """Nothing: one launch does not show what follows it."""
    del subject
    return iter(())


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Launches that spend their time starting",
    explanation=f"""\
Starting a kernel takes microseconds on the device, whatever it does. A sequence of kernels that
each work for less than that (elementwise steps of a small activation, one launch per head) is as
fast as the number of its launches.

Fires for a run with at least {LEAST} launches that spend at least {SHARE:.0%} of their predicted
time starting. The fix is predicted as one launch: kernels with the same grid overlap, repeated
launches of a kernel are one with as many more workgroups. Whether the launches follow each other,
only you know.""",
    check=_of_one_kernel,
)

__all__ = ["LEAST", "NAME", "RULE", "SHARE", "TimedLaunch", "sequence"]
