"""`wavecast.profile`: what profilers measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.machines import PageFile
from wavecast.api.result import ShownResult, few
from wavecast.errors import UsageError
from wavecast.options import Progress, option, silent
from wavecast.options.values import FILE, OUTPUT_FILE, Dimensions, NameList, Several

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.pipeline.plan import Plan
    from wavecast.profiles.answer import ProfileAnswer
    from wavecast.profiles.calibration import FittedFact
    from wavecast.profiles.comparison import ProfileComparison
    from wavecast.profiles.ranks import RankSkew


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(PageFile):
    """Options of a profile."""

    device: str = option(
        "", "The chip, where the file does not name it: mi300x, h100 …", metavar="CHIP"
    )
    on: tuple[str, ...] = option(
        (),
        "Predict the run on these chips: mi355x,h200 …",
        values=NameList(),
        metavar="CHIP[,CHIP]",
    )
    what_if: str = option(
        "", 'Changes of the run: "attention=flash3; batch*2; graphs".', metavar="CHANGES"
    )
    against: Path | None = option(
        None, "Compare with another profile by operator and module.", values=FILE, metavar="FILE"
    )
    model: str = option(
        "", "The model that ran (config.json, name): sizes in graphs.", metavar="CONFIG"
    )
    code: tuple[Path, ...] = option(
        (),
        "Explain the kernels in a script, HIP file or code object.",
        values=Several(FILE),
        metavar="FILE",
    )
    arguments: tuple[str, ...] = option(
        (),
        "An argument of the kernels in --code: n=4096, x=f32[4096].",
        "--arg",
        metavar="NAME=VALUE",
    )
    grid: tuple[int, int, int] | None = option(
        None,
        "Workgroups of the kernels in --code, where the profile has none.",
        values=Dimensions(),
    )
    block: tuple[int, int, int] | None = option(
        None, "Threads of their workgroups, where the profile has none.", values=Dimensions()
    )
    arch_files: tuple[Path, ...] = option(
        (),
        "TOML with facts of a GPU, over those of the package.",
        "--arch-file",
        values=Several(FILE),
    )
    calibrate: Path | None = option(
        None,
        "Write the chip's facts that fit this profile, for --arch-file.",
        values=OUTPUT_FILE,
        metavar="FILE",
    )
    perfetto: Path | None = option(
        None,
        "Write the measured and predicted timelines for Perfetto.",
        values=OUTPUT_FILE,
        metavar="FILE",
    )

    def plan(self) -> Plan:
        """The launch of the kernels in `code`. Raises UsageError."""
        from wavecast.pipeline.plan import Plan, Planned, named_value

        has_launch = self.arguments or self.grid or self.block
        if has_launch and all(file.suffix == ".py" for file in self.code):
            raise UsageError("--arg, --grid and --block are for kernels of code files (--code)")
        values = dict(map(named_value, self.arguments))
        arguments = {name: Planned(value) for name, value in values.items()}
        return Plan("", self.grid, self.block, None, arguments)


@dataclass(frozen=True, slots=True, repr=False)
class ProfileReport(ShownResult):
    """What profilers measured: `answers`, one per file (the ranks of a folder; with `against` the
    other profile is the last), the `comparison`, the facts of the chip that `calibrate` fitted, and
    what ranks wait for one another.
    The document is `wavecast.profile/1`."""

    answers: Sequence[ProfileAnswer]
    comparison: ProfileComparison | None = None
    facts: Sequence[FittedFact] = ()
    skew: RankSkew | None = None

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.profiles import json

        return json.document(self.answers, self.comparison, self.skew)

    def html(self) -> str:
        from wavecast.report.profiles import html as profiles_html

        return profiles_html.render(self.answers, self.comparison)

    def markdown(self) -> str:
        """The figures for a comment of a pull request."""
        from wavecast.report.profiles import markdown as profiles_markdown

        return profiles_markdown.render(self.answers, self.comparison)

    def perfetto(self) -> str:
        """The measured and predicted timelines as a trace for Perfetto."""
        from wavecast.report.profiles import perfetto as profiles_perfetto

        return profiles_perfetto.dumps(self.answers)

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.profiles import comparison as profiles_comparison
        from wavecast.report.profiles import terminal

        if self.comparison is None:
            terminal.render(self.answers, console, self.skew, detail=detail)
        else:
            before, after = (answer.path.name for answer in self.answers)
            files = before, after
            profiles_comparison.render(self.comparison, files, console, detail=detail)

    def messages(self) -> list[str]:
        return [
            f"{fact.field} {fact.value:.4g} {fact.unit} (was {fact.before:.4g}), from {fact.origin}"
            for fact in self.facts
        ]

    def subject(self) -> str:
        return few([answer.path.name for answer in self.answers])


def profile(
    path: str | Path,
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> ProfileReport:
    """Where the time of a profiled run went, and what it would be on other chips.

    `path` is a file that a profiler wrote, or a folder with one per rank. `options` are those of
    the command line, by the names of `ProfileOptions`.

    Raises InputError for a file that cannot be read, UnknownName for a chip, UsageError for changes
    that are none and for `against` with a folder.
    """
    from wavecast.files import write_text
    from wavecast.profiles.answer import profiles
    from wavecast.profiles.comparison import compare_profiles
    from wavecast.profiles.ranks import skew

    profile_options = ProfileOptions.of(options)
    files = profile_options.arch_files
    answers = profiles(
        Path(path),
        profile_options.device,
        profile_options.on,
        profile_options.what_if,
        files,
        profile_options.code,
        profile_options.model,
        profile_options.plan(),
    )
    comparison = None
    if profile_options.against:
        others = profiles(profile_options.against, profile_options.device, arch_files=files)
        if len(answers) != 1 or len(others) != 1:
            raise UsageError("--against compares two files, not folders")
        comparison = compare_profiles(answers[0].profile, others[0].profile)
        answers += others
    facts = _calibrate(answers, profile_options.calibrate) if profile_options.calibrate else ()
    waits = skew([answer.profile for answer in answers])
    report = ProfileReport(answers, comparison, facts, waits)
    for file, text in (
        (profile_options.html, report.html),
        (profile_options.perfetto, report.perfetto),
    ):
        if file is not None:
            write_text(file, text())
    return report


def _calibrate(answers: Sequence[ProfileAnswer], file: Path) -> Sequence[FittedFact]:
    """Write the facts of the chip that fit a profile."""
    from wavecast.files import write_text
    from wavecast.profiles.calibration import fit_facts, overlay

    if len(answers) != 1:
        raise UsageError("--calibrate fits one profile, not a folder or a comparison")
    (answer,) = answers
    if answer.predicted is None:
        raise UsageError(f"{answer.path}: the chip is not known", hint="--device names the chip")
    facts = fit_facts(answer.profile, answer.predicted)
    write_text(file, overlay(answer.predicted.device, facts, answer.path.name))
    return facts


__all__ = ["ProfileOptions", "ProfileReport", "profile"]
