"""Launches of a profile by what launched them: an operator with its sizes, or else the kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from wavecast.profiles.kernel_names import recognise
from wavecast.profiles.profile import NONE, Profile, ProfiledOp
from wavecast.profiles.summary import TimeShare


@dataclass(frozen=True)
class LaunchGroup:
    """Launches of `op` (a number of `Profile.op_infos`; NONE: of the kernel without an operator).

    `chain` has the operator and the one around it, `calls` the numbers of its calls, `kernels` the
    launches and times by number of the kernel.
    """

    op: int
    chain: tuple[ProfiledOp, ...] = ()
    calls: set[int] = field(default_factory=set)
    kernels: dict[int, TimeShare] = field(default_factory=lambda: defaultdict(TimeShare))

    @property
    def nanoseconds(self) -> int:
        """Time of all launches."""
        return sum(share.nanoseconds for share in self.kernels.values())

    @property
    def count(self) -> int:
        """Calls of the operator, or launches of the kernel."""
        if self.op != NONE:
            return len(self.calls)
        return sum(share.count for share in self.kernels.values())

    def restrict_to(self, numbers: Sequence[int]) -> LaunchGroup:
        """The launches of these kernels only."""
        kernels = {number: self.kernels[number] for number in numbers}
        return LaunchGroup(self.op, self.chain, self.calls, kernels)


class LaunchGroups:
    """All launches of a profile in groups. `key(launch)` finds the group of a launch."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        launches = profile.launches
        groups: dict[tuple[int, int], LaunchGroup] = {}
        for number, (op, duration) in enumerate(zip(launches.op, launches.duration, strict=True)):
            key = self.key(number)
            group = groups.get(key)
            if group is None:
                group = groups[key] = LaunchGroup(key[0], self._chain(op))
            group.calls.add(op)
            group.kernels[launches.info[number]].add(duration)
        self.groups = groups

    def key(self, launch: int) -> tuple[int, int]:
        """(operator, NONE), or (NONE, kernel) without an operator."""
        launches = self._profile.launches
        op = launches.op[launch]
        if op == NONE:
            return NONE, launches.info[launch]
        return self._profile.ops.info[op], NONE

    def category(self, group: LaunchGroup) -> str:
        """What most of the time of a group computes, by the names of its kernels."""
        times: defaultdict[str, int] = defaultdict(int)
        for number, share in group.kernels.items():
            times[self.categories[number]] += share.nanoseconds
        return max(times, key=lambda name: times[name])

    def by_category(self, group: LaunchGroup) -> list[LaunchGroup]:
        """The parts of a group whose kernels compute the same."""
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for number in group.kernels:
            numbers[self.categories[number]].append(number)
        return [group.restrict_to(mine) for mine in numbers.values()]

    @cached_property
    def categories(self) -> list[str]:
        """The category of every kernel."""
        return [recognise(kernel.name).category for kernel in self._profile.kernels.values]

    def _chain(self, op: int) -> tuple[ProfiledOp, ...]:
        if op == NONE:
            return ()
        profile, parent = self._profile, self._profile.ops.parent[op]
        numbers = (op,) if parent == NONE else (op, parent)
        return tuple(profile.op_infos[profile.ops.info[number]] for number in numbers)


__all__ = ["LaunchGroup", "LaunchGroups"]
