"""`wavecast explain`: options, progress, output format and exit code."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from wavecast.cli import streams
from wavecast.cli.launches import stated_plan
from wavecast.cli.opening import opening
from wavecast.cli.types import Dimensions, NumberRange, QuantityParam, RegexParam, count
from wavecast.errors import NothingAnalysed, UsageError

if TYPE_CHECKING:
    from wavecast.pipeline.result import ExplainReport

FORMATS = ("text", "brief", "json", "html", "sarif")
SEVERITIES = ("note", "warning", "error")
OF_OPERATIONS = (
    *("path", "shape", "settings", "dtype", "arch", "arch_file"),
    *("what_if", "format_", "output", "open_", "detail"),
)
"""Parameters an operation has; the others are about kernels."""


@click.command(
    "explain",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast explain matmul.py --arch gfx942,gfx950,gfx1100,sm_90

    wavecast explain train.py --arch mi300x -k attention -- --batch 4

    wavecast explain reduce.hip --arch gfx1100 --grid 1024 --block 256
    --arg input=f32[1048576] --arg output=f32[1024] --arg n=1048576

    wavecast explain gemm --shape 4096x4096x4096 --dtype fp8 --arch mi300x,mi355x

    wavecast explain libhipblaslt.so --list -k MT128x128 --arch gfx942
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("--shape", multiple=True, metavar="SIZES",
              help="Sizes of an operation (4096x4096x4096), instead of a file.")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="Other properties of an operation: --set causal=true.")  # fmt: skip
@click.option("-a", "--arch", metavar="GPU[,GPU…]",
              help="GPUs by name (mi300x) or target (gfx942, sm_90).  [default: the target of a "
              "code file, gfx942 for source]")  # fmt: skip
@click.option("--arch-file", multiple=True, type=click.Path(path_type=Path),
              help="TOML that adds a device or overrides facts of one.")  # fmt: skip
@click.option(
    "-k", "--kernels", default="", type=RegexParam(), help="Only kernels whose name matches."
)
@click.option("--list", "listed", is_flag=True,
              help="List the kernels of a code object, a bundle, a library, a program or an "
              "archive.")  # fmt: skip
@click.option("--configs", type=click.Choice(["first", "all", "best"]), default="first",
              show_default=True,
              help="Autotuned kernels: the first, all, or the fastest configuration.")  # fmt: skip
@click.option("--grid", type=Dimensions(), help="Workgroups, for code that no script launches.")
@click.option(
    "--block", type=Dimensions(), help="Threads per workgroup, for code that no script launches."
)
@click.option("--lds", type=count(), default=0,
              help="Dynamic LDS in bytes, for code that no script launches.")  # fmt: skip
@click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE",
              help="An argument of code that no script launches: n=4096, x=f32[4096].")  # fmt: skip
@click.option("--args", "plan_file", type=click.Path(path_type=Path), metavar="TOML",
              help="A file with grid, block and arguments; options override it.")  # fmt: skip
@click.option("-X", "--compiler-option", multiple=True, metavar="OPTION",
              help="Passed to the HIP compiler, e.g. -X -DBLOCK=128.")  # fmt: skip
@click.option(
    "--flops", type=QuantityParam(), help="Useful FLOPs of a launch, instead of deriving them."
)
@click.option(
    "--bytes",
    "bytes_",
    type=QuantityParam(),
    help="Least bytes of a launch, instead of deriving them.",
)
@click.option("--dtype", default="",
              help="Dtype of an operation, or the one the given FLOPs are counted in.")  # fmt: skip
@click.option("--what-if", is_flag=True,
              help="Simulate the effect of changes to a kernel.")  # fmt: skip
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write to this file instead of standard output.")  # fmt: skip
@click.option("--detail", type=click.Choice(["brief", "normal", "full"]), default="normal",
              show_default=True, help="How much the text format shows.")  # fmt: skip
@click.option("--sample", is_flag=True,
              help="Predict from an executed sample of a launch: slower, more exact.")  # fmt: skip
@click.option("--replace", is_flag=True,
              help="Also what operators of the library change in compiled graphs.")  # fmt: skip
@click.option("--perfetto", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a timeline of one simulated compute unit for Perfetto.")  # fmt: skip
@click.option("--timeout", type=NumberRange(min=0, min_open=True), metavar="SECONDS",
              help="Stop a script after this time and explain what was captured.")  # fmt: skip
@click.option("--show-output", is_flag=True,
              help="Print the script's output to stderr. Its numbers are wrong.")  # fmt: skip
@click.option("--recapture", is_flag=True,
              help="Run the script although nothing it depends on has changed.")  # fmt: skip
@click.option(
    "--disable", default="", metavar="RULE[,RULE…]", help="Rules not to run (see wavecast rules)."
)
@click.option("--fail-on", type=click.Choice(SEVERITIES), default=None,
              help="Exit with 1 when a finding is at least this severe.")  # fmt: skip
@opening
def command(
    path: Path,
    script_args: tuple[str, ...],
    shape: tuple[str, ...],
    settings: tuple[str, ...],
    arch: str | None,
    arch_file: tuple[Path, ...],
    kernels: str,
    listed: bool,
    configs: Literal["first", "all", "best"],
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
    lds: int,
    arguments: tuple[str, ...],
    plan_file: Path | None,
    compiler_option: tuple[str, ...],
    flops: float | None,
    bytes_: float | None,
    dtype: str,
    what_if: bool,
    format_: str,
    output: Path | None,
    detail: str,
    sample: bool,
    replace: bool,
    perfetto: Path | None,
    timeout: float | None,
    show_output: bool,
    recapture: bool,
    disable: str,
    fail_on: str | None,
) -> int:
    """Show the machine code of the kernels in PATH on each GPU, their predicted time, and what
    limits them.

    PATH is a Python script with Triton kernels, a HIP file, assembly, PTX, a cubin, or a code
    object, also in an offload bundle, a program, a shared library or an archive. A script runs, and
    its launches are recorded instead of computed. Arguments after -- go to the script.

    PATH can also be an operation with a --shape: attention, collective, conv, elementwise, gemm,
    moe, norm, reduction, softmax.

    docs/glossary.md explains the terms of the output.
    """
    if listed:
        return _list(path, arch, kernels, format_, output)
    from wavecast.pipeline import ExplainOptions, Given, explain_path, select, selectors

    if shape:
        _check_parameters()
        return _operation(
            str(path), shape, settings, dtype, arch, arch_file, format_, output, detail
        )
    _check_file(path, settings)
    given = Given(
        flops=flops,
        bytes=bytes_,
        dtype=dtype,
        disabled_rules=_disabled(disable),
        what_if=what_if,
    )
    options = ExplainOptions(
        script_args=script_args,
        kernels=kernels,
        configs=configs,
        timeout=timeout,
        show_output=show_output,
        recapture=recapture,
        sample=sample,
        replace=replace,
        grid=grid,
        block=block,
        dynamic_lds=lds,
        plan=stated_plan(path, arguments, plan_file),
        compiler_options=compiler_option,
        given=given,
    )
    selection = select(selectors(arch, [path]), arch_file)
    with streams.progress() as update:
        report = explain_path(path, selection, options, update)
    if not report.explanations:
        return _report_failures(report)
    if what_if:
        report = dataclasses.replace(report, notes=(*report.notes, *_without_what_if(report)))
    if perfetto is not None:
        _write_timeline(report, perfetto)
    if output is None:
        _write(report, format_, detail, sys.stdout)
    else:
        _write_file(report, format_, detail, output)
    return _exit_code(report, fail_on)


def _without_what_if(report: ExplainReport) -> Iterator[str]:
    """Why kernels have no what-ifs: each reason once."""
    from wavecast.compile.names import readable

    kernels: dict[str, list[str]] = {}
    for explanation in report.explanations:
        found = explanation.predicted
        if found.prediction is None:
            name = f"{readable(explanation.code.kernel)} on {explanation.device.target}"
            kernels.setdefault(found.why_not, []).append(name)
    for reason, names in kernels.items():
        yield f"no what-ifs for {', '.join(dict.fromkeys(names))}: {reason}"


def _list(path: Path, arch: str | None, kernels: str, format_: str, output: Path | None) -> int:
    """List the kernels of a file instead of explaining them."""
    from wavecast import arch as devices
    from wavecast.compile.inventory import inventory
    from wavecast.report import inventory as listing

    if format_ not in ("text", "json"):
        raise click.BadParameter(f"no {format_} for a list: text or json", param_hint="-f")
    selectors = [name.strip() for name in (arch or "").split(",") if name.strip()]
    targets = tuple(dict.fromkeys(devices.resolve(name).device.target for name in selectors))
    found = inventory(path, targets, kernels)
    if not found.entries and not found.unread:
        raise NothingAnalysed(f"{path}: no kernel matches {kernels!r}")
    if format_ == "json":
        text = listing.dumps(found, str(path)) + "\n"
    else:
        text = "".join(f"{line}\n" for line in listing.lines(found, str(path)))
    if output is not None:
        with streams.writing(output) as file:
            file.write(text)
        return 0
    streams.as_document(sys.stdout)
    sys.stdout.write(text)
    sys.stdout.flush()
    return 0


def _write_timeline(report: Any, path: Path) -> None:
    """Simulate every predicted launch again, keeping the events of its unit."""
    from wavecast.perfmodel.launches import launch_timing
    from wavecast.report.perfetto_unit import EVENTS, Timeline, dumps

    timelines = [
        Timeline(
            e.code,
            e.predicted.profile.program,
            launch_timing(e.predicted.profile, e.device, events=EVENTS),
        )
        for e in report.explanations
        if e.predicted.profile is not None
    ]
    if not timelines:
        raise NothingAnalysed("no launch was simulated, so there is no timeline")
    with streams.writing(path) as file:
        file.write(dumps(timelines))


def _check_parameters() -> None:
    """Refuse what the command line says about kernels where an operation is explained."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name not in OF_OPERATIONS and given and context.params[name] != ():
            shown = "arguments of a script" if name == "script_args" else parameter.opts[-1]
            raise click.UsageError(f"an operation takes no {shown}")


def _check_file(path: Path, settings: tuple[str, ...]) -> None:
    """Refuse what only an operation has where there is no `--shape`."""
    from wavecast.perfmodel.ops import OPS, op

    if str(path) in OPS and not path.exists():
        raise UsageError(f"{path} needs --shape", hint=op(str(path)).shape_help)
    if settings:
        raise click.UsageError("--set needs an operation with --shape")


def _operation(
    kind: str,
    shapes: tuple[str, ...],
    settings: tuple[str, ...],
    dtype: str,
    arch: str | None,
    arch_file: tuple[Path, ...],
    format_: str,
    output: Path | None,
    detail: str,
) -> int:
    """Explain an operation instead of a file."""
    from io import StringIO

    from wavecast.pipeline import DEFAULT, select
    from wavecast.pipeline.operations import explain_operation
    from wavecast.report import operations

    if format_ not in ("text", "json", "html"):
        raise click.BadParameter(f"no {format_} for operations: text, json, html", param_hint="-f")
    options = {"dtype": dtype} if dtype else {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint="--set")
        options[name.strip()] = value.strip()
    report = explain_operation(
        kind, shapes, options, select((arch or DEFAULT).split(","), arch_file)
    )
    if format_ == "json":
        text = operations.dumps(report) + "\n"
    elif format_ == "html":
        from wavecast.report.recorded_html import page

        text = page(kind, lambda console: operations.render(report, console, detail=detail))
    elif output is None:
        operations.render(report, streams.console(), detail=detail)
        return 0
    else:
        kept = StringIO()
        operations.render(report, streams.console(100, kept), detail=detail)
        text = kept.getvalue()
    if output is None:
        streams.as_document(sys.stdout)
        sys.stdout.write(text)
    else:
        with streams.writing(output) as file:
            file.write(text)
    return 0


def _disabled(names: str) -> tuple[str, ...]:
    from wavecast import rules

    wanted = tuple(name.strip() for name in names.split(",") if name.strip())
    for name in wanted:
        rules.rule(name)
    return wanted


def _write(report: Any, format_: str, detail: str, stream: IO[str]) -> None:
    if format_ == "text":
        from wavecast.report import terminal

        width = None if stream.isatty() or os.environ.get("COLUMNS") else 110
        shown: Any = detail
        terminal.render(report, streams.console(width, stream), detail=shown)
        return
    streams.as_document(stream)
    stream.write(_document(report, format_))
    stream.flush()


def _document(report: Any, format_: str) -> str:
    if format_ == "html":
        from wavecast.report import html

        return html.render(report)
    import json

    if format_ == "sarif":
        from wavecast import rules
        from wavecast.report import sarif

        document = sarif.document(report, rules.all_rules())
    else:
        from wavecast.report import json as json_report

        document = json_report.document(report)
        if format_ == "brief":
            from wavecast.report import brief

            return brief.lines(document)
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _write_file(report: Any, format_: str, detail: str, output: Path) -> None:
    with streams.writing(output) as stream:
        _write(report, format_, detail, stream)


def _report_failures(report: Any) -> int:
    """Nothing could be explained: one line per failure on stderr."""
    from wavecast.compile.names import readable

    for failure in report.failures:
        named = f"{readable(failure.kernel)} for {failure.target}: "
        kernel = named if failure.kernel else ""
        hint = f" ({failure.hint})" if failure.hint else ""
        message = " ".join(f"{kernel}{failure.message}{hint}".split())
        click.echo(f"wavecast: {message}", err=True)
    return 2


def _exit_code(report: Any, fail_on: str | None) -> int:
    if fail_on is None:
        return 0
    least = SEVERITIES.index(fail_on)
    worst = [SEVERITIES.index(f.severity) for e in report.explanations for f in e.findings]
    return int(any(severity >= least for severity in worst))
