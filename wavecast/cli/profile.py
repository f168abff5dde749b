"""`wavecast profile`: what profilers measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavecast.cli import streams
from wavecast.cli.opening import opening
from wavecast.cli.types import Dimensions
from wavecast.errors import UsageError

if TYPE_CHECKING:
    from wavecast.bench.profiles.answer import ProfileAnswer


@click.command(
    "profile",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast profile trace.json.gz

    wavecast profile results.db --device mi300x --format json

    wavecast profile trace.json.gz --on mi355x,h200

    wavecast profile trace.json.gz --what-if "attention=wavecast; batch*2; graphs"

    wavecast profile pmc_perf.csv --device mi300x --code kernels.py

    wavecast profile before.json.gz --against after.json.gz

    wavecast profile traces/ --detail full
    """,
)
@click.argument("path", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
@click.option("--device", default="", metavar="CHIP",
              help="The chip, where the file does not name it: mi300x, h100 …")  # fmt: skip
@click.option("--on", default="", metavar="CHIP[,CHIP]",
              help="Predict the run on these chips: mi355x,h200 …")  # fmt: skip
@click.option("--what-if", default="", metavar="CHANGES",
              help="Changes of the run: \"attention=flash3; batch*2; graphs\".")  # fmt: skip
@click.option("--against", type=click.Path(path_type=Path), metavar="FILE",
              help="Compare with another profile by operator and module.")  # fmt: skip
@click.option("--model", default="", metavar="CONFIG",
              help="The model that ran (config.json, name): sizes in graphs.")  # fmt: skip
@click.option("--code", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="Explain the kernels in a script, HIP file or code object.")  # fmt: skip
@click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE",
              help="An argument of the kernels in --code: n=4096, x=f32[4096].")  # fmt: skip
@click.option("--grid", type=Dimensions(),
              help="Workgroups of the kernels in --code, where the profile has none.")  # fmt: skip
@click.option("--block", type=Dimensions(),
              help="Threads of their workgroups, where the profile has none.")  # fmt: skip
@click.option("--detail", type=click.Choice(["brief", "normal", "full"]), default="normal",
              show_default=True, help="How much the text format shows.")  # fmt: skip
@click.option("--arch-file", "arch_files", multiple=True, type=click.Path(path_type=Path),
              help="TOML with facts of a GPU, over those of the package.")  # fmt: skip
@click.option("--calibrate", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the chip's facts that fit this profile, for --arch-file.")  # fmt: skip
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write one page: timeline, treemap, roofline, tables.")  # fmt: skip
@click.option("--perfetto", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the measured and predicted timelines for Perfetto.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json", "markdown"]),
              default="text", show_default=True)  # fmt: skip
@opening
def command(
    path: Path,
    device: str,
    on: str,
    what_if: str,
    against: Path | None,
    model: str,
    code: tuple[Path, ...],
    arguments: tuple[str, ...],
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
    arch_files: tuple[Path, ...],
    calibrate: Path | None,
    html: Path | None,
    perfetto: Path | None,
    detail: str,
    format_: str,
) -> int:
    """Show where the time of a profiled run went: kernels, operators, modules, idle time.

    Where the file has operators with sizes, each is shown with its predicted time.

    Reads traces of the PyTorch profiler (a folder holds one per rank), rocprofv3 (CSV, JSON,
    rocpd), rocprof-compute, Nsight Compute (--csv), Nsight Systems (SQLite), Proton (hatchet) and
    JAX (xplane.pb).
    """
    from wavecast.bench.profiles.answer import profiles
    from wavecast.bench.profiles.comparison import compared
    from wavecast.pipeline.plan import Plan, Planned, named_value
    from wavecast.report import (
        profiles_comparison,
        profiles_html,
        profiles_json,
        profiles_markdown,
        profiles_perfetto,
        profiles_terminal,
    )

    chips = [name for name in on.split(",") if name]
    if (arguments or grid or block) and all(file.suffix == ".py" for file in code):
        raise UsageError("--arg, --grid and --block are for kernels of code files (--code)")
    given = {name: Planned(value) for name, value in map(named_value, arguments)}
    plan = Plan("", grid, block, 0, given)
    answers = profiles(path, device, chips, what_if, arch_files, code, model, plan)
    comparison = None
    if against:
        others = profiles(against, device, arch_files=arch_files)
        if len(answers) != 1 or len(others) != 1:
            raise UsageError("--against compares two files, not folders")
        comparison = compared(answers[0].profile, others[0].profile)
        answers += others
    if calibrate:
        _calibrate(answers, calibrate)
    if html:
        with streams.writing(html) as stream:
            stream.write(profiles_html.render(answers, comparison))
    if perfetto:
        with streams.writing(perfetto) as stream:
            stream.write(profiles_perfetto.dumps(answers))
    if format_ == "markdown":
        click.echo(profiles_markdown.render(answers, comparison), nl=False)
    elif format_ == "json":
        streams.as_document(sys.stdout)
        click.echo(profiles_json.dumps(answers, comparison))
    elif comparison and against:
        console = streams.console(highlight=False)
        profiles_comparison.render(comparison, (path.name, against.name), console, detail=detail)
    else:
        profiles_terminal.render(answers, streams.console(highlight=False), detail=detail)
    return 0


def _calibrate(answers: list[ProfileAnswer], file: Path) -> None:
    from wavecast.bench.profiles.calibration import fitted, overlay

    if len(answers) != 1:
        raise UsageError("--calibrate fits one profile, not a folder or a comparison")
    (answer,) = answers
    if answer.predicted is None:
        raise UsageError(f"{answer.path}: the chip is not known", hint="--device names the chip")
    facts = fitted(answer.profile, answer.predicted)
    with streams.writing(file) as stream:
        stream.write(overlay(answer.predicted.device, facts, answer.path.name))
    for one in facts:
        click.echo(
            f"{file}: {one.field} {one.value:.4g} {one.unit} (was {one.before:.4g}), "
            f"from {one.origin}",
            err=True,
        )
