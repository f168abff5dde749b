"""A script under release after release of Triton, each asked once."""

from __future__ import annotations

from pathlib import Path

from wavecast.benchmarking.diff.figures import figures
from wavecast.benchmarking.diff.sides import Asked, Progress, Side, of_release
from wavecast.benchmarking.kpis import Kpi
from wavecast.errors import CompileError


class Releases:
    """Answers what a figure is under a release; keeps the sides, which cost seconds each."""

    def __init__(self, path: Path, kpi: Kpi, request: Asked, progress: Progress) -> None:
        self._path = path
        self._kpi = kpi
        self._asked = request
        self._progress = progress
        self._sides: dict[str, Side] = {}

    def side(self, release: str) -> Side:
        """The kernels under a release. Raises WavecastError as `of_release` does."""
        if release not in self._sides:
            self._sides[release] = of_release(self._path, release, self._asked, self._progress)
        return self._sides[release]

    def values(self, release: str) -> dict[str, float]:
        """The figure by kernel and device; of several launches of one kernel each by its number.

        Raises WavecastError when the release cannot be asked, CompileError when it compiles none
        of the kernels.
        """
        report = self.side(release).report
        if not report.explanations and report.failures:
            failure = report.failures[0]
            raise CompileError(f"{failure.kernel} for {failure.target}: {failure.message}")
        by_kernel: dict[str, float] = {}
        counts: dict[tuple[str, str], int] = {}
        for explanation in report.explanations:
            key = explanation.code.kernel, explanation.device.id
            counts[key] = counts.get(key, 0) + 1
            value = figures(explanation).get(self._kpi.name)
            if value is not None:
                number = f" #{counts[key]}" if counts[key] > 1 else ""
                by_kernel[f"{key[0]}{number} {key[1]}"] = value
        return by_kernel


__all__ = ["Releases"]
