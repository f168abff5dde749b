"""Options of `wavecast run` that trace launches, and the files and summary that come of it."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavecast.cli import streams
from wavecast.cli.types import count

if TYPE_CHECKING:
    from wavecast.emulate.trace.mode import TraceMode

PERFETTO_SUFFIX = ".perfetto.json"


class Workgroups(click.ParamType):
    """`0,5,8-15`: numbers of workgroups, x fastest."""

    name = "0,5,8-15"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for part in str(value).split(","):
            first, dash, last = part.strip().partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()):
                self.fail(f"{value!r} is not a list of workgroups such as 0,5,8-15", param, ctx)
            end = int(last or first)
            if not int(first) <= end < int(first) + (1 << 20):
                self.fail(
                    f"{part.strip()!r} is not a range of up to a million workgroups", param, ctx
                )
            found += range(int(first), end + 1)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Tracing:
    """What was asked for: a trace mode, and the files that are written in the end."""

    mode: TraceMode | None
    json: Path | None = None
    perfetto: Path | None = None

    @contextlib.contextmanager
    def written(self) -> Iterator[None]:
        """Write what was seen when the block ends, also when it breaks off.

        Raises InputError for a file that cannot be written.
        """
        if self.mode is None:
            yield
            return
        for path in filter(None, (self.json, self.perfetto)):
            with streams.writing(path, "a"):
                pass  # better known now than after a long run
        try:
            yield
        finally:
            self._write_all(self.mode)

    def _write_all(self, mode: TraceMode) -> None:
        from wavecast.report import perfetto, trace_terminal, traces

        if self.json is not None:
            with streams.writing(self.json) as file:
                file.write(traces.dumps(mode.traces))
        if self.perfetto is not None:
            with streams.writing(self.perfetto) as file:
                file.write(perfetto.dumps(mode.traces))
        trace_terminal.render(mode.traces, streams.console(stream=sys.stderr, highlight=False))


def trace_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options to a command, which gets them as one: `tracing`."""

    @click.option("--trace", "trace_file", type=click.Path(path_type=Path), metavar="FILE",
                  help="Write what launches execute and access: JSON, or a Perfetto timeline if "
                  f"FILE ends with {PERFETTO_SUFFIX}.")  # fmt: skip
    @click.option("--perfetto", "perfetto_file", type=click.Path(path_type=Path), metavar="FILE",
                  help="Write a timeline of recorded waves, by instructions.")  # fmt: skip
    @click.option("--trace-streams", "recorded", type=count(), default=None,
                  metavar="N", help="Trace: number of workgroups to record.  "
                  "[default: 0; 1 for a timeline]")  # fmt: skip
    @click.option("--trace-workgroups", "workgroups", type=Workgroups(), default=None,
                  help="Trace: count only these workgroups.")  # fmt: skip
    @click.option("--trace-only", "only", is_flag=True,
                  help="Trace: run no other workgroups; results are incomplete.")  # fmt: skip
    @functools.wraps(command)
    def wrapped(
        *args: Any,
        trace_file: Path | None,
        perfetto_file: Path | None,
        recorded: int | None,
        workgroups: tuple[int, ...] | None,
        only: bool,
        **rest: Any,
    ) -> int:
        json = trace_file
        if json is not None and json.name.endswith(PERFETTO_SUFFIX):
            json, perfetto_file = None, json
        tracing = _tracing(json, perfetto_file, recorded, workgroups, only)
        return command(*args, tracing=tracing, **rest)

    return wrapped


def _tracing(
    json: Path | None,
    perfetto: Path | None,
    recorded: int | None,
    workgroups: tuple[int, ...] | None,
    only: bool,
) -> Tracing:
    from wavecast.errors import UsageError

    if json is None and perfetto is None:
        if recorded is not None or workgroups is not None or only:
            raise UsageError("--trace-… options need --trace FILE or --perfetto FILE")
        return Tracing(None)
    if only and workgroups is None:
        raise UsageError("--trace-only needs --trace-workgroups")
    from wavecast.emulate.trace.mode import TraceMode

    if recorded is None:
        recorded = int(perfetto is not None)
    mode = TraceMode(workgroups=workgroups, only=only, streams=recorded, together=True)
    return Tracing(mode, json, perfetto)


__all__ = ["PERFETTO_SUFFIX", "Tracing", "Workgroups", "trace_options"]
