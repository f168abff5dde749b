"""Collectives among the measured systems: NCCL, engines' all-reduces, exchanges of experts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from wavecast import arch
from wavecast.arch.systems import node_size, system
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.base import each, rows
from wavecast.errors import UnknownName
from wavecast.perfmodel.ops.collectives import FUNCTIONS, Collective
from wavecast.perfmodel.ops.collectives.algorithms import EXCHANGE_KERNELS

if TYPE_CHECKING:
    import pandas as pd

ENGINES: Final = ("vllm", "sglang")
_SHAPE: Final = (4096, 7168, 8)
"""Tokens, elements and experts of a token of the runs that name the shape of DeepSeek-V3."""
_SCALES: Final = 1 + 4 / 128
"""Bytes of an fp8 element with its share of a scale per 128."""


def cases(frame: pd.DataFrame) -> Iterator[Case]:
    """A case per row of `phase` collective; the reason where it has no op."""
    collective_rows = (row for row in rows(frame) if row.get("phase") == "collective")
    for case in each(collective_rows, _case):
        assert isinstance(case, Case)
        yield case


def _case(row: Mapping[str, Any]) -> Case:
    device, ranks = _device(str(row["gpu"])), int(row["n_gpus"])
    text, function = str(row["notes"]), str(row["model"])
    parameters = dict(re.findall(r"(\w+)=([^;]+)", text))
    library = str(row["framework"]).split()[0].lower()
    op, seconds, reason = None, float(row["value"]) * 1e-6, ""
    if not device:
        reason = f"the links between {row['gpu']} are those of its host, which is not named"
    elif function.startswith("ep_"):
        op, seconds, reason = _exchange(row, function, parameters, device, ranks)
    else:
        op, reason = _collective(row, function, parameters, library, ranks)
        if row["unit"] != "us":
            op, reason = None, "another metric of a run whose time is a row"
    return Case(
        kind="collective",
        op=op,
        device=device if op else "",
        seconds=seconds,
        group=str(row["source_repo"]),
        labels={"function": function, "library": library, "ranks": str(ranks)},
        source=f"{row['source_repo']}:{row['source_path']}",
        reason=reason,
    )


def _device(name: str) -> str:
    """The device of a name such as "H100 (SM90)"; "" where the links of a node are not known: those
    of PCIe cards are the host's."""
    try:
        device = arch.load(name.partition("(")[0].strip())
    except UnknownName:
        return ""
    return device.id if node_size(device) > 1 else ""


def _collective(
    row: Mapping[str, Any], function: str, parameters: Mapping[str, str], library: str, ranks: int
) -> tuple[Collective | None, str]:
    function = {"alltoall": "all_to_all"}.get(function, function)
    if function not in FUNCTIONS:
        return None, f"the model does not know the collective {function}"
    if "eager" in parameters.get("kernel_source", ""):
        return None, "called by the host each time: the time of the host"
    if library not in (*ENGINES, "nccl"):
        return None, f"the thresholds of {library} are not known"
    size = int(row["isl"])  # bytes
    return Collective(function, size, ranks, library=library if library in ENGINES else ""), ""


def _exchange(
    row: Mapping[str, Any], function: str, parameters: Mapping[str, str], device: str, ranks: int
) -> tuple[Collective | None, float, str]:
    """DeepEP and its relatives; a bandwidth is bytes to the nodes (GPUs of one node) over time."""
    nodes = int(row["nodes"])
    kind = "dispatch" if "dispatch" in function else "combine"
    narrow = str(row.get("precision", "")) == "fp8" or "precision" not in row
    element = _SCALES if kind == "dispatch" and narrow else 2.0
    tokens, hidden, topk = _SHAPE
    seconds, reason = float(row["value"]) * 1e-6, ""
    if "hidden_size" in parameters:
        tokens, hidden, topk = (
            int(row["isl"]),
            int(parameters["hidden_size"]),
            int(parameters["num_topk"]),
        )
        if "notify" in function:
            reason = "the exchange of sizes alone"
        elif int(parameters.get("dispatch_sms", 24)) < 20:
            reason = "few workgroups copy"
    elif "128 tok" in str(row["notes"]):
        tokens = 128
    size = tokens * hidden * element
    if row["unit"] == "GB/s":
        if "4096 tok x 7168" not in str(row["notes"]) or "part" in str(row["notes"]):
            return None, seconds, "a bandwidth whose bytes are not named"
        parts = nodes if nodes > 1 else ranks
        copies = parts * (1 - (1 - 1 / parts) ** topk)
        seconds = size * copies / (float(row["value"]) * 1e9)
    if "_ll" in function and row["unit"] == "GB/s":
        reason = "another metric of a run whose time is a row"
    if reason:
        return None, seconds, reason
    group = system(f"{nodes}x{ranks // nodes}x{device}").group(ranks)
    kernels = EXCHANGE_KERNELS["_ll" not in function]
    op = Collective(kind, round(size), ranks, topk=topk, group=group, library=kernels)
    return op, seconds, ""


__all__ = ["ENGINES", "cases"]
