"""Tensile logic: the kernel a BLAS library launches for each size, and its speed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers import tensile
from wavecast.benchmarking.accuracy.importers.base import Importer, each, rows
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.formats import activation, canonical

if TYPE_CHECKING:
    import pandas as pd

_TILE = re.compile(r"_MT(\d+)x(\d+)x(\d+)")
_SPLITS = re.compile(r"_GSU(\d+)")


class GemmTensile(Importer):
    """One row per size, with the kernel whose name says its tile."""

    name: ClassVar[str] = "gemm_tensile"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset(
            {
                *("arch", "cu_count", "dtype_a", "dtype_out", "transA", "transB"),
                *("M", "N", "K", "batch", "kernel", "sol_index", "time_us"),
            }
        ),
    )
    readers: ClassVar = {".yaml": tensile.logic, ".yml": tensile.logic}

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(rows(frame.astype(object)), _case)


def _case(row: Mapping[str, Any]) -> Case:
    device, unsure = device_of(str(row["arch"]), row.get("cu_count"))
    dtype = canonical(str(row["dtype_a"]))
    op, reason = None, "" if device else unsure
    try:
        op = _op(row, dtype)
    except WavecastError as error:
        reason = str(error)
    return Case(
        kind="gemm",
        op=op,
        device=device,
        seconds=float(row["time_us"]) * 1e-6,
        group=str(row.get("source_path", "")),
        labels={
            "dtype": dtype,
            "library": op.library if op else "",
            "layout": f"{row['transA']}{row['transB']}",
        },
        source=f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
        reason=reason,
    )


def _library(path: str) -> str:
    """rocBLAS keeps its logic in `blas3`, hipBLASLt in `rocblaslt`."""
    return "rocblas" if "blas3/" in path else "tensile"


def _op(row: Mapping[str, Any], dtype: str) -> Gemm:
    kernel = str(row.get("kernel", ""))
    tile, splits = _TILE.search(kernel), _SPLITS.search(kernel)
    size = activation(dtype).size
    library = _library(str(row.get("source_path", "")))
    return Gemm(
        m=int(row["M"]),
        n=int(row["N"]),
        k=int(row["K"]),
        batch=int(row["batch"]),
        dtype=dtype,
        out=canonical(str(row["dtype_out"])),
        scaling="none",
        transposed=f"{row['transA']}{row['transB']}",
        library=library,
        tile=(int(tile[1]), int(tile[2]), int(int(tile[3]) * size)) if tile else None,
        splits=int(splits[1]) if splits and tile else 0,
        timing="launch, client, warm" if library == "rocblas" else "launch, client",
    )


__all__ = ["GemmTensile"]
