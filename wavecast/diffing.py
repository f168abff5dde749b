"""`wavecast.diff`: what `wavecast diff` does, with a result that shows itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from wavecast.bench.diff import sides
from wavecast.bench.diff.compare import compare
from wavecast.bench.diff.result import Diff
from wavecast.bench.diff.sides import Asked, Side
from wavecast.errors import NothingAnalysed
from wavecast.pipeline import ExplainOptions, select, selectors
from wavecast.report import diff as diff_report
from wavecast.report import diff_html, diff_terminal
from wavecast.report.diff_words import failed
from wavecast.report.shown import ShownResult

File = str | Path


@dataclass(frozen=True, slots=True, repr=False)
class DiffReport(ShownResult):
    """Two versions of kernels compared (`diff`). The document is `wavecast.diff/1`."""

    diff: Diff

    def to_dict(self) -> dict[str, Any]:
        return diff_report.document(self.diff)

    def html(self) -> str:
        return diff_html.render(self.diff)

    def render(self, console: Console) -> None:
        diff_terminal.render(self.diff, console)

    def subject(self) -> str:
        return f"{self.diff.before} → {self.diff.after}"


def diff(
    before: File,
    after: File,
    *,
    arch: str | Sequence[str] | None = None,
    arch_files: Sequence[File] = (),
    script_args: Sequence[str] = (),
    kernels: str = "",
    configs: Literal["first", "all", "best"] = "first",
    sample: bool = False,
) -> DiffReport:
    """Two versions of kernels: registers, spills, LDS, waves, findings, predicted time, assembly.

    `before` and `after` are scripts, HIP files, assembly or code objects. `arch` names GPUs
    (default: the target of a code file, gfx942 for source), `script_args` go to the scripts,
    `kernels` is a regular expression of names, `configs` chooses configurations of autotuned
    kernels; with `sample` times come from executed samples.

    Raises NothingAnalysed where no kernel of either side can be compared, and another WavecastError
    for files that cannot be read.
    """
    paths = [Path(before), Path(after)]
    names = arch if arch is None or isinstance(arch, str) else ",".join(arch)
    files = [Path(one) for one in arch_files]
    options = ExplainOptions(
        script_args=tuple(script_args), kernels=kernels, configs=configs, sample=sample
    )
    asked = Asked(select(selectors(names, paths), files), options, files)
    first, second = (sides.of_file(path, asked, _silent) for path in paths)
    if not first.report.explanations and not second.report.explanations:
        raise NothingAnalysed(_failures(first, second))
    return DiffReport(compare(first, second))


def _silent(_: str) -> None:
    """Progress that nobody sees."""


def _failures(*both: Side) -> str:
    lines = (f"{one.label}: {failed(failure)}" for one in both for failure in one.report.failures)
    return "; ".join(dict.fromkeys(lines)) or "neither file has a kernel"


__all__ = ["DiffReport", "diff"]
