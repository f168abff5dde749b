"""Convolutions of MIOpen's find-db: one row per problem and solver that was measured.

The rows of a problem make one case: the time of its fastest solver, and that solver's algorithm.
MIOpen keeps a handful of the fastest solvers per problem; its times are those of the kernels, but a
BLAS library's include what lies between its launches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.bench.accuracy.datasets.base import Case, Dataset, Given, device_of
from wavecast.errors import UsageError
from wavecast.model.ops.convolution import Convolution

if TYPE_CHECKING:
    import pandas as pd

PROBLEM = (
    *("arch", "cu_count", "device", "direction", "dtype", "layout"),
    *("N", "C", "D", "H", "W", "K", "Z", "R", "S", "pad", "stride", "dilation", "groups"),
)
"""Columns that tell problems and devices apart; a file need not name the device."""

DIRECTIONS = {"F": "forward", "B": "data", "W": "weights"}
ALGORITHMS = {
    "ImplicitGEMM": "implicit GEMM",
    "GEMM": "GEMM",
    "Winograd": "Winograd",
    "Direct": "direct",
    "FFT": "FFT",
}


class ConvMiopen(Dataset):
    """The columns of `conv_miopen.parquet`."""

    name: ClassVar[str] = "conv_miopen"
    columns: ClassVar[frozenset[str]] = frozenset(
        {*PROBLEM, "solver", "algo", "time_us"} - {"device"}
    )

    def cases(self, frame: pd.DataFrame, given: Given) -> Iterator[Case]:
        """One case per problem and device, in the order of their first rows."""
        del given
        keys = [name for name in PROBLEM if name in frame]
        for _, rows in frame.groupby(keys, sort=False, observed=True, dropna=False):
            best = rows.loc[rows["time_us"].idxmin()].to_dict()
            yield _case({str(name): value for name, value in best.items()})


def problem_of(row: dict[str, Any]) -> Convolution:
    """The convolution of a row. Raises UsageError for a layout or sizes there is no op for."""
    layout = {"C": "nchw", "H": "nhwc"}.get(_layout(row["layout"]), "")
    volume = len(row["layout"].split("-")[0]) == 5
    first = 0 if volume else 1
    return Convolution(
        int(row["N"]),
        int(row["C"]),
        tuple(int(row[name]) for name in "DHW")[first:],
        int(row["K"]),
        tuple(int(row[name]) for name in "ZRS")[first:],
        *(tuple(map(int, row[name].split("x"))) for name in ("stride", "pad", "dilation")),
        groups=int(row["groups"]),
        direction=DIRECTIONS[row["direction"]],
        dtype=str(row["dtype"]),
        layout=layout,
    )


def algorithm_of(row: dict[str, Any]) -> str:
    """The algorithm of a row's solver, as predictions name it."""
    if "Naive" in row["solver"]:
        return "naive"
    name = str(row["algo"])
    return ALGORITHMS.get(name.partition("Algo")[2], name)


def _layout(text: str) -> str:
    """`C` for channels first, `H` for channels last, "" where the tensors differ."""
    layout, *others = text.split("-")
    if any(other != layout for other in others):
        return ""
    return "C" if layout.startswith("NC") else "H" if layout.endswith("C") else ""


def _case(row: dict[str, Any]) -> Case:
    device, unsure = device_of(str(row["arch"]), float(row["cu_count"]), str(row.get("device", "")))
    op, reason = None, "" if device else unsure
    try:
        op = problem_of(row)
    except UsageError as error:
        reason = str(error)
    path = str(row.get("source_path", ""))
    return Case(
        kind=Convolution.kind,
        op=op,
        device=device,
        seconds=float(row["time_us"]) * 1e-6,
        group=path,
        labels={
            "dtype": str(row["dtype"]),
            "direction": DIRECTIONS[row["direction"]],
            "layout": str(row["layout"]).split("-")[0],
        },
        chosen={"algorithm": algorithm_of(row)},
        source=f"{row.get('source_repo', '')} {path} {row['solver']}".strip(),
        reason=reason,
    )


__all__ = ["ALGORITHMS", "ConvMiopen", "algorithm_of", "problem_of"]
