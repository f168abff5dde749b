"""Two profiles next to each other: launches matched by the operator and the module that made them,
not by the names of kernels, which differ between vendors and versions.

Launches without an operator are matched by what they compute. Every launch of both profiles is in
exactly one row, so the rows add up to the time of all kernels.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from wavecast.profiles.kernel_forms import form
from wavecast.profiles.kernel_names import recognise, short
from wavecast.profiles.profile import NONE, Profile
from wavecast.profiles.summary import TimeShare, module_of


@dataclass(slots=True)
class SideTime:
    """Launches of one profile: their time, the calls of operators that made them, and the kernels
    by name."""

    share: TimeShare = field(default_factory=TimeShare)
    calls: set[int] = field(default_factory=set)
    kernels: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def kernel(self) -> str:
        """The kernel with most of the time, without arguments; empty without launches."""
        return max(self.kernels, key=lambda name: self.kernels[name], default="")


@dataclass(frozen=True, slots=True)
class ComparedOperator:
    """An operator of a module in both profiles; `op` is empty for launches without an operator."""

    op: str
    module: str
    category: str
    first: SideTime
    second: SideTime

    @property
    def difference(self) -> int:
        """Nanoseconds that the second takes longer."""
        return self.second.share.nanoseconds - self.first.share.nanoseconds

    @property
    def ratio(self) -> float | None:
        """Second time over first; None where one is absent."""
        first, second = self.first.share.nanoseconds, self.second.share.nanoseconds
        return second / first if first and second else None

    @property
    def form(self) -> str:
        """What the names of the longest kernels say, where it differs."""
        texts = [form(side.kernel).text for side in (self.first, self.second) if side.kernel]
        return " → ".join(dict.fromkeys(filter(None, texts)))


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """Rows by the size of their difference, the largest first."""

    rows: tuple[ComparedOperator, ...]

    @property
    def totals(self) -> tuple[int, int]:
        """Nanoseconds of all kernels of both profiles."""
        first = sum(row.first.share.nanoseconds for row in self.rows)
        return first, sum(row.second.share.nanoseconds for row in self.rows)

    @property
    def matched_shares(self) -> tuple[float, float]:
        """Share of the kernels' time of each profile in rows that both have."""
        both = [row for row in self.rows if row.ratio is not None]
        times = (
            sum(row.first.share.nanoseconds for row in both),
            sum(row.second.share.nanoseconds for row in both),
        )
        first, second = (
            part / max(1, whole) for part, whole in zip(times, self.totals, strict=True)
        )
        return first, second

    def by_category(self) -> dict[str, tuple[int, int]]:
        """Nanoseconds of both by what the kernels compute, the longest first."""
        totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for row in self.rows:
            totals[row.category][0] += row.first.share.nanoseconds
            totals[row.category][1] += row.second.share.nanoseconds
        ordered = sorted(totals.items(), key=lambda item: -max(item[1]))
        return {name: (first, second) for name, (first, second) in ordered}


def compare_profiles(first: Profile, second: Profile) -> ProfileComparison:
    """Every launch of both profiles, matched."""
    sides = [_sides(profile) for profile in (first, second)]
    keys = dict.fromkeys((*sides[0], *sides[1]))
    rows = [
        ComparedOperator(*key, sides[0].get(key, SideTime()), sides[1].get(key, SideTime()))
        for key in keys
    ]
    return ProfileComparison(tuple(sorted(rows, key=lambda row: -abs(row.difference))))


def _sides(profile: Profile) -> dict[tuple[str, str, str], SideTime]:
    """By operator, module and category of the operator's kernels."""
    sides: defaultdict[tuple[str, str, str], SideTime] = defaultdict(SideTime)
    launches = profile.launches
    names = [kernel.name for kernel in profile.kernels.values]
    categories = [recognise(name).category for name in names]
    for number, (op, info) in enumerate(zip(launches.op, launches.info, strict=True)):
        operator = "" if op == NONE else profile.op_infos[profile.ops.info[op]].name
        side = sides[operator, module_of(profile, number), categories[info]]
        side.share.add(launches.duration[number])
        side.kernels[short(names[info])] += launches.duration[number]
        if op != NONE:
            side.calls.add(op)
    return dict(sides)


__all__ = ["ComparedOperator", "ProfileComparison", "SideTime", "compare_profiles"]
