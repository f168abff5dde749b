"""NVBench's JSON (github.com/NVIDIA/nvbench, json_printer.cu and its script nvbench_compare.py).

`benchmarks[].states[]` hold `axis_values` and `summaries`; a summary has a `tag` and `data`, values
with name, type and value, the latter as text where it is a number. Taken are the samples that
`--jsonbin` stores next to the file (32-bit floats), else the median of the GPU's cold times, else
their mean. Seconds.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from wavecast import files
from wavecast.benchmarking.records import BenchSubject, Scalar
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.benchmarking.store.importers.timings import About, ImportedTiming, import_timings
from wavecast.errors import InputError

_TIMES: Final = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean")
_SAMPLES: Final = "nv/json/bin:nv/cold/sample_times"


def recognise(source: ImportedFile) -> bool:
    """A document with devices and benchmarks that have states."""
    document = source.json
    return isinstance(document, dict) and "devices" in document and any(
        "states" in benchmark for benchmark in document.get("benchmarks") or ()
    )  # fmt: skip


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Every state that was not skipped."""
    boards = {device["id"]: device for device in source.json["devices"]}
    timings: list[ImportedTiming] = []
    notes: list[str] = []
    for benchmark in source.json["benchmarks"]:
        for state in benchmark["states"]:
            where = f"{benchmark['name']} {state.get('name', '')}".strip()
            if state.get("is_skipped"):
                notes.append(f"{where}: skipped, {state.get('skip_reason', 'no reason given')}")
                continue
            summaries = _summaries(state)
            samples = _samples(source, summaries)
            value, name = _value(summaries)
            if not samples and value is None:
                notes.append(f"{where}: no GPU time")
                continue
            board = boards.get(state["device"], {})
            version = int(board.get("sm_version", 0))
            timings.append(
                ImportedTiming(
                    BenchSubject("callable", benchmark["name"], _axes(state)),
                    samples,
                    None if samples else value,
                    board.get("name", ""),
                    f"sm_{version // 10}" if version else "",
                    cache="cold",
                    notes=() if samples or name == _TIMES[0] else ("mean, no median was kept",),
                )
            )
    return import_timings(source, "nvbench", timings, labels, About(notes=tuple(notes)))


def _axes(state: Mapping[str, Any]) -> dict[str, Scalar]:
    kinds = {"int64": int, "float64": float}
    return {
        axis["name"]: kinds.get(axis["type"], str)(axis["value"])
        for axis in state.get("axis_values") or ()
    }


def _summaries(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        summary["tag"]: {datum["name"]: datum["value"] for datum in summary["data"]}
        for summary in state.get("summaries") or ()
    }


def _value(summaries: Mapping[str, Mapping[str, Any]]) -> tuple[float | None, str]:
    for tag in _TIMES:
        value = summaries.get(tag, {}).get("value")
        if value is not None:
            return float(value), tag
    return None, ""


def _samples(source: ImportedFile, summaries: Mapping[str, Mapping[str, Any]]) -> tuple[float, ...]:
    about = summaries.get(_SAMPLES)
    if about is None:
        return ()
    path = source.path.parent / about["filename"]
    count = int(about["size"])
    try:
        content = files.read(path)
    except InputError as error:
        raise InputError(f"{source.path} names its samples: {error}") from None
    if len(content) != 4 * count:
        raise InputError(f"{path} has {len(content)} bytes, {count} samples have {4 * count}")
    return struct.unpack(f"<{count}f", content)


__all__ = ["read", "recognise"]
