"""Served models, training and modules as Chrome trace-event files, which Perfetto shows: a process
per step, a track for the host, the stream of the GPU, its collectives, or a stage. Ranks of one
stage are alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.report.execution.perfetto import complete, name_event
from wavecast.report.systems import serving_words
from wavecast.systems.slices import TimelineSlice
from wavecast.systems.timeline import timeline
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer
    from wavecast.systems.sources.answer import ModuleAnswer
    from wavecast.systems.training.answer import TrainingAnswer


@dataclass(frozen=True, slots=True)
class TracedRun:
    """The slices of a run under a title."""

    title: str
    slices: tuple[TimelineSlice, ...]


def serving_runs(answers: Sequence[ModelAnswer]) -> list[TracedRun]:
    """The decode and the prefill step of every load on every system."""
    runs: list[TracedRun] = []
    for answer in answers:
        for serving in answer.servings:
            load = serving_words.load(serving.load)
            title = f"{answer.architecture.name} on {serving_words.short(answer)}, {load}"
            for name, step, kernels in (
                ("decode", serving.decode, serving.kernels),
                ("prefill", serving.prefill, serving.prefill_kernels),
            ):
                slices = tuple(timeline(step, kernels, answer.engine))
                runs.append(TracedRun(f"{title}: {name} step, one rank", slices))
    return runs


def training_runs(answers: Sequence[TrainingAnswer]) -> list[TracedRun]:
    """The first micro-batches on the stages of every system on which the training fits."""
    return [
        TracedRun(
            f"training {answer.architecture.name} on {answer.system.name}, {answer.setup}: "
            "the first micro-batches",
            answer.figures.timeline,
        )
        for answer in answers
        if answer.figures is not None
    ]


def modules(answers: Sequence[ModuleAnswer]) -> list[TracedRun]:
    """A run on every GPU."""
    return [
        TracedRun(f"{answer.graph.name} on {answer.device.name}", answer.slices)
        for answer in answers
    ]


def dumps(runs: Iterable[TracedRun]) -> str:
    """The trace of the runs as JSON text, a process each."""
    events: list[dict[str, Any]] = []
    for process, run in enumerate(runs, 1):
        events.append(name_event("process_name", process, 0, run.title))
        tracks = list(dict.fromkeys(timeline_slice.track for timeline_slice in run.slices))
        for thread, track in enumerate(tracks):
            events.append(name_event("thread_name", process, thread, track))
        for timeline_slice in run.slices:
            thread, start, length = (
                tracks.index(timeline_slice.track),
                timeline_slice.start * 1e6,
                timeline_slice.seconds * 1e6,
            )
            event = complete(
                timeline_slice.name, timeline_slice.group, process, thread, start, length
            )
            events.append({**event, "args": _about(timeline_slice)})
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"wavecast": __version__, "axis": "predicted time"},
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _about(timeline_slice: TimelineSlice) -> dict[str, str]:
    about = {"where": timeline_slice.where} if timeline_slice.where else {}
    if timeline_slice.priced is None:
        return about
    return about | {
        "operation": str(timeline_slice.priced.node.op),
        "bound by": timeline_slice.priced.limiter,
        "assumed": timeline_slice.priced.kernel,
    }


__all__ = ["TracedRun", "dumps", "modules", "serving_runs", "training_runs"]
