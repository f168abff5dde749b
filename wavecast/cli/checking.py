"""Options of `wavecast run` that check launches, and what is printed of the reports."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast.cli import streams

if TYPE_CHECKING:
    from wavecast.emulate.check.collected import Reports

FORMATS = ("text", "json", "html", "sarif", "github")


@dataclass(frozen=True, slots=True)
class Checking:
    """The requested checks: where reports are collected (None without checks), and their format.

    Text goes to standard error, separate from the output of a script; other formats go to `output`
    or to standard output.
    """

    reports: Reports | None
    format: str = "text"
    output: Path | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the reports when the block ends. When it breaks off, only if there are some, which
        may say why. The error of an access that they have says only that the launch ended there.

        Raises InputError for a file that cannot be written.
        """
        from wavecast.emulate.errors import AddressFault, ExecutionError

        if self.output is not None:
            with streams.writing(self.output):
                pass  # better known now than after a long run
        ended = False
        try:
            yield
            ended = True
        except AddressFault as error:
            cause = error.__cause__  # of one that names the GPU too
            fault = cause if isinstance(cause, AddressFault) else error
            if self.reports is None or not self.reports.has_access(fault.kernel, fault.instruction):
                raise
            raise ExecutionError(
                f"{fault.kernel}: the launch ended at the access out of bounds that is reported"
            ) from error
        finally:
            if self.reports is not None and (ended or list(self.reports)):
                self._show(self.reports)

    def code(self, code: int) -> int:
        """The exit code: 1 where the run itself was fine and checks found errors."""
        return code or int(self.reports is not None and bool(self.reports.errors))

    def _show(self, reports: Reports) -> None:
        from wavecast.report import checks

        found, traffic = list(reports), reports.traffic
        if self.format == "text":
            if self.output is None:
                checks.render(found, streams.console(stream=sys.stderr, highlight=False), traffic)
                return
            with streams.writing(self.output) as file:
                console = streams.console(stream=file, width=120, highlight=False)
                checks.render(found, console, traffic)
            return
        if self.format == "json":
            text = checks.dumps(found, traffic)
        elif self.format == "html":
            from wavecast.report.recorded_html import page

            text = page("wavecast check", lambda console: checks.render(found, console, traffic))
        elif self.format == "sarif":
            text = json.dumps(checks.sarif_document(found), indent=2, ensure_ascii=False)
        else:
            text = checks.github(found)
        if self.output is not None:
            with streams.writing(self.output) as file:
                file.write(f"{text}\n")
        elif text:
            streams.as_document(sys.stdout)
            print(text)


class CheckedCommand(click.Command):
    """A command with check options, of which `--check determinism` is written as two words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        separator = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, _expanded(args[:separator]) + args[separator:])


def _expanded(args: list[str]) -> list[str]:
    found: list[str] = []
    for arg in args:
        orders = arg == "determinism" and found[-1:] == ["--check"]
        found.append("--check-determinism" if orders else arg)
    return found


def check_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options to a command, which gets them as one: `checking`."""

    @click.option("--check", is_flag=True,
                  help="Report races, missing waits, uninitialised reads and more; exit "
                  "code 1 if there are errors.")  # fmt: skip
    @click.option("--check-format", type=click.Choice(FORMATS), default=None,
                  help="Check: format of the reports.  [default: text]")  # fmt: skip
    @click.option("--check-output", type=click.Path(path_type=Path), metavar="FILE",
                  help="Check: write the reports to this file.")  # fmt: skip
    @click.option("--check-ignore", multiple=True, metavar="KIND",
                  help="Check: disable a kind of report (lds-race, …); repeatable.")  # fmt: skip
    @click.option("--check-numbers", is_flag=True,
                  help="Check: also report the first NaN and infinity (warnings).")  # fmt: skip
    @click.option("--check-determinism", is_flag=True,
                  help="Check: repeat launches in other orders of workgroups and waves, and report "
                  "what differs. Also: --check determinism.")  # fmt: skip
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        check: bool,
        check_format: str | None,
        check_output: Path | None,
        check_ignore: tuple[str, ...],
        check_numbers: bool,
        check_determinism: bool,
        **rest: Any,
    ) -> int:
        from wavecast.errors import UsageError

        asked = check_format or check_output or check_ignore or check_numbers or check_determinism
        if not check and asked:
            raise UsageError("--check-… options need --check")
        checking = Checking(None)
        if check:
            from wavecast.emulate.check.collected import Reports

            reports = Reports(check_ignore, numbers=check_numbers, determinism=check_determinism)
            checking = Checking(reports, check_format or "text", check_output)
        return command(*args, checking=checking, **rest)

    return wrapped


__all__ = ["CheckedCommand", "Checking", "check_options"]
