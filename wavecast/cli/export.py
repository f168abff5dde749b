"""`wavecast export`: a call of the kernel library for C and C++ programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavecast.cli import streams

if TYPE_CHECKING:
    from wavecast.kernels.operator import Operator, Sizes


@click.command(
    "export",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast export matmul --shape m=4096,n=4096,k=4096 --arch mi300x,mi355x -o libwc_matmul

    wavecast export softmax --shape rows=8192,columns=4096 --arch gfx942,sm_90 -o build/softmax
    """,
)
@click.argument("operator")
@click.option("--shape", "shape", default="", metavar="NAME=VALUE,…",
              help="Sizes, dtypes and flags of the call. [default: the first shape of the "
              "operator; values that are given replace its own]")  # fmt: skip
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
              help="GPUs to compile for, one per compiler target.")  # fmt: skip
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path),
              help="Prefix of the files. The functions have its name without lib.")  # fmt: skip
def command(operator: str, shape: str, arch: str, output: Path) -> None:
    """Compile one call of an OPERATOR of the kernel library ahead of time, for programs without
    Python: a C header, a launcher for the driver's API (HIP or CUDA), the machine code, and a
    manifest with predicted times."""
    from wavecast import arch as known
    from wavecast.errors import UsageError
    from wavecast.kernels import registry
    from wavecast.pipeline.exporting import export
    from wavecast.report.exported import check_name, export_files

    name = output.name.removeprefix("lib")
    check_name(name)
    chosen = registry.operator(operator)
    sizes = _sizes(chosen, shape)
    selectors = dict.fromkeys(name.strip() for name in arch.split(",") if name.strip())
    devices = list({one.id: one for one in map(known.load, selectors)}.values())
    if not devices:
        raise UsageError("no GPU is given")
    with streams.progress() as update:
        update(f"compiling {chosen.describe(sizes)}")
        found = export_files(name, export(chosen, sizes, devices))
    output.parent.mkdir(parents=True, exist_ok=True)
    for file, content in found.items():
        (output.parent / file).write_bytes(content)
        click.echo(str(output.parent / file))


def _sizes(operator: Operator, text: str) -> Sizes:
    """The sizes of a call: those of the operator's first shape, and those that `text` replaces.
    Raises UsageError."""
    from wavecast.errors import UsageError
    from wavecast.kernels.sizes import check

    replaced: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"--shape {part!r} is not NAME=VALUE")
        replaced[name] = _value(value)
    check(operator, replaced)
    return {**operator.shapes[0], **replaced}


def _value(text: str) -> object:
    if text in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
