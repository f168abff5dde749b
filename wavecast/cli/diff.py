"""`wavecast diff`: two versions of a kernel, or one under two compilers; a search over releases."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from wavecast.cli import streams
from wavecast.cli.launches import stated_plan
from wavecast.cli.opening import opening
from wavecast.cli.types import Dimensions, NumberRange, RegexParam, count
from wavecast.errors import UsageError

if TYPE_CHECKING:
    from wavecast.bench.diff.result import Diff
    from wavecast.bench.diff.sides import Asked, Side
    from wavecast.pipeline.plan import Plan

FORMATS = ("text", "json", "html")


@dataclass(frozen=True, slots=True)
class _Output:
    """How what was found is shown."""

    form: str
    path: Path | None
    rows: int


@click.command(
    "diff",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast diff matmul.py matmul_new.py --arch gfx942,gfx1100

    wavecast diff matmul.py --commit main --fail-on spills,predicted_seconds

    wavecast diff matmul.py --commit v1.0 --commit v1.1 --arch gfx950 -- --batch 4

    wavecast diff a.hip b.hip --grid 64 --block 256 --arg n=16384 --arg x=f32[16384]

    wavecast diff matmul.py --triton 3.8.0 --triton 3.9.0

    wavecast diff matmul.py --bisect --kpi spills --from 3.6.0 --to 3.9.0
    """,
)
@click.argument("words", nargs=-1, required=True, metavar="A [B] [-- SCRIPT ARGUMENTS]",
                type=click.UNPROCESSED)  # fmt: skip
@click.option("-a", "--arch", metavar="GPU[,GPU…]",
              help="GPUs by name (mi300x) or target (gfx942, sm_90).  [default: the target of a "
              "code file, gfx942 for source]")  # fmt: skip
@click.option("--arch-file", multiple=True, type=click.Path(path_type=Path),
              help="TOML that adds a device or overrides facts of one.")  # fmt: skip
@click.option("--commit", "commits", multiple=True, metavar="REV",
              help="A at this commit. One is compared with the working tree.")  # fmt: skip
@click.option("--triton", "releases", multiple=True, metavar="RELEASE",
              help="A under this release. One is compared with the installed one.")  # fmt: skip
@click.option("--bisect", "search", is_flag=True,
              help="Find the release of Triton that made --kpi worse.")  # fmt: skip
@click.option("--kpi", default="", help="The figure that --bisect compares.")
@click.option(
    "--from",
    "first",
    default="",
    metavar="RELEASE",
    help="The first release of --bisect; by default the oldest supported one.",
)
@click.option(
    "--to",
    "last",
    default="",
    metavar="RELEASE",
    help="The last release of --bisect; by default the newest.",
)
@click.option("-k", "--kernels", default="", type=RegexParam(),
              help="Only kernels whose name matches.")  # fmt: skip
@click.option("--configs", type=click.Choice(["first", "all", "best"]), default="first",
              show_default=True,
              help="Autotuned kernels: the first, all, or the fastest configuration.")  # fmt: skip
@click.option("--grid", type=Dimensions(), help="Workgroups, for code that no script launches.")
@click.option(
    "--block", type=Dimensions(), help="Threads per workgroup, for code that no script launches."
)
@click.option("--lds", type=count(), default=0,
              help="Dynamic LDS in bytes, for code that no script launches.")  # fmt: skip
@click.option("--arg", "plan_arguments", multiple=True, metavar="NAME=VALUE",
              help="An argument of code that no script launches: n=4096, x=f32[4096].")  # fmt: skip
@click.option("--args", "plan_file", type=click.Path(path_type=Path), metavar="TOML",
              help="A file with grid, block and arguments; options override it.")  # fmt: skip
@click.option("-X", "--compiler-option", multiple=True, metavar="OPTION",
              help="Passed to the HIP compiler, e.g. -X -DBLOCK=128.")  # fmt: skip
@click.option("--sample", is_flag=True,
              help="Predict from an executed sample of a launch: slower, more exact.")  # fmt: skip
@click.option("--timeout", type=NumberRange(min=0, min_open=True), metavar="SECONDS",
              help="Stop a script after this time and compare what was captured.")  # fmt: skip
@click.option("--show-output", is_flag=True, help="Print the script's output to stderr.")
@click.option("--rows", type=count(), default=40, show_default=True,
              help="Number of assembly lines to show per kernel.")  # fmt: skip
@click.option("--fail-on", default="", metavar="KPI[,KPI…]",
              help="Exit with 1 if one of these figures is worse.")  # fmt: skip
@click.option("--minimum", type=NumberRange(min=0), default=0.0, show_default=True,
              help="The smallest relative change that --fail-on and --bisect count.")  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(FORMATS), default="text",
              show_default=True)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write to this file instead of standard output.")  # fmt: skip
@opening
def command(
    words: tuple[str, ...],
    arch: str | None,
    arch_file: tuple[Path, ...],
    commits: tuple[str, ...],
    releases: tuple[str, ...],
    search: bool,
    kpi: str,
    first: str,
    last: str,
    kernels: str,
    configs: Literal["first", "all", "best"],
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
    lds: int,
    plan_arguments: tuple[str, ...],
    plan_file: Path | None,
    compiler_option: tuple[str, ...],
    sample: bool,
    timeout: float | None,
    show_output: bool,
    rows: int,
    fail_on: str,
    minimum: float,
    form: str,
    output: Path | None,
) -> int:
    """Compare two versions of kernels: registers, spills, LDS, waves, instruction mix, findings,
    predicted time, the responsible loop, and its assembly.

    A and B are scripts, HIP files, assembly or code objects. With --commit or --triton there is
    only A, at two commits or under two releases of Triton. Each release has an environment in the
    cache folder. No GPU is needed.
    """
    from wavecast.bench.diff.figures import compared_kpi
    from wavecast.bench.diff.sides import Asked
    from wavecast.pipeline import ExplainOptions, select, selectors

    paths, arguments = _words(words, two=not (commits or releases or search))
    _check_modes(commits, releases, search, kpi, first, last)
    failing = [compared_kpi(name.strip()) for name in fail_on.split(",") if name.strip()]
    options = ExplainOptions(
        script_args=arguments,
        kernels=kernels,
        configs=configs,
        timeout=timeout,
        show_output=show_output,
        sample=sample,
        grid=grid,
        block=block,
        dynamic_lds=lds,
        plan=_plan(paths, plan_arguments, plan_file),
        compiler_options=compiler_option,
    )
    asked = Asked(select(selectors(arch, paths), arch_file), options, arch_file)
    shown = _Output(form, output, rows)
    if search:
        return _bisect(paths[0], compared_kpi(kpi), first, last, minimum, asked, shown)
    with streams.progress() as update:
        before, after = _sides(paths, commits, releases, asked, update)
    if not before.report.explanations and not after.report.explanations:
        return _nothing(before, after)
    return _compared(before, after, failing, minimum, shown)


def _words(words: tuple[str, ...], *, two: bool) -> tuple[list[Path], tuple[str, ...]]:
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
    return paths, words[number:]


def _plan(paths: list[Path], arguments: tuple[str, ...], plan_file: Path | None) -> Plan:
    """The launch that the options state, for the code of both sides. Raises UsageError if one is a
    script."""
    plans = [stated_plan(path, arguments, plan_file) for path in paths]
    return plans[0]


def _check_modes(
    commits: tuple[str, ...],
    releases: tuple[str, ...],
    search: bool,
    kpi: str,
    first: str,
    last: str,
) -> None:
    if bool(commits) + bool(releases) + search > 1:
        raise UsageError("--commit, --triton and --bisect exclude each other")
    for option, given in (("--commit", commits), ("--triton", releases)):
        if len(given) > 2:
            raise UsageError(f"{option} is given once or twice")
    if search and not kpi:
        raise UsageError("--bisect needs --kpi", hint="for example --kpi spills")
    if not search and (kpi or first or last):
        raise UsageError("--kpi, --from and --to need --bisect")


def _sides(
    paths: list[Path],
    commits: tuple[str, ...],
    releases: tuple[str, ...],
    asked: Asked,
    update: Callable[[str], None],
) -> tuple[Side, Side]:
    from wavecast.bench.diff import environments, sides

    path = paths[0]
    if commits:
        before = sides.of_commit(path, commits[0], asked, update)
        if len(commits) == 1:
            return before, sides.of_file(path, asked, update, f"{path} as it is")
        return before, sides.of_commit(path, commits[1], asked, update)
    if releases:
        both = (*releases, environments.installed())[:2]
        return (
            sides.of_release(path, both[0], asked, update),
            sides.of_release(path, both[1], asked, update),
        )
    return sides.of_file(path, asked, update), sides.of_file(paths[1], asked, update)


def _compared(before: Side, after: Side, failing: list[Any], minimum: float, shown: _Output) -> int:
    from wavecast.bench.diff.compare import compare
    from wavecast.bench.diff.verdict import worse

    found = compare(before, after)
    _show(found, shown)
    if not failing:
        return 0
    verdict = worse(found, failing, minimum)
    for line in verdict:
        click.echo(f"wavecast: worse: {line}", err=True)
    return 1 if verdict else 0


def _show(found: Diff, shown: _Output) -> None:
    if shown.path is None:
        _write(found, shown, sys.stdout)
        return
    with streams.writing(shown.path) as file:
        _write(found, shown, file)


def _write(found: Diff, shown: _Output, stream: IO[str]) -> None:
    if shown.form == "text":
        from wavecast.report import diff_terminal

        diff_terminal.render(found, _console(stream), rows=shown.rows)
        return
    streams.as_document(stream)
    if shown.form == "html":
        from wavecast.report import diff_html

        stream.write(diff_html.render(found))
    else:
        import json

        from wavecast.report import diff

        document = diff.document(found)
        stream.write(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    stream.flush()


def _console(stream: IO[str]) -> Any:
    return streams.console(None if stream.isatty() else 200, stream)


def _nothing(before: Side, after: Side) -> int:
    """Nothing could be compared: one line per failure on stderr."""
    from wavecast.report.diff_words import failed

    for side in (before, after):
        for failure in side.report.failures:
            click.echo(f"wavecast: {side.label}: {' '.join(failed(failure).split())}", err=True)
    return 2


def _bisect(
    path: Path, kpi: Any, first: str, last: str, minimum: float, asked: Asked, shown: _Output
) -> int:
    from wavecast.bench.diff import environments
    from wavecast.bench.diff.bisect import Probe, bisect
    from wavecast.bench.diff.compare import compare
    from wavecast.bench.diff.releases import Releases
    from wavecast.report import diff
    from wavecast.report.diff_words import figure_text

    if shown.form == "html":
        raise UsageError("--bisect has the formats text and json")
    releases = environments.between(environments.offered(), first, last)
    with streams.progress() as update:
        asking = Releases(path, kpi, asked, update)

        def tell(probe: Probe) -> None:
            values = (f"{n}: {figure_text(kpi.name, v)}" for n, v in probe.values.items())
            told = probe.failed or ", ".join(values)
            click.echo(f"triton {probe.release}: {probe.verdict}: {told}", err=True)

        found = bisect(kpi, releases, asking.values, minimum=minimum, shown=tell)
    around = None
    if found.first_worse:
        around = compare(asking.side(found.last_good), asking.side(found.first_worse))

    def write(stream: IO[str]) -> None:
        if shown.form == "json":
            import json

            streams.as_document(stream)
            document = diff.bisect_document(found, around)
            stream.write(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
            return
        from wavecast.report import diff_terminal

        console = _console(stream)
        diff_terminal.render_bisect(found, console)
        if around is not None:
            console.print()
            diff_terminal.render(around, console, rows=shown.rows)

    if shown.path is None:
        write(sys.stdout)
    else:
        with streams.writing(shown.path) as file:
            write(file)
    return 1 if found.first_worse else 0


__all__ = ["FORMATS", "command"]
