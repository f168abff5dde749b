"""MIOpen find databases (`gfx90a6e.HIP.fdb.txt`), in the columns of `conv_miopen`.

A line is `key=solver:time,workspace,algorithm…;solver:…` with milliseconds and bytes; a key is

    C-H-W-RxS-K-Ho-Wo-N-pad-stride-dilation-bias-layout-dtype-direction[_gGROUPS]

with a depth before each H and a third kernel, pad … size where a convolution is 3D (MIOpen,
src/conv/problem_description.cpp and src/include/miopen/perf_field.hpp). Backward keys name the
gradient first: here C, H, W are always of the input x and K, Ho, Wo of the output y.
"""

from __future__ import annotations

import bz2
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wavecast.arch import capabilities
from wavecast.benchmarking.accuracy.importers.base import MeasurementTable, convert_rows
from wavecast.errors import ParseError

_KEY = re.compile(
    r"(?P<C>\d+)-(?P<input>\d+-\d+(?:-\d+)?)-(?P<kernel>\d+x\d+(?:x\d+)?)-"
    r"(?P<K>\d+)-(?P<output>\d+-\d+(?:-\d+)?)-(?P<N>\d+)-"
    r"(?P<pad>[\dx]+)-(?P<stride>[\dx]+)-(?P<dilation>[\dx]+)-(?P<bias>\d+)-"
    r"(?P<layout>N[A-Za-z]+(?:-[A-Z][A-Za-z]+)*)-(?P<dtype>[A-Z]+\d+)-"
    r"(?P<direction>[FBW])(?:_g(?P<groups>\d+))?"
)
_NAME = re.compile(
    r"(?P<target>gfx(?:9\d[0-9a-f]|1\d{3}))(?:_(?P<units>\d+)|(?P<hex>[0-9a-f]{2}))?"
)
_NAIVE = "ConvDirectNaive"


def find_db(path: Path) -> MeasurementTable:
    """One row per solver of every problem; lines that cannot be parsed are counted.

    Raises ParseError for a name without a target, and ValueError where no line can be parsed.
    """
    import pandas as pd

    target, units = _device(path.name)
    packed = path.name.endswith(".bz2")
    with bz2.open(path, "rt") if packed else path.open(encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    records, rejected = convert_rows(lines, _solvers)
    about = {"arch": target, "cu_count": units, "source_path": path.name}
    rows = [{**about, **row} for line in records for row in line["solvers"]]
    return MeasurementTable(pd.DataFrame(rows), rejected)


def _device(name: str) -> tuple[str, float]:
    """Target and compute units: hexadecimal after a CDNA target; after an RDNA target `_` and the
    number of WGPs."""
    match = _NAME.match(name)
    if match is None:
        raise ParseError(f"{name}: the name of a find database must start with its target")
    if match["hex"]:
        return match["target"], float(int(match["hex"], 16))
    if match["units"]:
        per_unit = 2 if capabilities(match["target"]).wgp_mode else 1
        return match["target"], float(match["units"]) * per_unit
    return match["target"], float("nan")


def _solvers(line: str) -> Mapping[str, Any]:
    return {"solvers": list(_line(line))}


def _line(line: str) -> Iterator[dict[str, Any]]:
    key, equal, values = line.partition("=")
    match = _KEY.fullmatch(key)
    if not equal or match is None:
        raise ParseError(f"{key[:80]!r} is not a convolution")
    problem = _problem(match)
    solvers = [_solver(value) for value in values.split(";") if value]
    best = min((time for _, time, _, _ in solvers), default=0.0)
    for solver, milliseconds, workspace, algorithm in solvers:
        yield {
            "op": "conv",
            **problem,
            "solver": solver,
            "algo": algorithm.removeprefix("miopenConvolution"),
            "workspace_bytes": workspace,
            "time_us": milliseconds * 1e3,
            "row_flags": "naive_reference_kernel" if solver.startswith(_NAIVE) else "",
            "usable": True,
            "best_for_problem": milliseconds == best,
        }


def _solver(value: str) -> tuple[str, float, int, str]:
    """Solver, milliseconds, workspace and algorithm, in the order of either release of MIOpen."""
    name, colon, rest = value.partition(":")
    parts = rest.split(",")
    if len(parts) > 1 and not _is_number(parts[0]):  # `algorithm:solver,time,workspace,…`
        name, algorithm, parts = parts[0], name, parts[1:]
    else:
        algorithm = parts[2] if len(parts) > 2 else ""
    if not colon or len(parts) < 2 or not (_is_number(parts[0]) and parts[1].isdigit()):
        raise ParseError(f"{value[:80]!r} is not a time of a solver")
    return name, float(parts[0]), int(parts[1]), algorithm


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[\d.]+(?:e[-+]?\d+)?", text) is not None


def _problem(key: re.Match[str]) -> dict[str, Any]:
    first = (int(key["C"]), _sizes(key["input"], "-", 1))
    second = (int(key["K"]), _sizes(key["output"], "-", 1))
    if key["direction"] != "F":
        first, second = second, first
    (c, (d, h, w)), (k, (out_d, out_h, out_w)) = first, second
    z, r, s = _sizes(key["kernel"], "x", 1)
    return {
        "direction": key["direction"],
        "dtype": key["dtype"].lower(),
        "layout": key["layout"],
        "N": int(key["N"]),
        "C": c,
        "D": d,
        "H": h,
        "W": w,
        "K": k,
        "Z": z,
        "R": r,
        "S": s,
        "Do": out_d,
        "Ho": out_h,
        "Wo": out_w,
        **{name: key[name] for name in ("pad", "stride", "dilation")},
        "groups": int(key["groups"] or 1),
    }


def _sizes(text: str, separator: str, depth: int) -> tuple[int, int, int]:
    """Depth, height, width; `depth` where there are two."""
    sizes = [int(part) for part in text.split(separator)]
    first, second, third = sizes if len(sizes) == 3 else (depth, *sizes)
    return first, second, third
