"""Convolutions of MIOpen's find-db: one row per problem and solver that was measured.

The rows of a problem make one case: the time of its fastest solver, and that solver's algorithm.
MIOpen keeps a few of the fastest solvers per problem. Its times are kernel times; those of a BLAS
library include the gaps between its launches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import NO_TIME, Case, device_of
from wavecast.benchmarking.accuracy.importers import miopen
from wavecast.benchmarking.accuracy.importers.base import Importer, each
from wavecast.errors import UsageError
from wavecast.perfmodel.ops.convolution import Convolution

if TYPE_CHECKING:
    import pandas as pd

PROBLEM = (
    *("arch", "cu_count", "device", "direction", "dtype", "layout"),
    *("N", "C", "D", "H", "W", "K", "Z", "R", "S", "pad", "stride", "dilation", "groups"),
)
"""Columns that identify problem and device; `device` is optional."""

DIRECTIONS = {"F": "forward", "B": "data", "W": "weights"}
ALGORITHMS = {
    "ImplicitGEMM": "implicit GEMM",
    "GEMM": "GEMM",
    "Winograd": "Winograd",
    "Direct": "direct",
    "FFT": "FFT",
}


class ConvMiopen(Importer):
    """Solvers of convolution problems, and find databases of MIOpen."""

    name: ClassVar[str] = "conv_miopen"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({*PROBLEM, "solver", "algo", "time_us"} - {"device"}),
    )
    readers: ClassVar = {".fdb.txt": miopen.find_db, ".ufdb.txt": miopen.find_db}

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per problem and device, in the order of their first rows; one more for every
        row without a positive time."""
        import pandas as pd

        frame = frame.reset_index(drop=True)
        numbers: Any = pd.to_numeric(frame["time_us"], errors="coerce")
        times = pd.Series(numbers, dtype=float)
        timed = times.between(0, math.inf, inclusive="neither")
        keys = [frame[name][timed] for name in PROBLEM if name in frame]
        positive: Any = times[timed]
        fastest = positive.groupby(keys, sort=False, observed=True, dropna=False).idxmin()
        best = frame.loc[fastest].to_dict("records") if timed.any() else []
        yield from each(best, _case)
        for _ in range(int((~timed).sum())):
            yield Case(kind=Convolution.kind, op=None, device="", seconds=math.nan, reason=NO_TIME)


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
