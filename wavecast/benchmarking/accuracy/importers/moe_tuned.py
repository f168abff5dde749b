"""Fused mixture-of-experts times of AITER's tuner: winners, and all candidate kernels.

The tuner adds the device times of a stage's kernels. Routing is random, caches are cold; sorting
and the quantisation of the input are not timed
(csrc/ck_gemm_moe_2stages_codegen/gemm_moe_tune.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers import aiter
from wavecast.benchmarking.accuracy.importers.base import Importer, each, rows, truth
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.gemm.formats import canonical
from wavecast.perfmodel.ops.moe import FusedMoe

if TYPE_CHECKING:
    import pandas as pd

PARTS = {"both": "layer", "stage1": "gate-up", "stage2": "down", "asm_1stage": "one-kernel"}
"""Name of a stage in the tuner, and in the op."""
SCALINGS = {
    "per_1x32": "mx",
    "per_1x128": "block",
    "per_128x128": "block",
    "per_token": "token",
    "per_tensor": "tensor",
    "per_tensor_quant": "tensor",
    "no": "none",
}
"""Scaling as the tuner names it, in lower case."""
SUPERSEDED = "slower than another measurement of the problem"

_TILES = (
    re.compile(r"gemm[12]_\d+x(\d+)x(\d+)x\d+_"),
    re.compile(r"(?:^|_)t(\d+)x(\d+)x\d+(?:_|$)"),
    re.compile(r"a\dw\d_(\d+)x(\d+)x\d+(?:_|$)"),
    re.compile(r"_(\d+)x(\d+)(?:_\w+)?E$"),
)
"""Rows and columns of a tile in the names of CK, FlyDSL and assembly kernels."""


_CK = re.compile(r"ck2stages_gemm[12]_(\d+)x")
_FLYDSL = re.compile(r"^flydsl_moe1_\w+?_t\d+x\d+x\d+(?:_w(\d))?(?:_kb(\d+))?(?:_|$)")
WAVE = 64
"""Threads of a wave."""


class MoeTuned(Importer):
    """One row per kernel or pair of kernels of a problem."""

    name: ClassVar[str] = "moe_tuned"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset(
            {
                *("tokens", "model_dim", "inter_dim", "experts", "topk", "dtype_a", "dtype_w"),
                *("quant", "stage", "block_m", "kernel", "kernel1", "kind", "time_us"),
            }
        ),
    )
    conversions: ClassVar = {aiter.MOE: aiter.moe}

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row. Of the winners of one problem only the fastest has an op: the time a
        library reaches."""
        cases = list(each(rows(frame), _case))
        best: dict[tuple[object, str], Case] = {}
        for case in cases:
            if not case.reason and case.labels["part"] == "layer":
                key = (case.op, case.device)
                if key not in best or case.seconds < best[key].seconds:
                    best[key] = case
        for case in cases:
            winner = best.get((case.op, case.device), case)
            if case.labels.get("part") == "layer" and winner is not case:
                case = replace(case, op=None, reason=SUPERSEDED)
            yield case


def sizes_and_formats(row: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the op from a row's sizes and formats."""
    dtype, weights = format_of(str(row["dtype_a"])), format_of(str(row["dtype_w"]))
    scaling = SCALINGS[str(row["quant"]).lower()]
    return {
        "tokens": int(row["tokens"]),
        "model": int(row["model_dim"]),
        "inter": int(row["inter_dim"]),
        "experts": int(row["experts"]),
        "topk": int(row["topk"]),
        "gated": truth(row.get("gated", 1)),
        "dtype": dtype,
        "weights": weights,
        "scaling": scaling,
    }


def format_of(name: str) -> str:
    """The op's name of a number format; `nvfp4_bf16` says what it is widened to."""
    return canonical(name.removeprefix("torch.")).partition("_")[0]


def tile_of(kernel: str) -> tuple[int, int]:
    """Rows and columns of a kernel's tile; (0, 0) where its name does not say."""
    for pattern in _TILES:
        if match := pattern.search(kernel):
            return int(match[1]), int(match[2])
    return 0, 0


def stated(kernel: str) -> dict[str, Any]:
    """Fields of the op that the name of a kernel states in addition to its tile.

    CK: threads of a workgroup; the second stage of its mxfp4 kernels adds results element by
    element. FlyDSL's first stage: workgroups of a CU (`w2`, one without it) and parts of K (`kb4`).
    """
    fields: dict[str, Any] = {"assembly": assembly(kernel)}
    if match := _CK.search(kernel):
        fields["waves"] = int(match[1]) // WAVE
        fields["by_element"] = "gemm2" in kernel and "FP4X2" in kernel
    if match := _FLYDSL.search(kernel):
        fields |= {"resident": int(match[1] or 1), "splits": int(match[2] or 1)}
    return fields


def assembly(kernel: str) -> bool:
    """Whether a kernel is one of AITER's in assembly, which are named like C++ functions."""
    return kernel.startswith("_ZN5aiter")


def _case(row: Mapping[str, Any]) -> Case:
    device, unsure = aiter.board(row)
    part = PARTS.get(str(row["stage"]), "")
    op, reason = None, "" if device else unsure
    try:
        if part:
            op = _op(row, part)
        else:
            reason = f"stage {row['stage']!r}: what was timed is not known"
    except (WavecastError, KeyError) as error:
        reason = f"{row['dtype_a']} by {row['dtype_w']}, {row['quant']}: {error}"
    if flags := str(row.get("row_flags", "")):
        op, reason = None, f"the file marks the row: {flags}"
    names = ("arch", "cu_count", "dtype_a", "dtype_w", "quant", "tokens", "model_dim", "inter_dim")
    return Case(
        kind="moe",
        op=op,
        device=device,
        seconds=float(row["time_us"]) * 1e-6,
        problem=f"{part} "
        + " ".join(str(row.get(name, "")) for name in (*names, "experts", "topk", "gated")),
        group=str(row.get("source_path", "")),
        labels={
            "dtype": f"{format_of(str(row['dtype_a']))}·{format_of(str(row['dtype_w']))}",
            "scaling": str(row["quant"]),
            "part": part,
        },
        source=f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
        reason=reason,
    )


def _op(row: Mapping[str, Any], part: str) -> FusedMoe:
    fields = sizes_and_formats(row)
    if part != "layer":
        kernel = str(row.get("kernel", ""))
        height, width = tile_of(kernel)
        fields |= {"part": part, "block_m": int(row.get("block_m", height)), "tile_n": width}
        fields |= stated(kernel)
    return FusedMoe(**fields)


__all__ = ["MoeTuned", "assembly", "format_of", "sizes_and_formats", "stated", "tile_of"]
