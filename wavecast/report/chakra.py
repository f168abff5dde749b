"""Served models and modules as Chakra execution traces, a file per rank: what network simulators
such as ASTRA-sim read.

The kernels of a rank follow each other as its stream runs them, each after what the host did
before it. `COMP_NODE` is a kernel or work of the host, `COMM_COLL_NODE` a collective among a group
of ranks; `comm_groups.json` has the ranks of the groups. Ranks compute the same.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wavecast.errors import InputError, Unpredictable, UsageError
from wavecast.model.ops.collectives import Collective
from wavecast.report import chakra_schema as schema
from wavecast.systems.slices import HOST, TimelineSlice
from wavecast.systems.timeline import timeline
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer
    from wavecast.systems.sources.answer import ModuleAnswer
    from wavecast.systems.training.answer import TrainingAnswer

GROUPS: Final = "comm_groups.json"
_EXCHANGES: Final = {"dispatch": "ALL_TO_ALL", "combine": "ALL_TO_ALL"}
"""Exchanges of tokens by the collective of Chakra that moves as many bytes."""
_MICRO: Final = 1e6
_ROUNDING: Final = 1 + 1e-9

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankedRun:
    """What every one of `ranks` GPUs does, as slices, and the beginning of its files' names."""

    name: str
    slices: tuple[TimelineSlice, ...]
    ranks: int


def served(answers: Sequence[ModelAnswer]) -> list[RankedRun]:
    """The decode and the prefill step of every load on every system, on all GPUs."""
    found = []
    for answer in answers:
        for serving in answer.servings:
            load = serving.load
            rate = f"c{load.concurrency}" if load.concurrency else f"r{load.rate:g}"
            of = f"{answer.architecture.name}-{answer.system}-{load.prompt}-{load.output}-{rate}"
            for step, time, kernels in (
                ("decode", serving.decode, serving.kernels),
                ("prefill", serving.prefill, serving.prefill_kernels),
            ):
                slices = tuple(timeline(time, kernels, answer.engine))
                found.append(RankedRun(_slug(f"{of}-{step}"), slices, answer.parallel.gpus))
    return found


def trained(answers: Sequence[TrainingAnswer]) -> list[RankedRun]:
    """Raises UsageError: the timeline of a training has phases of micro-batches, no kernels."""
    names = ", ".join(answer.architecture.name for answer in answers)
    raise UsageError(f"training {names}: no Chakra trace, its timeline has phases, not kernels")


def modules(answers: Sequence[ModuleAnswer]) -> list[RankedRun]:
    """A run on every GPU."""
    return [
        RankedRun(_slug(f"{answer.graph.name}-{answer.device.id}"), answer.slices, 1)
        for answer in answers
    ]


def write(runs: Iterable[RankedRun], folder: Path) -> list[Path]:
    """Write the traces into a folder that is made: `NAME.RANK.et` and the groups of ranks.

    Raises MissingTool without protobuf, Unpredictable for a collective whose ranks do not divide
    those of the run, InputError for a folder that cannot be written.
    """
    groups: dict[Group, int] = {}
    found = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for run in runs:
            for rank in range(run.ranks):
                path = folder / f"{run.name}.{rank}.et"
                path.write_bytes(b"".join(_messages(run, rank, groups)))
                found.append(path)
        named = {str(number): list(ranks) for ranks, number in groups.items()}
        path = folder / GROUPS
        path.write_text(json.dumps(named, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    return [*found, path]


def _messages(run: RankedRun, rank: int, groups: dict[Group, int]) -> Iterator[bytes]:
    about = {"name": run.name, "rank": rank, "wavecast": __version__}
    metadata = schema.messages().GlobalMetadata(
        version=schema.VERSION, attr=schema.attributes(about)
    )
    yield schema.delimited(metadata)
    ends: list[float] = []
    host: list[int] = []
    last: list[int] = []
    for number, one in enumerate(run.slices):
        if one.track == HOST:
            after = host[-1:]
            ends.append(one.end)
            host.append(number)
        else:
            ended = bisect_right(ends, one.start * _ROUNDING)
            after = host[:ended][-1:] + last
            last = [number]
        yield schema.delimited(_node(number, one, after, run.ranks, rank, groups))


def _node(
    number: int,
    one: TimelineSlice,
    after: Sequence[int],
    ranks: int,
    rank: int,
    groups: dict[Group, int],
) -> Any:
    start = round(one.start * _MICRO)
    about: dict[str, bool | int | float | str] = {
        "is_cpu_op": one.track == HOST,
        "seconds": float(one.seconds),
    }
    kind = "COMP_NODE"
    if one.where:
        about["where"] = one.where
    if one.priced is not None:
        op = one.priced.node.op
        about |= {
            "seconds_low": float(one.priced.low),
            "seconds_high": float(one.priced.high),
            "operation": str(op),
            "kernel": one.priced.kernel,
        }
        if isinstance(op, Collective):
            kind = "COMM_COLL_NODE"
            members = _members(op, rank, ranks)
            function = _EXCHANGES.get(op.function, op.function.upper())
            about |= {
                "comm_type": schema.COLLECTIVES[function],
                "comm_size": int(op.bytes),
                "pg_name": str(groups.setdefault(members, len(groups) + 1)),
            }
        else:
            work = op.work()
            about |= {
                "num_ops": int(sum((work.flops or {}).values())),
                "tensor_size": int(work.bytes or 0),
            }
    return schema.messages().Node(
        id=number,
        name=one.name,
        type=schema.NODE_TYPES[kind],
        data_deps=after,
        start_time_micros=start,
        duration_micros=round(one.end * _MICRO) - start,
        attr=schema.attributes(about),
    )


def _members(op: Collective, rank: int, ranks: int) -> Group:
    """The ranks of a rank's group: groups are next to each other."""
    if ranks % op.gpus:
        raise Unpredictable(f"{op}: {ranks} ranks are not groups of {op.gpus}")
    first = rank // op.gpus * op.gpus
    return tuple(range(first, first + op.gpus))


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.+_-]+", "-", text).strip("-")


__all__ = ["GROUPS", "RankedRun", "modules", "served", "trained", "write"]
