"""`wavecast lab`: the compiler's passes and decisions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wavecast.cli import streams
from wavecast.cli.types import PROCESSES, RegexParam, count
from wavecast.errors import UsageError

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("lab", context_settings=_HELP)
def command() -> None:
    """Show what compiler passes do to a kernel, and try other decisions of the compiler."""


@command.command(
    "tune",
    context_settings=_HELP,
    epilog="""Examples:

    wavecast lab tune matmul.py --arch gfx942,gfx950

    wavecast lab tune attention.py -k fwd --jobs 8 -o settings.json

    wavecast lab tune attention.py -o settings.json --resume -- --batch 4
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
@click.option("--show-output", is_flag=True, help="Print the script's output to stderr.")
def tune(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    arch_file: tuple[Path, ...],
    kernels: str,
    jobs: int | None,
    verify: int,
    output: Path | None,
    resume: bool,
    top: int,
    form: str,
    show_output: bool,
) -> int:
    """Try other decisions of Triton and LLVM for the kernels of the script PATH.

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
        kernels=kernels,
        quiet=not show_output,
        device_files=tuple(str(file.absolute()) for file in arch_file),
    )
    with streams.progress() as update:
        tuning = search(path, script_args, selection, options, update)
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


__all__ = ["command"]
