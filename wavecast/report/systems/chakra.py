"""Served models, trainings and modules as Chakra execution traces, a file per rank: what network
simulators such as ASTRA-sim read. `comm_groups.json` has the ranks of the groups of collectives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wavecast import files
from wavecast.errors import InputError, UsageError
from wavecast.report.systems.chakra_nodes import ChakraNode, Group, of_slices, of_stage
from wavecast.systems.chakra import schema
from wavecast.systems.slices import TimelineSlice
from wavecast.systems.timeline import timeline
from wavecast.systems.training.ranks import StageAction, stage_actions
from wavecast.systems.training.step import TrainingModel
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer
    from wavecast.systems.sources.answer import ModuleAnswer
    from wavecast.systems.training.answer import TrainingAnswer

GROUPS: Final = "comm_groups.json"
_MICRO: Final = 1e6
_MOST: Final = 1 << 21
"""Nodes of all ranks of a training."""


@dataclass(frozen=True, slots=True)
class RankedRun:
    """The nodes of every one of `ranks` GPUs, and the beginning of the names of their files."""

    name: str
    ranks: int
    nodes: Callable[[int], Iterator[ChakraNode]]


def serving_runs(answers: Sequence[ModelAnswer]) -> list[RankedRun]:
    """The decode and the prefill step of every load on every system, on all GPUs."""
    runs = []
    for answer in answers:
        for serving in answer.servings:
            load = serving.load
            rate = f"c{load.concurrency}" if load.concurrency else f"r{load.rate:g}"
            of = f"{answer.architecture.name}-{answer.system}-{load.prompt}-{load.output}-{rate}"
            for step, time, kernels in (
                ("decode", serving.decode, serving.kernels),
                ("prefill", serving.prefill, serving.prefill_kernels),
            ):
                slices = timeline(time, kernels, answer.engine)
                runs.append(_run_of_slices(f"{of}-{step}", slices, answer.parallel.gpus))
    return runs


def modules(answers: Sequence[ModuleAnswer]) -> list[RankedRun]:
    """A run on every GPU."""
    return [
        _run_of_slices(f"{answer.graph.name}-{answer.device.id}", answer.slices, 1)
        for answer in answers
    ]


def training_runs(answers: Sequence[TrainingAnswer]) -> list[RankedRun]:
    """A step of every training that fits, on all its GPUs. Raises UsageError for too many nodes."""
    runs = []
    for answer in answers:
        if answer.figures is None:
            continue
        setup = answer.setup
        stages = stage_actions(TrainingModel(answer.architecture, setup, answer.system))
        each = setup.gpus // len(stages)
        nodes = each * sum(map(len, stages))
        if nodes > _MOST:
            raise UsageError(
                f"Chakra traces of {setup.gpus:,} ranks have {nodes:,} nodes, at most {_MOST:,}",
                hint="fewer GPUs, or a larger --micro-batch",
            )
        name = _slug(f"{answer.architecture.name}-{answer.system}-{setup}")
        runs.append(RankedRun(name, setup.gpus, partial(_of_rank, stages, each)))
    return runs


def write(runs: Iterable[RankedRun], folder: Path) -> list[Path]:
    """Write the traces into a folder that is made: `NAME.RANK.et` and the groups of ranks.

    Raises MissingTool without protobuf, Unpredictable for a collective whose ranks do not divide
    those of the run, InputError for a folder that cannot be written.
    """
    groups: dict[Group, int] = {}
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for run in runs:
            for rank in range(run.ranks):
                path = folder / f"{run.name}.{rank}.et"
                files.write_atomic(path, b"".join(_messages(run, rank, groups)))
                paths.append(path)
        group_ranks = {str(number): list(ranks) for ranks, number in groups.items()}
        path = folder / GROUPS
        files.write_atomic(path, json.dumps(group_ranks, indent=2) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from error
    return [*paths, path]


def _run_of_slices(name: str, slices: Sequence[TimelineSlice], ranks: int) -> RankedRun:
    return RankedRun(_slug(name), ranks, lambda rank: of_slices(slices, rank, ranks))


def _of_rank(stages: Sequence[Sequence[StageAction]], each: int, rank: int) -> Iterator[ChakraNode]:
    return of_stage(stages[rank // each], rank, each)


def _messages(run: RankedRun, rank: int, groups: dict[Group, int]) -> Iterator[bytes]:
    about = {"name": run.name, "rank": rank, "wavecast": __version__}
    metadata = schema.messages().GlobalMetadata(
        version=schema.VERSION, attr=schema.attributes(about)
    )
    yield schema.encode_delimited(metadata)
    for number, node in enumerate(run.nodes(rank)):
        yield schema.encode_delimited(_message(number, node, groups))


def _message(number: int, node: ChakraNode, groups: dict[Group, int]) -> Any:
    start = round(node.start * _MICRO)
    about = dict(node.about)
    if node.members:
        about["pg_name"] = str(groups.setdefault(node.members, len(groups) + 1))
    return schema.messages().Node(
        id=number,
        name=node.name,
        type=schema.NODE_TYPES[node.kind],
        data_deps=node.after,
        start_time_micros=start,
        duration_micros=round(node.end * _MICRO) - start,
        attr=schema.attributes(about),
    )


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.+_-]+", "-", text).strip("-")


__all__ = ["GROUPS", "RankedRun", "modules", "serving_runs", "training_runs", "write"]
