"""`wavecast lab schedule`: another order of the instructions in a kernel's loops."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

import click

from wavecast.cli import streams
from wavecast.cli.launches import lab_source, source_options
from wavecast.cli.types import count

WORK_UNIT = 1_000_000


@click.command(
    "schedule",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast lab schedule matmul.py --arch gfx942,gfx1100

    wavecast lab schedule attention.py -k fwd --work 40 --assembly scheduled

    wavecast lab schedule kernel.s --grid 64 --block 256 --arg x=f32[16384] --arg n=16384
    """,
)
@source_options
@click.option("--work", type=count(1), default=12, show_default=True, metavar="N",
              help="Simulate about N million instructions per kernel.")  # fmt: skip
@click.option("--seed", type=count(), default=0, show_default=True, metavar="N",
              help="Seed of the search.")  # fmt: skip
@click.option("--journal", type=click.Path(path_type=Path, dir_okay=False),
              help="Append schedules to this file; those in it are not searched again.",
              )  # fmt: skip
@click.option("--assembly", type=click.Path(path_type=Path, file_okay=False),
              help="Write the new assembly of every kernel to this folder.")  # fmt: skip
@click.option("-f", "--format", "form", type=click.Choice(["text", "json", "html"]),
              default="text", show_default=True)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write to this file instead of standard output.")  # fmt: skip
def schedule(
    arch: str,
    arch_file: tuple[Path, ...],
    work: int,
    seed: int,
    journal: Path | None,
    assembly: Path | None,
    form: str,
    output: Path | None,
    **source: Any,
) -> int:
    """Search another order for the loops of the kernels of PATH: a script, or a HIP file, assembly
    or a code object whose launch is stated.

    Registers stay as the compiler allocated them; waits, no-ops and hints are regenerated. The new
    code is assembled, executed on the emulator next to the compiler's, and checked: an order whose
    results differ is discarded. Times are predictions. Exit codes: 0; 1 if an order was discarded;
    2 if no kernel could be scheduled.
    """
    from wavecast.lab.schedule.run import ScheduleOptions, schedule_kernels, write_assembly
    from wavecast.pipeline import select

    selection = select(arch.split(","), arch_file)
    options = ScheduleOptions(
        seed=seed, work=work * WORK_UNIT, journal=str(journal) if journal is not None else ""
    )
    kernels = lab_source(arch_file=arch_file, **source)
    with streams.progress() as update:
        found = schedule_kernels(kernels, selection, options, update)
    if assembly is not None:
        write_assembly(found, assembly)

    def write(stream: IO[str]) -> None:
        from wavecast.report import schedules as report

        if form == "text":
            report.render(found, streams.console(None if stream.isatty() else 200, stream))
            return
        streams.as_document(stream)
        if form == "html":
            from wavecast.report.recorded_html import page

            stream.write(page("wavecast lab schedule", lambda shown: report.render(found, shown)))
        else:
            from wavecast.documents.base import dumps

            stream.write(dumps(report.document(found), indent=1) + "\n")

    if output is None:
        write(sys.stdout)
    else:
        with streams.writing(output) as file:
            write(file)
    if any(one.wrong for _, one in found.results):
        return 1
    return 0 if found.results else 2


__all__ = ["schedule"]
