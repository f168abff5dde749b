"""Tuned matrix products: per shape the fastest of a tuner's kernels (ROCm/aiter)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.bench.accuracy.datasets.base import Case, Dataset, Given, device_of, rows
from wavecast.errors import WavecastError
from wavecast.model.ops.gemm import Gemm
from wavecast.model.ops.gemm.formats import canonical

if TYPE_CHECKING:
    import pandas as pd


class GemmTuned(Dataset):
    """One row per tuned problem. Which library won is shown, not told to the prediction."""

    name: ClassVar[str] = "gemm_tuned"
    columns: ClassVar[frozenset[str]] = frozenset(
        {
            *("arch", "cu_count", "dtype_a", "dtype_out", "scaling", "b_preshuffled", "bias"),
            *("M", "N", "K", "batch", "library", "kernel", "split_k", "time_us"),
        }
    )

    def cases(self, frame: pd.DataFrame, given: Given) -> Iterator[Case]:
        """One case per row."""
        del given
        yield from map(_case, rows(frame))


def _case(row: Mapping[str, Any]) -> Case:
    target = str(row.get("arch", ""))
    device, unsure = device_of(target, row.get("cu_count"))
    dtype = canonical(str(row["dtype_a"]))
    op, reason = None, "" if device else unsure
    if not row.get("cu_count"):
        device, reason = "", f"compute units of the {target} board are not stated"
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
        layout="preshuffled" if row["b_preshuffled"] else "plain",
        bias=str(row.get("bias", "")).lower() == "true",
    )


def scaling(row: Mapping[str, Any]) -> str:
    """The kind of scales a row describes in words."""
    text = str(row.get("scaling", ""))
    if "e8m0" in text or "mx" in text:
        return "mx"
    if "block" in text:
        return "block"
    return "token" if "token" in text else "none"


__all__ = ["GemmTuned", "scaling"]
