"""Search of the schedule of a collective: algorithms per level, protocols, pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.arch.systems import System
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.perfmodel.ops.collectives.algorithms import PROTOCOLS
from wavecast.perfmodel.prediction import Prediction
from wavecast.systems.collectives.exchange import ALL_TO_ALL, EXCHANGES, exchange_schedules
from wavecast.systems.collectives.exchange_time import exchange_time
from wavecast.systems.collectives.schedule import FUNCTIONS, schedules
from wavecast.systems.collectives.simulate import Cluster, ScheduleTime, simulate

PIECES: Final = (1, 2, 4, 8, 16)
CHANGES: Final = ("links", "network", "latency")


@dataclass(frozen=True, slots=True)
class CollectiveAnswer:
    """A collective on a system: simulated schedules, fastest first, and `library`, what the formula
    of NCCL or RCCL predicts, of an exchange of tokens the formula of its kernels. `changes` has the
    fastest schedule of each change. `topk` are the experts of a token, 0 where there are none."""

    function: str
    size: int
    topk: int
    system: System
    cluster: Cluster
    found: tuple[ScheduleTime, ...]
    library: Prediction
    changes: Mapping[str, ScheduleTime]

    @property
    def best(self) -> ScheduleTime:
        """The fastest schedule."""
        return self.found[0]

    def interval(self, time: ScheduleTime) -> tuple[float, float]:
        """The 80 % interval of a simulated time: that of the library's, scaled."""
        scale = time.seconds / self.library.seconds
        return self.library.low * scale, self.library.high * scale


def search(function: str, size: float, cluster: Cluster, topk: int = 0) -> tuple[ScheduleTime, ...]:
    """Every schedule with its best protocol and number of pieces, fastest first.

    Raises UnknownName for another function, UsageError for fewer than two GPUs.
    """
    _check(function, topk)
    group = cluster.group
    if group.ranks < 2:
        raise UsageError("a collective needs two GPUs or more")
    if function in (*EXCHANGES, ALL_TO_ALL):
        times = [
            min(
                (
                    exchange_time(schedule, cluster, size, topk, pieces)
                    for pieces in (PIECES if schedule.rounds > 1 else PIECES[:1])
                ),
                key=lambda time: time.seconds,
            )
            for schedule in exchange_schedules(function, group.local, group.nodes)
        ]
        return tuple(sorted(times, key=lambda time: time.seconds))
    times = [
        min(
            (
                simulate(schedule, cluster, size, protocol, pieces)
                for protocol in PROTOCOLS
                for pieces in (PIECES if len(schedule.phases) > 1 else PIECES[:1])
            ),
            key=lambda time: time.seconds,
        )
        for schedule in schedules(function, group.local, group.nodes)
    ]
    return tuple(sorted(times, key=lambda time: time.seconds))


def answer(
    function: str,
    size: int,
    system: System,
    *,
    oversubscription: float = 1.0,
    leaf: int = 32,
    changes: str = "",
    topk: int = 0,
) -> CollectiveAnswer:
    """A collective of `size` bytes on all GPUs of a system; of dispatch and combine they are the
    tokens of a GPU, each once, which have `topk` experts.

    `changes` are like `links*2; network/2; latency*0.5`. Raises UsageError for others, and as
    `search`.
    """
    _check(function, topk)
    cluster = Cluster(system.device, system.group(system.gpus), oversubscription, leaf)
    library = Collective(function, size, system.gpus, group=cluster.group, topk=topk).predict(
        system.device
    )
    varied = {
        text: search(function, size, cluster.scale(**{name: factor}), topk)[0]
        for text, name, factor in map(_change, filter(None, map(str.strip, changes.split(";"))))
    }
    times = search(function, size, cluster, topk)
    return CollectiveAnswer(function, size, topk, system, cluster, times, library, varied)


def _check(function: str, topk: int) -> None:
    names = (*FUNCTIONS, ALL_TO_ALL, *EXCHANGES)
    if function not in names:
        raise UnknownName("collective", function, names)
    if (topk > 0) != (function in EXCHANGES):
        raise UsageError(
            f"{function}: only dispatch and combine have experts per token, and need them",
            hint="NAME:SIZE:EXPERTS, dispatch:14M:8",
        )


def _change(text: str) -> tuple[str, str, float]:
    sign = "*" if "*" in text else "/"
    name, _, number = (part.strip() for part in text.partition(sign))
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if name not in CHANGES or not 0 < factor < 1e6:
        raise UsageError(f"{text!r} is not a change: NAME*FACTOR of {', '.join(CHANGES)}")
    return text, name, factor if sign == "*" else 1 / factor


__all__ = ["CHANGES", "PIECES", "CollectiveAnswer", "answer", "search"]
