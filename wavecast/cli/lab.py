"""`wavecast lab`: the compiler's passes and decisions."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import IO, Any

import click

from wavecast.cli import streams
from wavecast.cli.groups import CommandGroup
from wavecast.cli.lab_compilers import compilers
from wavecast.cli.lab_reduce import reduce
from wavecast.cli.lab_schedule import schedule
from wavecast.cli.launches import lab_source, source_options
from wavecast.cli.types import PROCESSES, RegexParam, count
from wavecast.errors import UsageError

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("lab", cls=CommandGroup, context_settings=_HELP)
def command() -> None:
    """Show what compiler passes do to a kernel, and try other decisions of the compiler."""


@command.command(
    "tune",
    context_settings=_HELP,
    epilog="""Examples:

    wavecast lab tune matmul.py --arch gfx942,gfx950

    wavecast lab tune attention.py -k fwd --jobs 8 -o settings.json

    wavecast lab tune attention.py -o settings.json --resume -- --batch 4

    wavecast lab tune saxpy.hip --grid 4096 --block 256 --args launch.toml
    """,
)
@source_options
@click.option("-j", "--jobs", type=PROCESSES, metavar="N",
              help="Number of processes. [default: one per processor]")  # fmt: skip
@click.option("--verify", type=count(), default=4, show_default=True, metavar="N",
              help="Execute the N fastest settings next to the original.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the best settings to this file, as JSON that programs load.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue an interrupted search from its journal.")
@click.option("--top", type=count(1), default=10, show_default=True, metavar="N",
              help="Number of settings to show per kernel.")  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
def tune(
    arch: str,
    arch_file: tuple[Path, ...],
    jobs: int | None,
    verify: int,
    output: Path | None,
    resume: bool,
    top: int,
    form: str,
    **source: Any,
) -> int:
    """Try other decisions of Triton and LLVM for the kernels of PATH: a script, or a HIP file whose
    launch is stated.

    Every alternative is compiled and its time predicted from its code. The fastest ones are
    executed on the emulator next to the original: one whose results differ, or that fails checks,
    is not advised. docs/lab.md has the list of decisions. Exit codes: 0; 2 if nothing could be
    compared.
    """
    from wavecast.emulate.launch import available_processors
    from wavecast.lab.run import LabOptions, save_settings
    from wavecast.lab.run import tune as search
    from wavecast.pipeline import select

    if resume and output is None:
        raise UsageError("--resume needs the output file of the interrupted run")
    selection = select(arch.split(","), arch_file)
    options = LabOptions(
        jobs=jobs or available_processors(),
        verify=verify,
        journal=f"{output}.journal" if output else "",
        resume=resume,
    )
    kernels = lab_source(arch_file=arch_file, **source)
    with streams.progress() as update:
        tuning = search(kernels, selection, options, update)
    if output is not None:
        save_settings(tuning.entries, output)
    from wavecast.report import lab as report

    if form == "json":
        from wavecast.documents.base import dumps

        streams.as_document(sys.stdout)
        sys.stdout.write(dumps(report.document(tuning), indent=1) + "\n")
    else:
        width = None if sys.stdout.isatty() else 200
        report.render(tuning, streams.console(width), top=top)
    return 0 if any(entry.base.seconds for entry in tuning.entries) else 2


@command.command(
    "passes",
    context_settings=_HELP,
    epilog="""Examples:

    wavecast lab passes matmul.py --arch gfx942

    wavecast lab passes attention.py -k fwd --format html -o passes.html

    wavecast lab passes reduction.hip --arch gfx1100 -- -DBLOCK=256
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
              help="AMD GPUs by name (mi300x) or target (gfx942).")  # fmt: skip
@click.option("--arch-file", multiple=True, type=click.Path(path_type=Path),
              help="TOML that adds a device or overrides facts of one.")  # fmt: skip
@click.option("-k", "--kernels", default="", type=RegexParam(),
              help="Only kernels whose name matches.")  # fmt: skip
@click.option("--without/--no-without", default=True, show_default=True,
              help="Also compile without each pass that can be switched off.")  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(["text", "json", "html"]),
              default="text", show_default=True)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write to this file instead of standard output.")  # fmt: skip
@click.option("--show-output", is_flag=True, help="Print the script's output to stderr.")
def passes(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    arch_file: tuple[Path, ...],
    kernels: str,
    without: bool,
    form: str,
    output: Path | None,
    show_output: bool,
) -> int:
    """Show what each pass of Triton and LLVM does to the kernels of PATH: a script of Triton
    kernels, a HIP file, or LLVM IR (NAME.ll), which the newest llc compiles.

    TTGIR after every pass of Triton, machine IR after the passes of LLVM's code generator that
    decide most, and the assembly: what changed by source line, registers live at once, reads that
    moved past matrix instructions, waits. Kernels are also compiled without some passes, to tell
    what these bring. Exit codes: 0; 2 if no kernel could be shown.
    """
    from wavecast.lab.pass_sources import TritonPasses
    from wavecast.lab.passes import passes_of
    from wavecast.lab.script_reports import reports_of_file, reports_of_script
    from wavecast.pipeline import select

    selection = select(arch.split(","), arch_file)
    report_of = partial(passes_of, without=without)
    with streams.progress() as update:
        if path.suffix == ".py":
            found = reports_of_script(
                path,
                script_args,
                selection,
                lambda launch, device: report_of(TritonPasses(launch, device)),
                kernels=kernels,
                quiet=not show_output,
                progress=update,
            )
        else:
            found = reports_of_file(
                path, script_args, selection, report_of, kernels=kernels, progress=update
            )

    def write(stream: IO[str]) -> None:
        if form == "text":
            from wavecast.report import passes as report

            console = streams.console(None if stream.isatty() else 200, stream)
            report.render(found.reports, found.notes, console)
            return
        streams.as_document(stream)
        if form == "html":
            from wavecast.report import passes_html

            stream.write(passes_html.render(found.reports, found.notes))
        else:
            from wavecast.documents.base import dumps
            from wavecast.report import passes as report

            stream.write(dumps(report.document(found.reports, found.notes), indent=1) + "\n")

    if output is None:
        write(sys.stdout)
    else:
        with streams.writing(output) as file:
            write(file)
    return 0 if found.reports else 2


command.add_command(schedule)
command.add_command(compilers)
command.add_command(reduce)

__all__ = ["command"]
