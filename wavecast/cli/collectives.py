"""Options of `wavecast model --collectives`, and its run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from wavecast.cli import streams
from wavecast.cli.types import NumberRange, count
from wavecast.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., object])
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE: Final = re.compile(r"(\d{1,15})\s*(?:([KMG])(?:iB)?)?", re.IGNORECASE)

_OPTIONS: Final = (
    click.option("--collectives", default="", metavar="NAME:SIZE[,NAME:SIZE]",
                 help="Simulate collectives instead of a model: all_reduce:64M,all_gather:1G."),
    click.option("--oversubscription", type=NumberRange(1, 1e3), default=1.0, show_default=True,
                 help="Collectives: bandwidth of NICs over that of the uplinks of leaf switches."),
    click.option("--leaf", type=count(1), default=32, show_default=True,
                 help="Collectives: nodes of a leaf switch."),
    click.option("--msccl", type=click.Path(path_type=Path, dir_okay=False), default=None,
                 help="Collectives: write the fastest all-reduce as XML for MSCCL."),
)  # fmt: skip
NAMES: Final = ("collectives", "oversubscription", "leaf", "msccl")
_BOTH: Final = (*NAMES, "systems", "arch_files", "system_files", "changes", "detail", "format_")


def collective_options(command: _Command) -> _Command:
    """Add the options of collectives to a command, which gets them as keyword arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_collectives(context: click.Context) -> None:
    """Raises UsageError for a given option of collectives without `--collectives`, or of models
    with it."""
    asked = bool(context.params["collectives"])
    for param in context.command.params:
        name = param.name or ""
        given = context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        if not given or name == "collectives":
            continue
        if asked and name not in _BOTH:
            raise UsageError(f"{param.opts[0]} does not apply to --collectives")
        if not asked and name in NAMES:
            raise UsageError(f"{param.opts[0]} belongs to --collectives")


def run_collectives(
    systems: str,
    arch_files: Sequence[Path],
    system_files: Sequence[Path],
    *,
    options: Mapping[str, Any],
    changes: str,
    detail: str,
    format_: str,
) -> int:
    """`wavecast model --collectives` on every system of a list with commas."""
    from wavecast.arch.systems import system
    from wavecast.report import collectives as report
    from wavecast.report.msccl import msccl_xml
    from wavecast.systems.collectives.search import answer

    asked = [_asked(text) for text in options["collectives"].split(",")]
    answers = [
        answer(
            *(function, size, machine),
            oversubscription=options["oversubscription"],
            leaf=options["leaf"],
            changes=changes,
        )
        for machine in (system(one, arch_files, system_files) for one in systems.split(","))
        for function, size in asked
    ]
    if options["msccl"] is not None:
        if len(answers) > 1:
            raise UsageError("--msccl writes one collective on one system")
        best = answers[0].best
        options["msccl"].write_text(msccl_xml(best.schedule, best.protocol), encoding="utf-8")
    if format_ == "json":
        streams.as_document(sys.stdout)
        click.echo(report.collectives_text(answers))
    else:
        console = streams.console(highlight=False)
        report.render_collectives(answers, console, full=detail == "full")
    return 0


def _asked(text: str) -> tuple[str, int]:
    """Function and bytes of `all_reduce:64M`. Raises UsageError."""
    function, _, size = text.strip().partition(":")
    found = _SIZE.fullmatch(size.strip())
    if found is None or not int(found[1]):
        raise UsageError(f"{text.strip()!r} is not a collective: NAME:SIZE, all_reduce:64M")
    return function, int(found[1]) * _UNITS[(found[2] or "").upper()]


__all__ = ["NAMES", "check_collectives", "collective_options", "run_collectives"]
