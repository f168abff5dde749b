"""Steps of served models as a Chrome trace-event file, which Perfetto shows: one process per step,
tracks for the host, the stream of the GPU and its collectives. All ranks are alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wavecast.report import systems_words
from wavecast.report.perfetto import complete, named
from wavecast.systems.timeline import TRACKS, timeline
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.study import ModelStudy


def dumps(study: ModelStudy) -> str:
    """The decode and the prefill step of every load on every system, as JSON text."""
    events: list[dict[str, Any]] = []
    process = 0
    for answer in study.answers:
        for serving in answer.servings:
            steps = {
                "decode": (serving.decode, serving.kernels),
                "prefill": (serving.prefill, serving.prefill_kernels),
            }
            for name, (step, kernels) in steps.items():
                process += 1
                load = systems_words.load(serving.load)
                title = f"{answer.architecture.name} on {systems_words.short(answer)}, {load}"
                events.append(named("process_name", process, 0, f"{title}: {name} step, one rank"))
                for thread, track in enumerate(TRACKS):
                    events.append(named("thread_name", process, thread, track))
                for one in timeline(step, kernels, answer.engine):
                    thread = TRACKS.index(one.track)
                    about: dict[str, Any] = {"layer": one.layer}
                    if one.kernel is not None:
                        priced = one.kernel.priced
                        about |= {
                            "operation": str(priced.node.op),
                            "bound by": priced.limiter,
                            "assumed": priced.kernel,
                        }
                    start, length = one.start * 1e6, one.seconds * 1e6
                    kind = "host" if one.kernel is None else one.kernel.priced.node.module
                    event = complete(one.name, kind, process, thread, start, length)
                    events.append({**event, "args": about})
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"wavecast": __version__, "axis": "predicted time"},
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


__all__ = ["dumps"]
