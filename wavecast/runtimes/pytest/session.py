"""One pytest session, or one worker of pytest-xdist, inside `wavecast.device`."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal

import pytest

from wavecast.emulate.check.collected import Reports
from wavecast.emulate.errors import ChecksFailed, Unsupported
from wavecast.emulate.reports import Report
from wavecast.errors import WavecastError
from wavecast.limits import available_processors
from wavecast.runtimes.triton import device

OnUnsupported = Literal["fail", "skip", "xfail"]

_COUNTS = "wavecast"
"""The key of a worker's counts in what it sends pytest-xdist's controller."""


class EmulatedSession:
    """The hooks of a session whose Triton launches are executed.

    `unsupported` says what a test does whose kernel cannot be executed; with `check`, errors in a
    test's kernels fail it, but for the kinds in `ignored`. Raises WavecastError for a GPU that is
    unknown or not AMD's. `close` puts everything back.
    """

    def __init__(
        self,
        arch: str,
        *,
        threads: int | None = None,
        check: bool = False,
        ignored: Sequence[str] = (),
        unsupported: OnUnsupported = "fail",
    ) -> None:
        self.arch = arch
        self.threads = threads or _share_of_processors()
        self._on_unsupported = unsupported
        self._unsupported = 0
        self._counts_of_workers: list[tuple[int, int]] = []
        self._exit = ExitStack()
        self.hooks = self._exit.enter_context(
            device(arch, threads=self.threads, check=Reports(ignored) if check else False)
        )

    def close(self) -> None:
        """Leave the device."""
        self._exit.close()

    def pytest_report_header(self) -> str:
        facts = self.hooks.driver.facts
        return f"wavecast: {facts.target} ({facts.name}), host threads: {self.threads}"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._run_phase(item, "setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._run_phase(item, "call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._run_phase(item, "teardown"))

    def _run_phase(self, item: pytest.Item, phase: str) -> Generator[None, object, object]:
        """One phase of a test. What the emulator refused becomes what the user chose, and errors
        that checks found fail the test where it does not fail by itself."""
        try:
            try:
                result = yield
            finally:
                reports = self.hooks.reports.take()
                if reports:
                    lines = "\n".join(map(_line, reports))
                    item.add_report_section(phase, "wavecast checks", lines)
            if any(report.severity == "error" for report in reports):
                pytest.fail(f"checks failed: {ChecksFailed(reports)}", pytrace=False)
            return result
        except Unsupported as error:
            self._unsupported += 1
            if self._on_unsupported == "skip":
                raise pytest.skip.Exception(
                    f"unsupported: {error}", _use_item_location=True
                ) from None
            if self._on_unsupported == "xfail":
                pytest.xfail(f"unsupported: {error}")
            raise error.with_traceback(_to_the_launch(error.__traceback__)) from None
        except WavecastError as error:
            raise error.with_traceback(_to_the_launch(error.__traceback__)) from None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_COUNTS] = (self.hooks.executed, self._unsupported)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """pytest-xdist: a worker has ended. One that crashed left no counts."""
        executed, unsupported = getattr(node, "workeroutput", {}).get(_COUNTS, (0, 0))
        self._counts_of_workers.append((executed, unsupported))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        counts = [(self.hooks.executed, self._unsupported), *self._counts_of_workers]
        executed, unsupported = (sum(column) for column in zip(*counts, strict=True))
        line = f"wavecast: {_count_text(executed, 'launch', 'launches')} executed"
        line += f" on {self.hooks.driver.facts.target}"
        if unsupported:
            line += f"; {_count_text(unsupported, 'test', 'tests')} unsupported"
        terminalreporter.write_line(line)
        for note in self.hooks.notes:
            terminalreporter.write_line(f"wavecast: {note}")
        self.hooks.notes.clear()


def _line(report: Report) -> str:
    """A report in one line, with its location as editors find it."""
    location = f"{report.location.outermost}: " if report.location else ""
    head = f"{location}{report.severity}[{report.kind.rule}] {report.kernel}: {report.text!r}"
    return f"{head} {report.message}"


def _count_text(number: int, singular: str, several: str) -> str:
    return f"{number:,} {singular if number == 1 else several}"


def _share_of_processors() -> int:
    """Processors for this process when pytest-xdist runs several of it."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, available_processors() // max(1, workers))


def _to_the_launch(trace: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback down to the user's last one; below are Triton's and wavecast's."""
    last, frame = None, trace
    while frame is not None:
        package = str(frame.tb_frame.f_globals.get("__name__", "")).split(".", 1)[0]
        if package not in _NOT_THE_USER_S:
            last = frame
        frame = frame.tb_next
    if last is not None:
        last.tb_next = None
    return trace


_NOT_THE_USER_S = frozenset({"wavecast", "torch", "triton", "pluggy", "_pytest"})
