"""Collectives: one row per measured size, with the channels and what ran at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each
from wavecast.perfmodel.ops.collectives import FUNCTIONS, Collective

if TYPE_CHECKING:
    import pandas as pd


class Collectives(Importer):
    """Measurements of `collectives.parquet`."""

    name = "collectives"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"op", "gpus", "bytes", "nccl_channels", "time_us", "note", "busbw_gbps"}),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(frame.to_dict("records"), case)


def case(row: dict[str, Any]) -> Case:
    """The case of a row, with a reason where the op cannot be built."""
    name = str(row["device"]).split(" (")[0]
    device, doubt = device_of(str(row["arch"]), row.get("cu_count"), name)
    function, note = str(row["op"]), str(row["note"])
    op, reason = None, f"{function} is no collective the model knows"
    if function in FUNCTIONS:
        channels = str(row["nccl_channels"])
        count = int(float(channels)) if channels.replace(".", "", 1).isdigit() else 0
        op, reason = (
            Collective(
                function,
                int(row["bytes"]),
                int(row["gpus"]),
                channels=count,
                concurrent="gemm" if "GEMM" in note else "",
                timing=_timing(note),
            ),
            "",
        )
    return Case(
        kind="collective",
        op=op,
        device=device,
        seconds=float(row["time_us"]) * 1e-6,
        group=str(row["source_path"]),
        labels={"function": function, "dtype": str(row["dtype"]), "note": note},
        source=f"{row['source_repo']}:{row['source_path']}",
        reason=reason or ("" if device else doubt),
    )


def _timing(note: str) -> str:
    """The note of nccl-tests states how it launched; other rows are calls of torch.distributed."""
    if "graph" in note:
        return "kernel"
    return "launch" if "launch" in note else "torch"


__all__ = ["Collectives"]
