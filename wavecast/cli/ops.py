"""`wavecast ops`: the kernel library, and what it becomes on each GPU."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wavecast.kernels.operator import Operator


@click.command("ops")
@click.argument("names", nargs=-1, metavar="[OPERATOR]...")
@click.option("--arch", default="", help="GPUs to compile for, separated by commas.")
@click.option("-k", "pattern", default="", help="Operators whose name has this regular expression.")
@click.option("--small", is_flag=True, help="Test cases instead of the shapes it is judged on.")
@click.option("--tune", "tuning", is_flag=True, help="Write tables of tuned configurations.")
@click.option(
    "--candidates",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="With --tune: configurations per kernel and problem.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="With --tune: processes."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --tune: folder of the tables (default: the package's).",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(
    names: tuple[str, ...],
    arch: str,
    pattern: str,
    small: bool,
    tuning: bool,
    candidates: int,
    jobs: int,
    output: Path | None,
    form: str,
) -> None:
    """List the operators of the kernel library; with --arch, compile them and show for each GPU the
    configuration, registers, spills, occupancy, predicted time and its share of the bound.

    --tune compiles further configurations of every kernel, on the shapes its operator is judged on,
    and keeps the best by prediction.
    """
    from rich.console import Console

    from wavecast import arch as known
    from wavecast.errors import NothingAnalysed, UsageError
    from wavecast.kernels import registry
    from wavecast.pipeline.library import survey
    from wavecast.report import library

    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"-k {pattern!r} is not a regular expression: {error}") from None
    chosen = [registry.operator(name) for name in names or registry.operators()]
    chosen = [operator for operator in chosen if wanted.search(operator.name)]
    if not chosen:
        raise NothingAnalysed("no operator has such a name")
    if tuning and not arch:
        raise UsageError("--tune needs --arch")
    console = Console(width=None if sys.stdout.isatty() else 220)
    if not arch:
        library.listing(chosen, [registry.family(one.name) for one in chosen], console)
        return
    devices = [known.load(name) for name in arch.split(",")]
    if tuning:
        _tune(chosen, [device.id for device in devices], small, candidates, jobs, output)
        return
    found = survey(chosen, devices, small=small)
    if form == "json":
        click.echo(json.dumps(library.document(found), indent=1))
    else:
        library.render(found, console)


def _tune(
    chosen: Sequence[Operator],
    devices: Sequence[str],
    small: bool,
    candidates: int,
    jobs: int,
    output: Path | None,
) -> None:
    """Tables are written again after every call, so that an interruption loses nothing."""
    from wavecast.kernels import tables
    from wavecast.kernels.tables import Entry
    from wavecast.tune.library import tune

    calls = [
        (one.name, sizes, device)
        for device in devices
        for one in chosen
        for sizes in (one.cases if small else one.shapes)
    ]
    written: dict[str, list[Entry]] = {device: [] for device in devices}
    for number, found in enumerate(tune(calls, candidates=candidates, jobs=jobs), 1):
        sizes = " ".join(f"{name}={value}" for name, value in found.sizes.items())
        told = found.failure
        for entry in found.entries:
            gain = f" (formula {entry.formula_seconds:.3g} s)" if entry.formula_seconds else ""
            told += f"\n    {entry.kernel}: {entry.configuration} {entry.seconds:.3g} s{gain}"
        click.echo(
            f"{number}/{len(calls)} {found.device} {found.operator} {sizes} {told}", err=True
        )
        if found.entries:
            written[found.device] += found.entries
            path = tables.store(found.device, written[found.device], output)
            if number == len(calls):
                click.echo(str(path))
