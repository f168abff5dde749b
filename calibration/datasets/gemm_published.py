"""Matrix products published with papers and kernels, with the library that ran."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each, rows
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.formats import activation, canonical

if TYPE_CHECKING:
    import pandas as pd

LIBRARIES = (
    ("hipkittens", "hipkittens"),
    ("tritonblas", "triton"),
    ("triton", "triton"),
    ("hipblaslt", "blas"),
    ("rocblas", "blas"),
    ("torch", "blas"),
    ("flydsl", "flydsl"),
    ("ck", "ck"),
    ("asm", "asm"),
    ("aiter", "asm"),
)
"""Words in the name of a library and the op's name of it; the first word that occurs decides."""


TIMED = (
    ("HipKittens fp8", "launch"),
    ("HipKittens", "eager"),
    ("tritonBLAS bf16 triton results/plot_data", "eager, python"),
    ("tritonBLAS bf16 triton results/overlap_data", "eager, python"),
    ("tritonBLAS bf16 blas results/plot_data", "eager"),
    ("tritonBLAS bf16 blas results/overlap_data", "eager"),
    ("tritonBLAS", "launch"),
)
"""Repositories, formats, libraries and folders whose times are between events, and how: by programs
that launch kernels or by calls in a row, or by single calls on an idle GPU (tritonBLAS:
benchmarks/cu_sweep.py and overlap.py synchronise before each, autoresearch*.py do not). The first
that the row begins with decides."""
LIMITED = "restricted_cus"
"""Flag of a row whose `cus_used` is not all of the chip's."""
UNKNOWN_UNITS = "the file's numbers of compute units are not those that ran"
"""Why rows are not read: a script asked for a mask of compute units or a number of workgroups, and
some times of the file are shorter than its number of units allows."""

_TILE = re.compile(r"(\d+)x(\d+)x(\d+) GM\d+ warps(\d+)")
"""Tile (elements) and waves in the name of a swept configuration."""


class GemmPublished(Importer):
    """One row per time; rows of one problem by different libraries are alternatives."""

    name: ClassVar[str] = "gemm_published"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset(
            {"arch", "device", "dtype_a", "M", "N", "K", "library", "kernel", "cus_used", "time_us"}
        ),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        table = list(rows(frame))
        doubted = {row.get("source_path") for row in table if _impossible(row)}
        yield from each(table, partial(_case, doubted=doubted))


def _impossible(row: Mapping[str, Any]) -> bool:
    """Whether a product is faster than the compute units that the row names can be."""
    if row.get("row_flags") != LIMITED:
        return False
    device, _ = device_of(str(row.get("arch", "")), name=_device_name(row))
    chip = arch.load(device) if device else None
    peak = chip.peak_flops(canonical(str(row["dtype_a"]))) if chip else None
    if chip is None or peak is None:
        return False
    flops = 2.0 * row["M"] * row["N"] * row["K"]
    most = peak.number * row["cus_used"] / chip.compute_units
    return bool(flops / (row["time_us"] * 1e-6) > most)


def _device_name(row: Mapping[str, Any]) -> str:
    name = str(row.get("device", "")).split(" (")[0]
    return "" if "not" in name else name


def _case(row: Mapping[str, Any], doubted: Collection[object] = ()) -> Case:
    device, unsure = device_of(str(row.get("arch", "")), name=_device_name(row))
    dtype = canonical(str(row["dtype_a"]))
    op, reason = None, "" if device else unsure
    if row.get("row_flags") == LIMITED and row.get("source_path") in doubted:
        reason = UNKNOWN_UNITS
    else:
        try:
            op = _op(row, dtype)
        except WavecastError as error:
            reason = str(error)
    library = str(row.get("library", ""))
    return Case(
        kind="gemm",
        op=op,
        device=device,
        seconds=float(row["time_us"]) * 1e-6,
        problem=f"{dtype} {row['M']}x{row['N']}x{row['K']} {row.get('cus_used', '')}".strip(),
        group=str(row.get("source_path", "")),
        labels={"dtype": dtype, "library": library},
        source=f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
        reason=reason,
    )


def _op(row: Mapping[str, Any], dtype: str) -> Gemm:
    name, kernel = str(row.get("library", "")).lower(), str(row.get("kernel", ""))
    blocks = "blockscale" in kernel
    tile, size = _TILE.search(kernel), activation(dtype).size
    library = next((known for word, known in LIBRARIES if word in name), "")
    repository, path = str(row.get("source_repo", "")), str(row.get("source_path", ""))
    source = " ".join((repository.split("/")[-1], dtype, library, path))
    return Gemm(
        m=int(row["M"]),
        n=int(row["N"]),
        k=int(row["K"]),
        batch=int(row.get("batch", 1)),
        dtype=dtype,
        scaling="block" if blocks else "",
        layout="preshuffled" if "preshuffle=True" in kernel else "plain",
        library="asm_plain" if blocks and library == "asm" else library,
        tile=(int(tile[1]), int(tile[2]), int(int(tile[3]) * size)) if tile else None,
        waves=int(tile[4]) if tile else 0,
        units=int(row.get("cus_used", 0)),
        timing=next((how for start, how in TIMED if source.startswith(start)), "kernel"),
    )


__all__ = ["GemmPublished"]
