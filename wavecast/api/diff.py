"""`wavecast.diff`: two versions of a kernel, or one under two compilers; a search over releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.api.explain import SampleOptions, ScriptOptions
from wavecast.api.launch import KernelOptions, LaunchOptions
from wavecast.api.result import ShownResult
from wavecast.errors import AllFailed, UsageError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import Integers, NameList, Numbers

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.benchmarking.diff.bisect import Found, Probe
    from wavecast.benchmarking.diff.result import Diff
    from wavecast.benchmarking.diff.sides import Asked, Side


@dataclass(frozen=True, kw_only=True)
class DiffOptions(ScriptOptions, SampleOptions, LaunchOptions, KernelOptions):
    """Options of two sides that are compared."""

    EXCLUSIVE: ClassVar = (("commits", "releases", "bisect"),)
    NEEDS: ClassVar[Mapping[str, str]] = {"kpi": "bisect", "first": "bisect", "last": "bisect"}

    commits: tuple[str, ...] = option(
        (),
        "A at this commit. One is compared with the working tree.",
        "--commit",
        metavar="REV",
    )
    releases: tuple[str, ...] = option(
        (),
        "A under this release of Triton. One is compared with the installed one.",
        "--triton",
        metavar="RELEASE",
    )
    bisect: bool = option(False, "Find the release of Triton that made --kpi worse.")
    kpi: str = option("", "The figure that --bisect compares.")
    first: str = option(
        "",
        "The first release of --bisect; by default the oldest supported one.",
        "--from",
        metavar="RELEASE",
    )
    last: str = option(
        "",
        "The last release of --bisect; by default the newest.",
        "--to",
        metavar="RELEASE",
    )
    fail_on: tuple[str, ...] = option(
        (),
        "Exit with 1 if one of these figures is worse.",
        values=NameList(),
        metavar="KPI[,KPI…]",
    )
    minimum: float = option(
        0.0, "The smallest relative change that --fail-on and --bisect count.", values=Numbers(0)
    )


@dataclass(frozen=True, kw_only=True)
class AssemblyRows(Options):
    """How a comparison is shown."""

    rows: int = option(40, "Number of assembly lines to show per kernel.", values=Integers())


@dataclass(frozen=True, slots=True, repr=False)
class DiffReport(ShownResult):
    """Two versions of kernels compared. `worse` has a line per figure of `fail_on` that is worse.
    The document is `wavecast.diff/1`."""

    diff: Diff
    worse: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.diff import json as diff

        return diff.document(self.diff)

    def html(self) -> str:
        from wavecast.report.diff import html as diff_html

        return diff_html.render(self.diff)

    def render(self, console: Console, *, rows: int = 40) -> None:
        from wavecast.report.diff import terminal

        terminal.render(self.diff, console, rows=rows)

    def failed(self) -> list[str]:
        """The kernels that fail on one side only, so that they are not compared."""
        before, after = (
            {f"{failure.kernel} for {failure.target}" for failure in failures}
            for failures in (self.diff.failed_before, self.diff.failed_after)
        )
        return sorted(before ^ after)

    def messages(self) -> list[str]:
        failed = self.failed()
        lines = [f"not compared, they fail on one side: {', '.join(failed)}"] if failed else []
        return lines + [f"worse: {line}" for line in self.worse]

    def exit_code(self) -> int:
        return 2 if self.failed() else int(bool(self.worse))

    def subject(self) -> str:
        return f"{self.diff.before} → {self.diff.after}"


@dataclass(frozen=True, slots=True, repr=False)
class BisectReport(ShownResult):
    """A search for the release of Triton that made a figure worse, and the `diff` of the releases
    around it. The document is `wavecast.bisect/1`."""

    search: Found
    diff: Diff | None

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.diff import json as diff

        return diff.bisect_document(self.search, self.diff)

    def render(self, console: Console, *, rows: int = 40) -> None:
        from wavecast.report.diff import terminal

        terminal.render_bisect(self.search, console)
        if self.diff is not None:
            console.print()
            terminal.render(self.diff, console, rows=rows)

    def messages(self) -> list[str]:
        return [_probe_text(probe, self.search.kpi.name) for probe in self.search.probes]

    def exit_code(self) -> int:
        return int(bool(self.search.first_worse))

    def subject(self) -> str:
        from wavecast.report.diff.words import conclusion

        return conclusion(self.search)


def diff(
    before: str | Path, *words: str | Path, progress: Progress = silent, **options: Any
) -> DiffReport | BisectReport:
    """Two versions of kernels: registers, spills, LDS, waves, findings, predicted time, assembly.

    `before` and the first of `words` are scripts, HIP files, assembly or code objects; with
    `commits`, `releases` or `bisect` there is only `before`. The other words go to scripts.
    `options` are those of the command line, by the names of `DiffOptions`.

    Raises AllFailed where a side has no kernel that can be compared, and another WavecastError for
    files that cannot be read.
    """
    from wavecast.benchmarking.diff.compare import compare
    from wavecast.benchmarking.diff.figures import compared_kpi
    from wavecast.benchmarking.diff.sides import Asked
    from wavecast.benchmarking.diff.verdict import worse
    from wavecast.pipeline import SourceOptions

    diff_options = DiffOptions.of(options)
    one_file = bool(diff_options.commits or diff_options.releases or diff_options.bisect)
    paths, arguments = _words([str(before), *map(str, words)], two=not one_file)
    if not any(path.suffix == ".py" for path in paths):
        names = ScriptOptions.described()
        diff_options.check_unstated(names, f"{' and '.join(map(str, paths))}: no scripts")
    figures = [compared_kpi(name) for name in diff_options.fail_on]
    source = SourceOptions(
        script_args=arguments,
        kernels=diff_options.kernels,
        configs=diff_options.configs,  # type: ignore[arg-type]
        timeout=diff_options.timeout,
        show_output=diff_options.show_output,
        sample=diff_options.sample,
        plan=diff_options.plan(*paths),
        compiler_options=diff_options.compiler_options,
    )
    request = Asked(diff_options.selection(*paths), source, diff_options.arch_files)
    if diff_options.bisect:
        return _bisect(paths[0], diff_options, request, progress)
    first, second = _sides(paths, diff_options, request, progress)
    if not first.report.explanations or not second.report.explanations:
        raise AllFailed(_failures(first, second))
    compared = compare(first, second)
    return DiffReport(compared, worse(compared, figures, diff_options.minimum) if figures else ())


def _words(words: Sequence[str], *, two: bool) -> tuple[list[Path], tuple[str, ...]]:
    """The files, and what goes to the script."""
    number = 2 if two else 1
    if len(words) < number or any(word.startswith("-") for word in words[:number]):
        raise UsageError(
            "diff needs two files, A and B", hint="or A with --commit, --triton or --bisect"
        )
    paths = [Path(word) for word in words[:number]]
    for path in paths:
        if not path.exists() and two:
            raise UsageError(f"no such file: {path}")
    if words[number:] and not any(path.suffix == ".py" for path in paths):
        raise UsageError(f"unexpected argument {words[number]!r}: only scripts take arguments")
    return paths, tuple(words[number:])


def _sides(
    paths: Sequence[Path], options: DiffOptions, request: Asked, progress: Progress
) -> tuple[Side, Side]:
    from wavecast.benchmarking.diff import environments, sides

    for flag, values in (("--commit", options.commits), ("--triton", options.releases)):
        if len(values) > 2:
            raise UsageError(f"{flag} is given once or twice")
    path = paths[0]
    if options.commits:
        first, *second = options.commits
        before = sides.of_commit(path, first, request, progress)
        if second:
            return before, sides.of_commit(path, second[0], request, progress)
        return before, sides.of_file(path, request, progress, f"{path} as it is")
    if options.releases:
        first, last = (*options.releases, environments.installed_release())[:2]
        before = sides.of_release(path, first, request, progress)
        return before, sides.of_release(path, last, request, progress)
    return sides.of_file(path, request, progress), sides.of_file(paths[1], request, progress)


def _failures(*sides: Side) -> list[str]:
    from wavecast.report.diff.words import failure_text

    lines = [f"{s.label}: {failure_text(failure)}" for s in sides for failure in s.report.failures]
    return lines or ["a side has no kernel"]


def _bisect(path: Path, options: DiffOptions, request: Asked, progress: Progress) -> BisectReport:
    from wavecast.benchmarking.diff import environments
    from wavecast.benchmarking.diff.bisect import bisect
    from wavecast.benchmarking.diff.compare import compare
    from wavecast.benchmarking.diff.figures import compared_kpi
    from wavecast.benchmarking.diff.releases import Releases

    if not options.kpi:
        raise UsageError("--bisect needs --kpi", hint="for example --kpi spills")
    kpi = compared_kpi(options.kpi)
    releases = environments.between(environments.offered_releases(), options.first, options.last)
    builds = Releases(path, kpi, request, progress)

    def tell(probe: Probe) -> None:
        progress(_probe_text(probe, kpi.name))

    search = bisect(kpi, releases, builds.values, minimum=options.minimum, show=tell)
    around = None
    if search.first_worse:
        around = compare(builds.side(search.last_good), builds.side(search.first_worse))
    return BisectReport(search, around)


def _probe_text(probe: Probe, kpi: str) -> str:
    from wavecast.report.diff.words import figure_text

    values = (f"{name}: {figure_text(kpi, value)}" for name, value in probe.values.items())
    return f"triton {probe.release}: {probe.verdict}: {probe.failed or ', '.join(values)}"


__all__ = ["AssemblyRows", "BisectReport", "DiffOptions", "DiffReport", "diff"]
