"""AITER's tuned CSV files, in the columns of `gemm_tuned` and `moe_tuned`.

The name of a file states what its columns do not: `a4w4_blockscale`, `a8w8_bpreshuffle`, `bf16` …
(aiter/configs of ROCm/aiter; the columns are those its tuners write).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.benchmarking.accuracy.cases import stated_board
from wavecast.benchmarking.accuracy.importers.base import MeasurementTable, convert_rows

if TYPE_CHECKING:
    import pandas as pd

GEMM = frozenset({"M", "N", "K", "us", "cu_num"})
"""Columns of a tuned GEMM file."""
MOE = frozenset({"token", "model_dim", "inter_dim", "expert", "topk", "us"})
"""Columns of a tuned fused-MoE file."""

_TARGETS = {80: "gfx942", 304: "gfx942", 256: "gfx950", 64: "gfx1201"}
"""Targets of files older than the `gfx` column, by compute units."""

_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "int8": "int8",
    "int4": "int4",
    "uint32": "int4",  # eight of them to a word
    "float8_e4m3fn": "fp8_e4m3fn",
    "float8_e4m3fnuz": "fp8_e4m3fnuz",
    "float4_e2m1fn_x2": "mxfp4",
    "uint8": "mxfp4",  # two of them to a byte
}

_FORMATS: tuple[tuple[str, str, str], ...] = (
    ("a4w4", "mxfp4", "1x32 e8m0"),
    ("a6w6", "mxfp6", "1x32 e8m0"),
    ("a8w8_mx", "mxfp8", "1x32 or 1x128 mx scale"),
    ("blockscale", "fp8", "block: A 1x128, B 128x128, fp32 scales"),
    ("a8w8_bpreshuffle", "fp8", "per-token A, per-channel B"),
    ("a8w8", "int8", "per-token A, per-channel B"),
    ("", "bf16", ""),
)
"""Part of a file's name, dtype and scales of its products; the first match counts."""


Conversion = Callable[["pd.DataFrame", Path], MeasurementTable]


def conversion(columns: Collection[str]) -> Conversion | None:
    """The function that converts a table with these columns, None for a table of another tool."""
    present = set(columns)
    return moe if present >= MOE else gemm if present >= GEMM else None


def board(row: Mapping[Any, Any]) -> tuple[str, str]:
    """`stated_board` of a row of `gemm_tuned` or `moe_tuned`; the commit that brought it may name
    a board that has the compute units of another (`aiter_boards.toml`)."""
    file = str(row.get("source_path", "")).rpartition("/")[2]
    if named := _boards().get((file, str(row.get("source_date", "")))):
        return named, ""
    return stated_board(str(row.get("arch", "")), row.get("cu_count"))


@cache
def _boards() -> Mapping[tuple[str, str], str]:
    """Device by file and date."""
    text = Path(__file__).with_name("aiter_boards.toml").read_text(encoding="utf-8")
    return {(file, date): device for file, date, device, _ in tomllib.loads(text)["rows"]}


def gemm(frame: pd.DataFrame, path: Path) -> MeasurementTable:
    """A tuned GEMM file in the columns of `gemm_tuned`. Kernels that failed keep their `us`, which
    is not positive.

    Raises ValueError where no row can be read.
    """
    name = path.name.lower()
    dtype, scaling = next((d, s) for part, d, s in _FORMATS if part in name)
    shuffled = "preshuffle" in name or dtype == "mxfp4"

    def convert_row(row: Mapping[Any, Any]) -> dict[str, Any]:
        dtype_name = row.get("q_dtype_w") or row.get("dtype")
        operands = _dtype(dtype_name) if isinstance(dtype_name, str) else dtype
        kernel = _text(row, "kernelName")
        return {
            **_origin(row, path),
            "op": "gemm",
            "dtype_a": operands,
            "dtype_b": operands,
            "dtype_out": _dtype(row.get("outdtype") or "bfloat16"),
            "scaling": scaling,
            "b_preshuffled": shuffled,
            "bias": str(row.get("bias", "")),
            "M": int(row["M"]),
            "N": int(row["N"]),
            "K": int(row["K"]),
            "batch": int(row.get("B", 1)),
            "library": _text(row, "libtype") or _library(kernel),
            "kernel": kernel,
            "kernel_id": _text(row, "kernelId") or _text(row, "solidx"),
            "split_k": _text(row, "splitK"),
            "time_us": float(row["us"]),
        }

    return _table(frame, convert_row)


def moe(frame: pd.DataFrame, path: Path) -> MeasurementTable:
    """A tuned fused-MoE file, or the profile with a row for every candidate kernel, in the columns
    of `moe_tuned`.

    Raises ValueError where no row can be read.
    """
    candidates = "stage" in frame.columns

    def convert_row(row: Mapping[Any, Any]) -> dict[str, Any]:
        return {
            **_origin(row, path),
            "op": "moe",
            "stage": _text(row, "stage") or "both",
            "dtype": _dtype(row["dtype"]),
            "dtype_a": _dtype(row["q_dtype_a"]),
            "dtype_w": _dtype(row["q_dtype_w"]),
            "quant": _member(row.get("q_type", "")),
            "act": _member(row.get("act_type", "")),
            "tokens": int(row["token"]),
            "model_dim": int(row["model_dim"]),
            "inter_dim": int(row["inter_dim"]),
            "experts": int(row["expert"]),
            "topk": int(row["topk"]),
            "gated": int(row.get("use_g1u1", 1)),
            "doweight_stage1": float(row.get("doweight_stage1", 0)),
            "block_m": row.get("block_m", float("nan")),
            "ksplit": row.get("ksplit", float("nan")),
            "one_stage": row.get("run_1stage", float("nan")),
            "kernel1": _text(row, "kernelName1"),
            "time1_us": row.get("us1", float("nan")),
            "kernel2": _text(row, "kernelName2"),
            "time2_us": row.get("us2", float("nan")),
            "kernel": _text(row, "kernelName"),
            "time_us": float(row["us"]),
            "kind": "candidate" if candidates else "winner",
        }

    return _table(frame, convert_row)


def _table(
    frame: pd.DataFrame, converted: Callable[[Mapping[Any, Any]], dict[str, Any]]
) -> MeasurementTable:
    import pandas as pd

    records, rejected = convert_rows(frame.to_dict("records"), converted)
    return MeasurementTable(pd.DataFrame(records), rejected)


def _origin(row: Mapping[Any, Any], path: Path) -> dict[str, Any]:
    units = int(row["cu_num"]) if "cu_num" in row else 0
    return {
        "source_repo": "",
        "source_path": path.name,
        "arch": _text(row, "gfx") or _TARGETS.get(units, ""),
        "device": "",
        "cu_count": float(units) if units else float("nan"),
        "row_flags": "",
        "usable": True,
    }


def _dtype(name: object) -> str:
    """`torch.bfloat16` → `bf16`; an unknown name is returned without `torch.`."""
    plain = str(name).removeprefix("torch.")
    return _DTYPES.get(plain, plain)


def _member(name: object) -> str:
    """`QuantType.per_1x32` → `per_1x32`."""
    return str(name).rsplit(".", 1)[-1]


def _text(row: Mapping[Any, Any], column: str) -> str:
    value = row.get(column)
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _library(kernel: str) -> str:
    """The library of a kernel, from the kernel's name."""
    if kernel.startswith("_ZN5aiter"):
        return "asm"
    if kernel.startswith("Cijk_"):
        return "hipblaslt"
    return "cktile" if re.search("cktile", kernel) else "ck"
