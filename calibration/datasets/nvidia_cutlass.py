"""CUTLASS main loops on NVIDIA B200: one workgroup, over tiles and stages of copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.base import Importer, each, rows
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.formats import activation, canonical

if TYPE_CHECKING:
    import pandas as pd

DEVICE = "b200"
DTYPES = {"fp8_e4m3": "fp8"}


class NvidiaCutlass(Importer):
    """One row per tile and number of stages (0: what CUTLASS chooses, as many as fit)."""

    name: ClassVar[str] = "nvidia_cutlass"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"M", "N", "K", "TILE_M", "TILE_N", "TILE_K", "STAGES", "dtype", "time_ms"}),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(rows(frame), _case)


def _case(row: Mapping[str, Any]) -> Case:
    name = str(row["dtype"]).lower()
    dtype = canonical(DTYPES.get(name, name))
    depth = float(row["TILE_K"]) * activation(dtype).size
    op = Gemm(
        m=int(row["M"]),
        n=int(row["N"]),
        k=int(row["K"]),
        dtype=dtype,
        library="cutlass",
        tile=(int(row["TILE_M"]), int(row["TILE_N"]), int(depth)),
        stages=int(row["STAGES"]),
    )
    source = str(row.get("source", ""))
    return Case(
        kind="gemm",
        op=op,
        device=arch.load(DEVICE).id,
        seconds=float(row["time_ms"]) * 1e-3,
        group=source,
        labels={"dtype": dtype, "library": "cutlass"},
        source=source,
    )


__all__ = ["NvidiaCutlass"]
