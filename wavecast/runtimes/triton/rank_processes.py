"""The ranks of a script as processes: forks of this one, which ends all when one fails."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Final

from wavecast import processes
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.launch_counts import KernelSize, LaunchCounts
from wavecast.errors import WavecastError
from wavecast.runtimes.triton.rank_errors import raise_rank, with_line

_GRACE: Final = 2.0
"""Seconds that ranks have to end after the first has failed."""
_LOOK: Final = 0.05


@dataclass(frozen=True, slots=True)
class ScriptExit:
    """How a script ended: its exit code, how many launches were executed, the traceback of what it
    raised or what `sys.exit` printed ("" when it ended by itself), and what the user must be told.
    `raised` names the exception in a line. `checks_more` says that more than launches was checked.
    `launched` are the kernels of a rank that is a process."""

    code: int
    executed: int
    traceback: str = ""
    notes: tuple[str, ...] = ()
    checks_more: bool = False
    raised: str = ""
    launched: dict[KernelSize, int] = field(default_factory=dict)


@dataclass(slots=True)
class _RankProcess:
    """A process, the pipe that it answers through (None: all of it is read), what was read from it,
    how the script ended there (or the error that it raised; None: unknown), and how the process
    ended."""

    process: int
    pipe: IO[bytes] | None
    content: bytearray = field(default_factory=bytearray)
    result: ScriptExit | WavecastError | None = None
    ended: processes.Ended | None = None

    def look(self) -> bool:
        """Whether it has ended."""
        if self.ended is None:
            self.ended = processes.poll(self.process)
            self._read()
            if self.ended is not None:
                self._close()
                with contextlib.suppress(EOFError, pickle.UnpicklingError):  # killed as it wrote
                    self.result = pickle.loads(self.content)  # of our own fork
        return self.ended is not None

    def _read(self) -> None:
        """Read what is there. More than a pipe holds is written only while it is read, and what a
        rank has forked keeps the pipe open after the rank."""
        while self.pipe is not None and (part := self.pipe.read()) is not None:
            self.content += part
            if not part:
                self._close()

    def _close(self) -> None:
        if self.pipe is not None:
            self.pipe.close()
            self.pipe = None

    @property
    def has_failed(self) -> bool:
        """Whether it ended otherwise than well."""
        if self.has_left:
            return False
        return not isinstance(self.result, ScriptExit) or self.result.code != 0

    @property
    def has_left(self) -> bool:
        """Whether it ended by `os._exit(0)`."""
        return self.result is None and self.ended == processes.Ended()


def run_ranks(count: int, run: Callable[[int], ScriptExit]) -> ScriptExit:
    """Call `run(rank)` in a process for every rank: how the first that failed has ended, or all,
    with the launches of all. The others are stopped then.

    Raises the error of a rank, as one line that names it, and ExecutionError for one whose process
    was ended from outside.
    """
    ranks: list[_RankProcess] = []
    try:
        for number in range(count):
            ranks.append(_start(number, run))
        failed = _wait(ranks)
    finally:
        _stop(ranks)
    ends = [rank.result for rank in ranks if isinstance(rank.result, ScriptExit)]
    executed = sum(end.executed for end in ends)
    launched = LaunchCounts()
    for end in ends:
        launched.update(end.launched)
    end = ScriptExit(0, executed, launched=launched.by_size())
    if failed is None:
        return end
    match ranks[failed].result:
        case ScriptExit(code, traceback=text, raised=raised):
            note = f"raised by rank {failed}"
            if text:
                what = f"{raised} ({note})" if raised else ""
                return replace(end, code=code, traceback=f"{text}{note}\n", raised=what)
            return replace(end, code=code, notes=(f"sys.exit({code}) {note}",))
        case WavecastError() as error:
            left = [number for number, rank in enumerate(ranks) if rank.has_left]
            raise_rank(failed, error, left=left)
    ended = ranks[failed].ended or processes.Ended()
    how = f"left by os._exit({ended.code})"
    if ended.signal:
        how = f"was ended by {ended.signal_name}"
    raise ExecutionError(f"rank {failed}: its process {how}; the other ranks were stopped")


def _start(number: int, run: Callable[[int], ScriptExit]) -> _RankProcess:
    reader, writer = os.pipe()

    def work() -> None:
        import torch

        os.close(reader)
        _write_whole_lines()
        torch.set_num_threads(1)  # PyTorch's pool of threads does not exist in a fork
        try:
            result: ScriptExit | WavecastError = run(number)
        except WavecastError as error:
            error.message = with_line(error)  # a traceback stays here
            result = error
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(result, pipe)

    sys.stdout.flush()
    sys.stderr.flush()
    try:
        process = processes.fork(work)
    except OSError as error:
        os.close(reader)
        raise ExecutionError(f"no process for rank {number}: {error.strerror}") from error
    finally:
        os.close(writer)
    os.set_blocking(reader, False)
    return _RankProcess(process, os.fdopen(reader, "rb", buffering=0))


def _write_whole_lines() -> None:
    """Let no line of this process be broken by another's. A line that `print` writes is several
    pieces, which an unbuffered stream passes on one by one."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def _wait(ranks: Sequence[_RankProcess]) -> int | None:
    """Wait for all ranks, or for the first that fails: its number."""
    running = dict(enumerate(ranks))
    while running:
        pipes = [rank.pipe for rank in running.values() if rank.pipe is not None]
        select.select(pipes, [], [], _LOOK)
        for number, rank in list(running.items()):
            if rank.look():
                del running[number]
                if rank.has_failed:
                    return number
    return None


def _stop(ranks: Sequence[_RankProcess]) -> None:
    """End all ranks that run."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        running = [rank for rank in ranks if not rank.look()]
        for rank in running:
            os.kill(rank.process, number)
        end = time.monotonic() + _GRACE
        while running and time.monotonic() < end:
            running = [rank for rank in running if not rank.look()]
            time.sleep(_LOOK)


__all__ = ["ScriptExit", "run_ranks"]
