"""Tuned matrix products: the fastest of a tuner's kernels for each shape (ROCm/aiter)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers import aiter
from wavecast.benchmarking.accuracy.importers.base import Importer, each, rows, truth
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.formats import canonical

if TYPE_CHECKING:
    import pandas as pd


class GemmTuned(Importer):
    """One row per tuned problem. The library that won is a label, which no prediction uses."""

    name: ClassVar[str] = "gemm_tuned"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset(
            {
                *("arch", "cu_count", "dtype_a", "dtype_out", "scaling", "b_preshuffled", "bias"),
                *("M", "N", "K", "batch", "library", "kernel", "split_k", "time_us"),
            }
        ),
    )
    conversions: ClassVar = {aiter.GEMM: aiter.gemm}

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(rows(frame), _case)


def _case(row: Mapping[str, Any]) -> Case:
    device, unsure = aiter.board(row)
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
        labels={"dtype": dtype, "scaling": scaling(row), "library": str(row.get("library", ""))},
        source=f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
        reason=reason,
    )


def _op(row: Mapping[str, Any], dtype: str) -> Gemm:
    return Gemm(
        m=int(row["M"]),
        n=int(row["N"]),
        k=int(row["K"]),
        batch=int(row["batch"]),
        dtype=dtype,
        out=str(row.get("dtype_out", "")),
        scaling=scaling(row),
        layout="preshuffled" if truth(row["b_preshuffled"]) else "plain",
        bias=str(row.get("bias", "")).lower() == "true",
    )


def scaling(row: Mapping[str, Any]) -> str:
    """The op's name of the scales that a row describes in words."""
    text = str(row.get("scaling", ""))
    if "e8m0" in text or "mx" in text:
        return "mx"
    if "block" in text:
        return "block"
    return "token" if "token" in text else "none"


__all__ = ["GemmTuned", "scaling"]
