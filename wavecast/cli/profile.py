"""`wavecast profile`: what profilers measured."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wavecast.cli import streams


@click.command(
    "profile",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast profile trace.json.gz

    wavecast profile results.db --device mi300x --format json

    wavecast profile trace.json.gz --on mi355x,h200

    wavecast profile traces/ --detail full
    """,
)
@click.argument("path", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
@click.option("--device", default="", metavar="CHIP",
              help="The chip, where the file does not name it: mi300x, h100 …")  # fmt: skip
@click.option("--on", default="", metavar="CHIP[,CHIP]",
              help="Predict the run on these chips: mi355x,h200 …")  # fmt: skip
@click.option("--detail", type=click.Choice(["brief", "normal", "full"]), default="normal",
              show_default=True, help="How much the text format shows.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
def command(path: Path, device: str, on: str, detail: str, format_: str) -> int:
    """Show where the time of a profiled run went: kernels, operators, modules, idle time.

    Where the file has operators with sizes, each is shown with its predicted time.

    Reads traces of the PyTorch profiler (a folder holds one per rank), rocprofv3 (CSV, JSON,
    rocpd), rocprof-compute, Nsight Compute (--csv), Nsight Systems (SQLite) and Proton (hatchet).
    """
    from wavecast.bench.profiles.answer import profiles
    from wavecast.report import profiles as report

    answers = profiles(path, device, [name for name in on.split(",") if name])
    if format_ == "json":
        streams.as_document(sys.stdout)
        click.echo(report.dumps(answers))
    else:
        report.render(answers, streams.console(highlight=False), detail=detail)
    return 0
