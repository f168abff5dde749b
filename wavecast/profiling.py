"""`wavecast.profile`: what `wavecast profile` does, with a result that shows itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from wavecast.bench.profiles import answer
from wavecast.bench.profiles.answer import ProfileAnswer
from wavecast.bench.profiles.comparison import ProfileComparison, compared
from wavecast.errors import UsageError
from wavecast.report import (
    profiles_comparison,
    profiles_html,
    profiles_json,
    profiles_markdown,
    profiles_perfetto,
    profiles_terminal,
)
from wavecast.report.shown import ShownResult, few

File = str | Path


@dataclass(frozen=True, slots=True, repr=False)
class ProfileReport(ShownResult):
    """What profilers measured: `answers`, one per file (the ranks of a folder; with `against` the
    other profile is the last), and the `comparison`. The document is `wavecast.profile/1`."""

    answers: tuple[ProfileAnswer, ...]
    comparison: ProfileComparison | None = None

    def to_dict(self) -> dict[str, Any]:
        return profiles_json.document(self.answers, self.comparison)

    def html(self) -> str:
        return profiles_html.render(self.answers, self.comparison)

    def markdown(self) -> str:
        """The figures for a comment of a pull request."""
        return profiles_markdown.render(self.answers, self.comparison)

    def perfetto(self) -> str:
        """The measured and predicted timelines as a trace for Perfetto."""
        return profiles_perfetto.dumps(self.answers)

    def render(self, console: Console) -> None:
        if self.comparison is None:
            profiles_terminal.render(self.answers, console)
        else:
            before, after = (one.path.name for one in self.answers)
            profiles_comparison.render(self.comparison, (before, after), console)

    def subject(self) -> str:
        return few([one.path.name for one in self.answers])


def profile(
    path: File,
    *,
    device: str = "",
    on: str | Sequence[str] = (),
    what_if: str = "",
    against: File | None = None,
    model: str = "",
    code: Sequence[File] = (),
    arch_files: Sequence[File] = (),
) -> ProfileReport:
    """Where the time of a profiled run went, and what it would be on other chips.

    `path` is a file that a profiler wrote, or a folder with one per rank. `device` names the chip
    where the file does not, `on` are chips to predict the run on (`"mi355x,h200"` or a list),
    `what_if` changes of the run (`"attention=flash3; batch*2"`). `against` is another profile to
    compare with by operator and module. `code` are scripts, HIP files and code objects that have
    kernels of the profile, `model` the configuration of the model that ran, `arch_files` overlay
    facts of chips.

    Raises InputError for a file that cannot be read, UnknownName for a chip, UsageError for changes
    that are none and for `against` with a folder.
    """
    chips = [name for name in on.split(",") if name] if isinstance(on, str) else list(on)
    files, sources = [Path(one) for one in arch_files], [Path(one) for one in code]
    found = answer.profiles(Path(path), device, chips, what_if, files, sources, model)
    if against is None:
        return ProfileReport(tuple(found))
    others = answer.profiles(Path(against), device, arch_files=files)
    if len(found) != 1 or len(others) != 1:
        raise UsageError("against compares two files, not folders")
    return ProfileReport((*found, *others), compared(found[0].profile, others[0].profile))


__all__ = ["ProfileReport", "profile"]
