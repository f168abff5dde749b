"""Mixture-of-experts kernels of AITER with times and hardware counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each, rows
from wavecast.benchmarking.accuracy.importers.moe_tuned import (
    PARTS,
    format_of,
    sizes_and_formats,
    stated,
    tile_of,
)
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.moe import FusedMoe

if TYPE_CHECKING:
    import pandas as pd

_NAMES = {"token": "tokens", "expert": "experts", "q_dtype_a": "dtype_a", "q_dtype_w": "dtype_w"}
"""Columns that differ from the tuner's table."""


class MoeCounters(Importer):
    """One row per kernel of a problem, with its tile in the name."""

    name: ClassVar[str] = "moe_counters"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset(
            {
                *("token", "model_dim", "inter_dim", "expert", "topk", "q_dtype_a", "q_dtype_w"),
                *("q_type", "stage", "block_m", "kernel_name", "bench_time_us"),
            }
        ),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(rows(frame), _case)


def _case(row: Mapping[str, Any]) -> Case:
    device, unsure = device_of(str(row.get("arch", "")))
    same = {name: row[other] for other, name in _NAMES.items()}
    same["quant"] = str(row["q_type"]).removeprefix("QuantType.")
    same |= {name: row[name] for name in ("model_dim", "inter_dim", "topk")}
    same["gated"] = row.get("use_g1u1", 1)
    part, op, reason = PARTS.get(str(row["stage"]), ""), None, "" if device else unsure
    try:
        kernel = str(row["kernel_name"])
        op = FusedMoe(
            **sizes_and_formats(same),
            part=part,
            block_m=int(row["block_m"]),
            tile_n=tile_of(kernel)[1],
            **stated(kernel),
        )
    except (WavecastError, KeyError) as error:
        reason = f"{row['q_dtype_a']} by {row['q_dtype_w']}, {row['q_type']}: {error}"
    if "bench_time_us" not in row:
        reason = "not timed"
    return Case(
        kind="moe",
        op=op,
        device=device,
        seconds=float(row.get("bench_time_us", 0.0)) * 1e-6,
        problem=f"{part} {row.get('arch', '')} " + " ".join(str(value) for value in same.values()),
        group=str(row.get("source_path", "")),
        labels={
            "dtype": f"{format_of(str(row['q_dtype_a']))}·{format_of(str(row['q_dtype_w']))}",
            "scaling": same["quant"],
            "part": part,
        },
        source=f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
        reason=reason,
    )


__all__ = ["MoeCounters"]
