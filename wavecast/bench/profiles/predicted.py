"""The operators of a profile with their predicted times, on the chip that ran them or on another.

An operator is the innermost one that launched kernels; its measured time is that of its kernels. It
is predicted as `wavecast model` predicts a module's operators: from sizes, dtypes and strides, as
PyTorch launches it. What cannot be predicted is listed with the reason and keeps its measured time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import numpy as np

from wavecast.arch.device import Device
from wavecast.bench.profiles.kernel_names import recognise
from wavecast.bench.profiles.profile import NONE, Profile, ProfiledOp
from wavecast.errors import MissingFact, MissingTool

if TYPE_CHECKING:
    from wavecast.systems.sources.calls import OperatorCall

NO_OPERATOR: Final = "no operator in the profile"
_LISTED: Final = "float"


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """All calls of one operator with one set of sizes.

    `measured` is the time of their kernels in seconds, `predicted` with `low` and `high` that of as
    many calls; `kernel` the library that is assumed, `category` by the names of the kernels.
    `why_not` says why there is no prediction, and is empty otherwise.
    """

    name: str
    sizes: str
    count: int
    measured: float
    category: str
    predicted: float = 0.0
    low: float = 0.0
    high: float = 0.0
    kernel: str = ""
    limiter: str = ""
    flops: float = 0.0
    bytes: float = 0.0
    why_not: str = ""

    @property
    def in_interval(self) -> bool:
        """Whether the measured time is in the 80 % interval."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class PredictedProfile:
    """The operators of a profile, longest first. `covered` is the share of the kernels' time that
    is predicted."""

    device: Device
    operators: tuple[OperatorTime, ...]
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[OperatorTime, ...]:
        """The operators that are predicted."""
        return tuple(one for one in self.operators if not one.why_not)

    @property
    def measured(self) -> float:
        """Seconds of all kernels."""
        return sum(one.measured for one in self.operators)

    @property
    def covered(self) -> float:
        """Share of the kernels' time that is predicted."""
        return sum(one.measured for one in self.known) / self.measured if self.measured else 0.0

    @property
    def median_error(self) -> float:
        """Median of |predicted / measured - 1| over operators; NaN without any."""
        errors = [abs(one.predicted / one.measured - 1) for one in self.known if one.measured]
        return float(np.median(errors)) if errors else math.nan


@dataclass(slots=True)
class _Group:
    """Calls of one operator: the kernels' seconds, and those of each call."""

    measured: float = 0.0
    calls: set[int] = field(default_factory=set)
    categories: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def predict(profile: Profile, device: Device) -> PredictedProfile:
    """The operators of `profile` on `device`.

    Raises MissingTool without PyTorch, which knows the operators.
    """
    groups = _groups(profile)
    listed = _common_type(profile, groups)
    predictor = _Predictor(device, listed)
    found = []
    for number, group in groups.items():
        chain = _chain(profile, number, group)
        found.append(predictor.time(chain, group))
    found.sort(key=lambda one: -one.measured)
    notes = predictor.notes
    if any("List" in profile.op_infos[number].dtypes for number in groups if number != NONE):
        notes.append(f"tensors in lists have no dtype in the profile: taken as {listed}")
    return PredictedProfile(device, tuple(found), tuple(notes))


def _groups(profile: Profile) -> dict[int, _Group]:
    groups: defaultdict[int, _Group] = defaultdict(_Group)
    launches = profile.launches
    for info, op, duration in zip(launches.info, launches.op, launches.duration, strict=True):
        group = groups[profile.ops.info[op] if op != NONE else NONE]
        group.measured += duration * 1e-9
        group.calls.add(op)
        group.categories[recognise(profile.kernels[info].name).category] += duration
    return dict(groups)


def _chain(profile: Profile, number: int, group: _Group) -> list[ProfiledOp]:
    """An operator and those around it that launch nothing else, from the innermost."""
    if number == NONE:
        return []
    found = [profile.op_infos[number]]
    parent = profile.ops.parent[min(group.calls)]
    if parent != NONE:
        found.append(profile.op_infos[profile.ops.info[parent]])
    return found


def _common_type(profile: Profile, groups: Mapping[int, _Group]) -> str:
    """The type of most floating-point tensors of the operators, by their time."""
    times: defaultdict[str, float] = defaultdict(float)
    for number, group in groups.items():
        if number != NONE:
            for name in ("c10::BFloat16", "c10::Half", "float"):
                if f'"{name}"' in profile.op_infos[number].dtypes:
                    times[name] += group.measured
                    break
    return max(times, key=lambda name: times[name], default=_LISTED)


class _Predictor:
    """Predicts operators on one device; equal kernels once."""

    def __init__(self, device: Device, listed: str) -> None:
        if find_spec("torch") is None:
            raise MissingTool("predicting a profile needs PyTorch", hint="pip install torch")
        from wavecast.systems.sources.price import GraphPrices

        self._prices = GraphPrices(device)
        self._listed = listed

    def time(self, chain: Sequence[ProfiledOp], group: _Group) -> OperatorTime:
        """Of all calls of a group, whose operator is the first of `chain`; a later one is priced
        where PyTorch cannot make the first again."""
        category = max(group.categories, key=lambda name: group.categories[name])
        name = chain[0].name if chain else NO_OPERATOR
        sizes = "".join(chain[0].sizes.split()) if chain else ""
        unknown = OperatorTime(
            name=name, sizes=sizes, count=len(group.calls), measured=group.measured,
            category=category,
        )  # fmt: skip
        if not chain:
            return _because(unknown, "the calls that launched the kernels are not in the file")
        from wavecast.integrations.torch_graph.profiled import UnknownCall, calls

        why = ""
        for info in chain:
            try:
                made = calls(
                    info.name,
                    info.sizes,
                    info.dtypes,
                    info.strides,
                    info.values,
                    listed=self._listed,
                )
                found = self._priced(unknown, made)
            except (UnknownCall, MissingFact) as error:
                why = why or str(error)
                continue
            if not found.why_not:
                return found
            why = why or found.why_not
        return _because(unknown, why)

    def _priced(self, given: OperatorTime, made: Sequence[OperatorCall]) -> OperatorTime:
        from wavecast.systems.sources.calls import ModuleGraph
        from wavecast.systems.sources.kernels import kernels

        times = self._prices.of(kernels(ModuleGraph(given.name, tuple(made))))
        if not times:
            return _because(given, "no kernel is known to be launched by it")
        bounded = next((t.priced.bounded for t in times if t.priced.bounded), "")
        if bounded:
            return _because(given, bounded)
        count, longest = given.count, max(times, key=lambda time: time.seconds)
        works = [time.priced.node.op.work() for time in times]
        return OperatorTime(
            name=given.name,
            sizes=given.sizes,
            count=count,
            measured=given.measured,
            category=given.category,
            predicted=count * sum(time.seconds for time in times),
            low=count * sum(time.priced.low for time in times),
            high=count * sum(time.priced.high for time in times),
            kernel=longest.priced.kernel,
            limiter=longest.priced.limiter,
            flops=count * sum(sum((work.flops or {}).values()) for work in works),
            bytes=count * sum(work.bytes or 0.0 for work in works),
        )

    @property
    def notes(self) -> list[str]:
        """What was assumed."""
        found = [
            f"{why}: {', '.join(sorted(operators))}"
            for why, operators in self._prices.substituted.items()
        ]
        if self._prices.by_bytes:
            names = ", ".join(sorted(self._prices.by_bytes))
            found.append(f"priced as element-wise kernels of the same bytes: {names}")
        return found


def _because(given: OperatorTime, why: str) -> OperatorTime:
    return OperatorTime(
        name=given.name, sizes=given.sizes, count=given.count, measured=given.measured,
        category=given.category, why_not=why,
    )  # fmt: skip


__all__ = ["NO_OPERATOR", "OperatorTime", "PredictedProfile", "predict"]
