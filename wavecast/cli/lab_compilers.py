"""`wavecast lab compilers`: code generators side by side."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wavecast.cli import streams
from wavecast.cli.types import RegexParam


@click.command(
    "compilers",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast lab compilers matmul.py --arch gfx942,gfx1100

    wavecast lab compilers matmul.py --arch gfx942 --bisect vgprs
    """,
)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
              help="AMD GPUs by name (mi300x) or target (gfx942).")  # fmt: skip
@click.option("-k", "--kernels", default="", type=RegexParam(),
              help="Only kernels whose name matches.")  # fmt: skip
@click.option("--bisect", default="", metavar="FIGURE",
              help="Name the passes that make a figure (vgprs, instructions, seconds …) differ.",
              )  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
@click.option("--show-output", is_flag=True, help="Print the script's output to stderr.")
def compilers(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    kernels: str,
    bisect: str,
    form: str,
    show_output: bool,
) -> int:
    """Compile the LLVM IR of the kernels of the script PATH with every code generator of this
    machine: Triton's, llc programs in PATH, and the clang of ziglang.

    With --bisect, Triton's core LLVM and every llc compile it with the first pass, the first two,
    and so on: what each pass changes, and which one makes the figure differ. Exit codes: 0; 2 if no
    kernel could be compared.
    """
    from wavecast.lab.bisect import check_figure
    from wavecast.lab.compilers import compared_compilers
    from wavecast.lab.script_reports import reports_of_script
    from wavecast.pipeline import select
    from wavecast.report import compilers as report

    if bisect:
        check_figure(bisect)
    selection = select(arch.split(","), ())
    with streams.progress() as update:
        found = reports_of_script(
            path,
            script_args,
            selection,
            lambda launch, device: compared_compilers(launch, device, figure=bisect),
            kernels=kernels,
            quiet=not show_output,
            progress=update,
        )
    if form == "json":
        from wavecast.documents.base import dumps

        streams.as_document(sys.stdout)
        sys.stdout.write(dumps(report.document(found.reports, found.notes), indent=1) + "\n")
    else:
        width = None if sys.stdout.isatty() else 200
        report.render(found.reports, found.notes, streams.console(width))
    return 0 if found.reports else 2


__all__ = ["compilers"]
