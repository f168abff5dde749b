"""`wavecast explain`: options, progress, output format and exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any, Literal

import click

from wavecast.cli import streams
from wavecast.cli.types import Dimensions, Quantity

FORMATS = ("text", "json", "html", "sarif")
SEVERITIES = ("note", "warning", "error")


@click.command(
    "explain",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast explain matmul.py --arch gfx942,gfx950,gfx1100,sm_90

    wavecast explain train.py --arch mi300x -k attention -- --batch 4

    wavecast explain reduce.hip --arch gfx1100 --grid 1024 --block 256
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
              help="GPUs by name (mi300x) or target (gfx942, sm_90).")  # fmt: skip
@click.option("--arch-file", multiple=True, type=click.Path(path_type=Path),
              help="TOML that adds a device or overrides facts of one.")  # fmt: skip
@click.option(
    "-k", "--kernels", default="", metavar="REGEX", help="Only kernels whose name matches."
)
@click.option("--configs", type=click.Choice(["first", "all"]), default="first", show_default=True,
              help="Autotuned kernels: the first configuration, or each.")  # fmt: skip
@click.option("--grid", type=Dimensions(), help="Workgroups, for code that no script launches.")
@click.option("--block", type=Dimensions(), help="Threads of a workgroup, for the same.")
@click.option("--lds", type=click.IntRange(min=0), default=0,
              help="Dynamic LDS in bytes, for the same.")  # fmt: skip
@click.option("-X", "--compiler-option", multiple=True, metavar="OPTION",
              help="Passed to the HIP compiler, e.g. -X -DBLOCK=128.")  # fmt: skip
@click.option(
    "--flops", type=Quantity(), help="Useful FLOPs of a launch, instead of deriving them."
)
@click.option(
    "--bytes", "bytes_", type=Quantity(), help="Least bytes of a launch, instead of deriving them."
)
@click.option("--dtype", default="", help="Dtype the given FLOPs are counted in (bf16, fp8 …).")
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write there instead of standard output.")  # fmt: skip
@click.option("--detail", type=click.Choice(["brief", "normal", "full"]), default="normal",
              show_default=True, help="How much the text format shows.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Stop a script after this time; what was captured is explained.")  # fmt: skip
@click.option("--show-output", is_flag=True,
              help="Show on stderr what the script prints; its numbers mean nothing.")  # fmt: skip
@click.option(
    "--disable", default="", metavar="RULE[,RULE…]", help="Rules not to run (see wavecast rules)."
)
@click.option("--fail-on", type=click.Choice(SEVERITIES), default=None,
              help="Exit with 1 when a finding is at least this severe.")  # fmt: skip
def command(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    arch_file: tuple[Path, ...],
    kernels: str,
    configs: Literal["first", "all"],
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
    lds: int,
    compiler_option: tuple[str, ...],
    flops: float | None,
    bytes_: float | None,
    dtype: str,
    format_: str,
    output: Path | None,
    detail: str,
    timeout: float | None,
    show_output: bool,
    disable: str,
    fail_on: str | None,
) -> int:
    """Say what the compiler made of the kernels in PATH on each GPU.

    PATH is a Python script with Triton kernels (it is run; its launches are recorded, not
    computed), a HIP file, assembly, a code object, PTX or a cubin. Arguments after -- go to the
    script.
    """
    from wavecast.pipeline import Given, Options, explain_path, select

    _check_regex(kernels)
    if timeout != timeout:  # not a number, which no comparison refuses
        raise click.BadParameter("not a number", param_hint="--timeout")
    given = Given(
        flops=flops,
        bytes=bytes_,
        dtype=dtype,
        disabled_rules=_disabled(disable),
    )
    options = Options(
        script_args=script_args,
        kernels=kernels,
        configs=configs,
        timeout=timeout,
        show_output=show_output,
        grid=grid,
        block=block,
        dynamic_lds=lds,
        compiler_options=compiler_option,
        given=given,
    )
    selection = select(arch.split(","), arch_file)
    with _Progress() as progress:
        report = explain_path(path, selection, options, progress.update)
    if not report.explanations:
        return _report_failures(report)
    if output is None:
        _write(report, format_, detail, sys.stdout)
    else:
        _write_file(report, format_, detail, output)
    return _exit_code(report, fail_on)


def _check_regex(pattern: str) -> None:
    import re

    try:
        re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r}: {error}", param_hint="-k") from None


def _disabled(names: str) -> tuple[str, ...]:
    from wavecast import rules

    wanted = tuple(name.strip() for name in names.split(",") if name.strip())
    for name in wanted:
        rules.rule(name)
    return wanted


class _Progress:
    """One status line on stderr while a terminal watches; silent otherwise."""

    def __enter__(self) -> _Progress:
        from rich.console import Console

        console = Console(stderr=True)
        self._status = console.status("starting") if console.is_terminal else None
        if self._status is not None:
            self._status.start()
        return self

    def update(self, text: str) -> None:
        """Show what is being done."""
        if self._status is not None:
            self._status.update(text)

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()


def _write(report: Any, format_: str, detail: str, stream: IO[str]) -> None:
    if format_ == "text":
        from wavecast.report import terminal

        width = None if stream.isatty() else 110
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
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _write_file(report: Any, format_: str, detail: str, output: Path) -> None:
    with streams.writing(output) as stream:
        _write(report, format_, detail, stream)


def _report_failures(report: Any) -> int:
    """Nothing could be explained: one line per failure on stderr."""
    for failure in report.failures:
        kernel = f"{failure.kernel} for {failure.target}: " if failure.kernel else ""
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
