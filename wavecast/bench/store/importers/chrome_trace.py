"""Chrome traces of torch.profiler (github.com/pytorch/kineto, libkineto/src/output_json.cpp).

Kernels are events of phase `X` and category `kernel` with `dur` in microseconds; `args` hold
`device`, `grid` and `block`; `deviceProperties` name the GPUs where Kineto knows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wavecast.bench.records import Scalar
from wavecast.bench.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.bench.store.importers.timings import (
    ImportedTiming,
    grouped,
    imported,
    kernel,
    launch,
)


def recognise(source: ImportedFile) -> bool:
    """A document with trace events, or a list of them."""
    document = source.json
    if isinstance(document, dict):
        return isinstance(document.get("traceEvents"), list)
    return isinstance(document, list) and bool(document) and all(
        isinstance(event, dict) and "ph" in event for event in document[:16]
    )  # fmt: skip


def read(source: ImportedFile, given: ImportLabels) -> Imported:
    """Kernels, by name and size of launch."""
    document = source.json
    events = document["traceEvents"] if isinstance(document, dict) else document
    properties = document.get("deviceProperties", []) if isinstance(document, dict) else []
    boards = {device["id"]: device for device in properties}
    found = grouped(_times(events, boards))
    return imported(source, "chrome-trace", found, given)


def _times(
    events: Sequence[Mapping[str, Any]], boards: Mapping[int, Mapping[str, Any]]
) -> Iterator[tuple[ImportedTiming, float]]:
    for event in events:
        if event.get("ph") != "X" or str(event.get("cat", "")).lower() != "kernel":
            continue
        about = event.get("args") or {}
        axes: dict[str, Scalar] = {}
        if "grid" in about and "block" in about:
            axes = launch(about["grid"], about["block"])
        board = boards.get(about.get("device", 0), {}).get("name", "")
        yield ImportedTiming(kernel(event["name"], axes), board=board), float(event["dur"]) * 1e-6


__all__ = ["read", "recognise"]
