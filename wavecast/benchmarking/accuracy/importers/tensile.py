"""Tensile logic (YAML), in the columns of `gemm_tensile`.

A file is a list: version, schedule, architecture, devices, problem type, solutions, index order,
and as element 7 the measured winners `[[M, N, batch, K, strides…], [solution, speed]]`
(ROCm/Tensile, Tensile/LibraryIO.py). The speed is in GFLOP/s, or an efficiency, which gives no
time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wavecast.benchmarking.accuracy.importers.base import MeasurementTable, convert_rows
from wavecast.errors import ParseError

_LEAST = 8  # elements up to the winners
_DTYPES = {
    0: "fp32",
    1: "fp64",
    2: "c64",
    3: "c128",
    4: "fp16",
    5: "int8",
    6: "int32",
    7: "bf16",
    8: "int8",
    10: "xf32",
    11: "fp8",
    12: "bf8",
    13: "fp8bf8",
    14: "bf8fp8",
    "S": "fp32",
    "D": "fp64",
    "C": "c64",
    "Z": "c128",
    "H": "fp16",
    "4xi8": "int8",
    "I": "int32",
    "B": "bf16",
    "I8": "int8",
    "X": "xf32",
    "F8": "fp8",
    "B8": "bf8",
}
"""Tensile's data types, by number and by letter."""


def logic(path: Path) -> MeasurementTable:
    """One row per measured winner; winners that cannot be read are counted.

    Raises ParseError for a file that is not YAML or no logic, and ValueError where no winner can be
    read.
    """
    import pandas as pd
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), loader)
    except yaml.YAMLError as error:
        raise ParseError(f"not YAML: {str(error).splitlines()[0]}", file=path, line=1) from None
    if not isinstance(data, list) or len(data) < _LEAST or not isinstance(data[4], dict):
        raise ParseError("not the logic of a Tensile library", file=path, line=1)
    about = _about(data, path)
    kernels = [str(solution.get("SolutionNameMin", "")) for solution in data[5] or ()]
    efficiency = any(isinstance(item, str) and "Efficiency" in item for item in data[8:])
    records, rejected = convert_rows(
        data[7] or (), lambda winner: _row(winner, about, kernels, efficiency)
    )
    return MeasurementTable(pd.DataFrame(records), rejected)


def _about(data: list[Any], path: Path) -> dict[str, Any]:
    """Cells that are equal in all rows of a file."""
    problem, chip = data[4], data[2]
    units = chip.get("CUCount") if isinstance(chip, dict) else None
    dtype = _dtype(problem.get("DataType"))
    return {
        "source_path": path.name,
        "arch": chip["Architecture"] if isinstance(chip, dict) else str(chip),
        "schedule": str(data[1]),
        "devices": ", ".join(str(item) for item in data[3]),
        "cu_count": float(units) if units else float("nan"),
        "op": "gemm",
        "dtype_a": dtype,
        "dtype_b": _dtype(problem.get("DataTypeB", problem.get("DataType"))),
        "dtype_out": _dtype(problem.get("DestDataType", problem.get("DataType"))),
        "compute": _dtype(problem.get("ComputeDataType", problem.get("DataType"))),
        "transA": "T" if problem.get("TransposeA") else "N",
        "transB": "T" if problem.get("TransposeB") else "N",
        "trust": "medium",
        "usable": True,
        "row_flags": "",
    }


def _row(
    winner: Any, about: dict[str, Any], kernels: list[str], efficiency: bool
) -> dict[str, Any]:
    sizes, (solution, speed) = winner
    m, n, batch, k = sizes[:4]
    has_speed = speed > 0 and not efficiency
    return {
        **about,
        "M": m,
        "N": n,
        "K": k,
        "batch": batch,
        "strides": ",".join(str(size) for size in sizes[4:]),
        "sol_index": solution,
        "kernel": kernels[solution] if 0 <= solution < len(kernels) else "",
        "value": float(speed),
        "unit": "eff_pct" if efficiency else "GFLOPS",
        "time_us": 2 * m * n * k * batch / (speed * 1e3) if has_speed else float("nan"),
    }


def _dtype(name: object) -> str:
    return _DTYPES.get(name, str(name))  # pyright: ignore[reportArgumentType]
