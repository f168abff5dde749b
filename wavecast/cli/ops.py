"""`wavecast ops`: the kernel library, and what it becomes on each GPU."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast import files
from wavecast.cli import streams
from wavecast.cli.types import PROCESSES, RegexParam, count

if TYPE_CHECKING:
    from wavecast.kernels.catalogue import OperatorLine
    from wavecast.kernels.operator import Operator
    from wavecast.pipeline.library import Call, Surveyed


@click.command("ops")
@click.argument("names", nargs=-1, metavar="[OPERATOR]...")
@click.option("--arch", default="", help="GPUs to compile for, separated by commas.")
@click.option("-k", "pattern", default="", type=RegexParam(),
              help="Only operators whose name matches.")  # fmt: skip
@click.option(
    "--small",
    is_flag=True,
    help="Use the test cases instead of the shapes an operator is judged on.",
)
@click.option("--shapes", type=count(1), help="Only the first N shapes of each operator.")
@click.option("--jobs", type=PROCESSES, default=1, show_default=True, help="Number of processes.")
@click.option("--tune", "tuning", is_flag=True, help="Write tables of tuned configurations.")
@click.option(
    "--candidates",
    type=count(1),
    default=8,
    show_default=True,
    help="With --tune: number of configurations per kernel and problem.",
)
@click.option(
    "--tables",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --tune: folder of the tables (default: the package's).",
)
@click.option(
    "--pages",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --survey or --arch: write one page per operator to this folder.",
)
@click.option(
    "--survey",
    "stored",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this output of --format json instead of compiling.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    show_default=True,
)
def command(
    names: tuple[str, ...],
    arch: str,
    pattern: str,
    small: bool,
    shapes: int | None,
    jobs: int,
    tuning: bool,
    candidates: int,
    tables: Path | None,
    pages: Path | None,
    stored: Path | None,
    form: str,
) -> None:
    """List the operators of the kernel library; with --arch, compile them and show for each GPU the
    configuration, registers, spills, occupancy, predicted time and its share of the bound.

    --tune compiles further configurations of every kernel, on the shapes its operator is judged on,
    and keeps the best by prediction.
    """
    from wavecast.errors import UsageError

    console = streams.console(None if sys.stdout.isatty() else 220)
    if tuning and not arch:
        raise UsageError("--tune needs --arch")
    if tables is not None and not tuning:
        raise UsageError("--tables needs --tune")
    if pages is not None and not (arch or stored):
        raise UsageError("--pages needs --survey or --arch")
    if not arch and stored is None:
        from wavecast.report import catalogue

        catalogue.listing(_listed(names, pattern), console)
        return
    from wavecast.kernels import registry
    from wavecast.pipeline.library import survey
    from wavecast.report import library

    chosen = [registry.operator(line.name) for line in _listed(names, pattern)]
    calls = _calls(chosen, arch, small, shapes)
    if tuning:
        _tune(calls, candidates, jobs, tables)
        return
    if stored is not None:
        found = library.surveyed(_json(stored))
    else:
        order = {json.dumps(call): number for number, call in enumerate(calls)}
        found = sorted(
            _followed(survey(calls, jobs=jobs), len(calls)),
            key=lambda one: order[json.dumps((one.operator, one.sizes, one.device))],
        )
    if pages is not None:
        pages.mkdir(parents=True, exist_ok=True)
        for one in chosen:
            text = library.page(one, registry.family(one.name), found)
            (pages / f"{one.name}.md").write_text(text, encoding="utf-8")
        families = [registry.family(one.name) for one in chosen]
        (pages / "README.md").write_text(library.index(chosen, families), encoding="utf-8")
    elif form == "json":
        click.echo(json.dumps(library.document(found), indent=1))
    elif form == "html":
        from wavecast.report.recorded_html import page

        click.echo(page("wavecast ops", lambda shown: library.render(found, shown)))
    else:
        library.render(found, console)


def _followed(found: Iterable[Surveyed], count: int) -> Iterator[Surveyed]:
    """The results as they come, with their number in the status line."""
    with streams.progress() as update:
        update(f"compiling {count} calls")
        for number, one in enumerate(found, 1):
            update(f"{number} of {count} calls: {one.operator} on {one.device}")
            yield one


def _json(file: Path) -> Any:
    from wavecast.errors import InputError

    try:
        return files.parse_json(files.read(file))
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from None


def _listed(names: Sequence[str], pattern: str) -> list[OperatorLine]:
    """The operators that are asked for. Raises UnknownName and NothingAnalysed."""
    from wavecast.errors import NothingAnalysed, UnknownName
    from wavecast.kernels import catalogue

    wanted = re.compile(pattern)
    known = {line.name: line for line in catalogue.lines()}
    for name in names:
        if name not in known:
            raise UnknownName("operator", name, known)
    found = [known[name] for name in names or known if wanted.search(name)]
    if not found:
        raise NothingAnalysed("no operator has such a name")
    return found


def _calls(chosen: Sequence[Operator], arch: str, small: bool, shapes: int | None) -> list[Call]:
    from wavecast import arch as known
    from wavecast.errors import UsageError

    devices = [known.load(name) for name in arch.split(",") if name]
    if arch and not devices:
        raise UsageError("no GPU is given")
    return [
        (one.name, dict(sizes), device.id)
        for one in chosen
        for sizes in (one.cases if small else one.shapes)[:shapes]
        for device in devices
        if not one.targets or device.target in one.targets
    ]


def _tune(calls: Sequence[Call], candidates: int, jobs: int, folder: Path | None) -> None:
    """Writes the tables after every call, so that an interruption loses nothing."""
    from wavecast.kernels import tables
    from wavecast.kernels.tables import TunedEntry
    from wavecast.tune.library import tune

    written: dict[str, list[TunedEntry]] = {}
    for number, found in enumerate(tune(calls, candidates=candidates, jobs=jobs), 1):
        sizes = " ".join(f"{name}={value}" for name, value in found.sizes.items())
        told = found.failure
        for entry in found.entries:
            formula = f" (formula {entry.formula_seconds:.3g} s)" if entry.formula_seconds else ""
            told += f"\n    {entry.kernel}: {entry.configuration} {entry.seconds:.3g} s{formula}"
        call = f"{found.device} {found.operator} {sizes}"
        click.echo(f"{number}/{len(calls)} {call} {told}", err=True)
        if found.entries:
            rows = written.setdefault(found.device, [])
            rows += found.entries
            tables.store(found.device, rows, folder)
