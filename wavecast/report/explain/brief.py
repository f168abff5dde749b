"""A report of `explain` in a few lines or values: for logs, agents and editors.

Input is the document `wavecast.explain/1`, so that what another process wrote can be shown too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wavecast.report.kit import units

_DIGITS = 3
"""Digits of percentages and times in microseconds."""


def kernels(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each kernel on each device: its time in microseconds, what bounds it, registers, occupancy,
    and findings with their lines."""
    return [_kernel(entry) for entry in document["kernels"]]


def lines(document: Mapping[str, Any]) -> str:
    """One line for each kernel on each device, and one for each finding."""
    text_lines = []
    for entry in document["kernels"]:
        text_lines.append(line(entry))
        for finding in entry["findings"]:
            saved = finding["gain"]
            note = f" (saves {saved:.0%})" if saved else ""
            where = f":{finding['line']}" if finding["line"] is not None else ""
            text_lines.append(
                f"  {finding['severity']} {finding['rule']}{where} {finding['message']}{note}"
            )
    for failure in document["failures"]:
        what = " ".join(part for part in (failure["kernel"], failure["arch"]) if part)
        text_lines.append(f"not explained {what}: {failure['message']}")
    return "\n".join([*text_lines, ""]) if text_lines else ""


def line(entry: Mapping[str, Any]) -> str:
    """`matmul_kernel gfx942 24 µs (…), bound by latency · floor 1.23 µs · 126 VGPR · …`."""
    registers, occupancy = entry["registers"], entry["occupancy"]
    parts = [f"{entry['label']} {entry['arch']} {time(entry)}"]
    floor = entry["roofline"]["floor_seconds"]
    if floor is not None:
        parts.append(f"floor {units.seconds(floor)}")
    parts.append(f"{registers['vgpr'] + registers['agpr']} VGPR")
    spilled = registers["spilled"]
    parts.append(f"{spilled} spilled" if spilled else "no spills")
    parts.append(f"{occupancy['waves_per_simd']}/{occupancy['max_waves_per_simd']} waves/SIMD")
    return " · ".join(parts)


def time(entry: Mapping[str, Any]) -> str:
    """`24 µs (18.7 µs to 35.2 µs), bound by latency`, or why there is no prediction."""
    prediction = entry["prediction"]
    if prediction is None:
        return f"not predicted: {entry['prediction_why_not']}"
    interval = f"{units.seconds(prediction['low'])} to {units.seconds(prediction['high'])}"
    return f"{units.seconds(prediction['seconds'])} ({interval}), bound by {prediction['limiter']}"


def _kernel(entry: Mapping[str, Any]) -> dict[str, Any]:
    prediction, registers, occupancy = entry["prediction"], entry["registers"], entry["occupancy"]
    return {
        "kernel": entry["label"],
        "arch": entry["arch"],
        "device": entry["device"],
        "microseconds": _microseconds(prediction and prediction["seconds"]),
        "interval_microseconds": prediction
        and [_microseconds(prediction["low"]), _microseconds(prediction["high"])],
        "bound_by": prediction["limiter"] if prediction else "",
        "not_predicted": entry["prediction_why_not"],
        "floor_microseconds": _microseconds(entry["roofline"]["floor_seconds"]),
        "vgpr": registers["vgpr"],
        "agpr": registers["agpr"],
        "spilled": registers["spilled"],
        "lds_bytes": entry["lds_bytes"],
        "waves_per_simd": [occupancy["waves_per_simd"], occupancy["max_waves_per_simd"]],
        "occupancy_limiter": occupancy["limiter"],
        "findings": [
            {
                "severity": finding["severity"],
                "rule": finding["rule"],
                "lines": finding["lines"],
                "message": finding["message"],
                "saves": None if finding["gain"] is None else round(finding["gain"], _DIGITS),
                "advice": finding["advice"],
            }
            for finding in entry["findings"]
        ],
    }


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds * 1e6:.4g}")
