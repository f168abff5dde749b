"""Times of whole HIP programs: the MGPUSim validation suite, as its programs print them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibration import hip_suite
from calibration.hip_program import HipProgram
from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each
from wavecast.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

KIND = "hip"
NO_SOURCES = "the programs' sources are needed (--sources, a checkout of sarchlab/mgpusim)"


class HipKernels(Importer):
    """Rows of program, problem size and mean time over its iterations."""

    name: ClassVar[str] = "hip_kernels"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"kernel_name", "problem_size", "avg_ms", "arch"}),
    )

    def __init__(self, sources: Path | None = None) -> None:
        """`sources` is a checkout of the programs; without it most rows have no op."""
        self.sources = "" if sources is None else str(sources)

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row; the time is the mean, as in the suite's own comparison."""
        rows = [
            {str(name): value for name, value in row.items()} for row in frame.to_dict("records")
        ]
        sizes = full_sizes([(str(row["kernel_name"]), str(row["problem_size"])) for row in rows])
        same = ({**row, "problem_size": size} for row, size in zip(rows, sizes, strict=True))
        yield from each(same, self._case)

    def _case(self, row: Mapping[str, Any]) -> Case:
        program, size = str(row["kernel_name"]), str(row["problem_size"])
        device, _ = device_of(str(row["arch"]), name=str(row.get("device", "")))
        reason = reason_of(program, size, self.sources)
        return Case(
            kind=KIND,
            op=None if reason else HipProgram(program, size, self.sources),
            device=device,
            seconds=float(row["avg_ms"]) * 1e-3,
            group=program,
            labels={"program": program},
            source=f"{program} {size}",
            reason=reason,
        )


def full_sizes(labels: Sequence[tuple[str, str]]) -> list[str]:
    """The problem sizes of rows of program and label, in the order in which the suite ran them.

    A program whose label leaves out an argument ran with each of its values in order
    (`hip_suite.UNNAMED`). Where a label does not occur once per value, what a row ran with is not
    known: its size is "".
    """
    counts, seen = Counter(labels), Counter[tuple[str, str]]()
    found = []
    for label in labels:
        program, size = label
        values = hip_suite.UNNAMED.get(program, ())
        if values:
            known = counts[label] % len(values) == 0
            size = f"{size}_{values[seen[label] % len(values)]}" if known else ""
        seen[label] += 1
        found.append(size)
    return found


def reason_of(program: str, size: str, sources: str) -> str:
    """Why a row cannot be predicted; "" where it can."""
    if program not in hip_suite.PROGRAMS:
        return f"{program} is not a program of the suite"
    if not size:
        return f"the label of {program} leaves an argument out"
    if hip_suite.source(program) and not sources:
        return NO_SOURCES
    try:
        hip_suite.numbers(program, size)
    except UsageError as error:
        return error.message
    return ""


__all__ = ["HipKernels", "full_sizes", "reason_of"]
