"""Times of whole HIP programs: the MGPUSim validation suite, as its programs print them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from wavecast.bench.accuracy import hip_suite
from wavecast.bench.accuracy.datasets.base import Case, Dataset, Given, device_of
from wavecast.bench.accuracy.hip_program import HipProgram
from wavecast.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

KIND = "hip"
NO_SOURCES = "the programs' sources are needed (--sources, a checkout of sarchlab/mgpusim)"


class HipKernels(Dataset):
    """Rows of program, problem size and mean time over its iterations."""

    name: ClassVar[str] = "hip_kernels"
    columns: ClassVar[frozenset[str]] = frozenset({"kernel_name", "problem_size", "avg_ms", "arch"})

    def cases(self, frame: pd.DataFrame, given: Given) -> Iterator[Case]:
        """One case per row; the time is the mean, as the suite's own comparison takes it."""
        sources = str(given.sources) if given.sources is not None else ""
        for row in frame.to_dict("records"):
            program, size = str(row["kernel_name"]), str(row["problem_size"])
            device, _ = device_of(str(row["arch"]), name=str(row.get("device", "")))
            reason = _reason(program, size, sources)
            yield Case(
                kind=KIND,
                op=None if reason else HipProgram(program, size, sources),
                device=device,
                seconds=float(row["avg_ms"]) * 1e-3,
                group=program,
                labels={"program": program},
                source=f"{program} {size}",
                reason=reason,
            )


def _reason(program: str, size: str, sources: str) -> str:
    """Why a row cannot be predicted, "" if it can."""
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
