"""Times of whole HIP programs: the MGPUSim validation suite, as its programs print them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibration import hip_suite
from calibration.hip_program import HipProgram
from wavecast.bench.accuracy.cases import Case, device_of
from wavecast.bench.accuracy.importers.base import Importer, each
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
        yield from each(frame.to_dict("records"), self._case)

    def _case(self, row: Mapping[str, Any]) -> Case:
        program, size = str(row["kernel_name"]), str(row["problem_size"])
        device, _ = device_of(str(row["arch"]), name=str(row.get("device", "")))
        reason = _reason(program, size, self.sources)
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


def _reason(program: str, size: str, sources: str) -> str:
    """Why a row cannot be predicted; "" where it can."""
    if program not in hip_suite.PROGRAMS:
        return f"{program} is not a program of the suite"
    if hip_suite.source(program) and not sources:
        return NO_SOURCES
    try:
        hip_suite.numbers(program, size)
    except UsageError as error:
        return error.message
    return ""


__all__ = ["HipKernels"]
