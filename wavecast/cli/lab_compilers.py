"""`wavecast lab compilers`: code generators side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavecast.cli import streams
from wavecast.cli.types import RegexParam

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.compile.codeobject import Launch
    from wavecast.lab.codegen import CodeGenerator
    from wavecast.lab.compilers import CompilerComparison


@click.command(
    "compilers",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast lab compilers matmul.py --arch gfx942,gfx1100

    wavecast lab compilers matmul.py --arch gfx942 --bisect vgprs

    wavecast lab compilers matmul.py --triton 3.7.1 --triton 3.8.0 --bisect seconds
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
@click.option("--triton", "releases", multiple=True, metavar="RELEASE",
              help="Another release of Triton, in a separate environment.")  # fmt: skip
@click.option("--compiler", "programs", multiple=True, metavar="PROGRAM",
              help="Another llc, clang or zig.")  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
@click.option("--show-output", is_flag=True, help="Print the script's output to stderr.")
def compilers(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    kernels: str,
    bisect: str,
    releases: tuple[str, ...],
    programs: tuple[str, ...],
    form: str,
    show_output: bool,
) -> int:
    """Compile the LLVM IR of the kernels of the script PATH with every code generator of this
    machine: Triton's, every llc and clang in PATH and of ROCm, and the clang of ziglang; and with
    those of --triton and --compiler.

    With --bisect, Triton's core LLVM, every llc and the releases of --triton compile it with the
    first pass, the first two, and so on: what each pass changes, and which one makes the figure
    differ. Exit codes: 0; 2 if no kernel could be compared.
    """
    from wavecast.bench.diff.environments import python_with
    from wavecast.lab.bisect import check_figure
    from wavecast.lab.codegen import generator_of
    from wavecast.lab.compilers import compared_compilers
    from wavecast.lab.releases import TritonRelease
    from wavecast.lab.script_reports import reports_of_script
    from wavecast.pipeline import select
    from wavecast.report import compilers as report

    if bisect:
        check_figure(bisect)
    selection = select(arch.split(","), ())
    interpreters = {release: python_with(release) for release in releases}

    def compared(launch: Launch, device: Device) -> CompilerComparison:
        others: list[CodeGenerator] = [
            TritonRelease(release, python, device) for release, python in interpreters.items()
        ]
        others += [generator_of(program, device.target) for program in programs]
        return compared_compilers(launch, device, figure=bisect, others=others)

    with streams.progress() as update:
        found = reports_of_script(
            path,
            script_args,
            selection,
            compared,
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
