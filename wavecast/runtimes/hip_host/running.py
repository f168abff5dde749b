"""Running a HIP program: the program as a child process, and the emulator that answers it."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wavecast import processes
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.launch import AddressRange, Emulator
from wavecast.emulate.node import PATIENCE
from wavecast.emulate.rank_board import is_alive
from wavecast.emulate.team import Team, TeamMember
from wavecast.emulate.written_bytes import WrittenBytes
from wavecast.errors import InputError
from wavecast.processes import Ended
from wavecast.runtimes.hip_host.arena import PROCESSES, Arena
from wavecast.runtimes.hip_host.launching import Grid, LaunchedKernel, Launcher
from wavecast.runtimes.hip_host.library import runtime_folder
from wavecast.runtimes.hip_host.ordering import ProgramOrder
from wavecast.runtimes.hip_host.properties import properties
from wavecast.runtimes.hip_host.protocol import SOCKET
from wavecast.runtimes.hip_host.session import ProgramSession
from wavecast.runtimes.hip_host.session import serve as serve_session

_BUSY: Final = b"B"
_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group (Linux socket(7), SO_PEERCRED)."""
_ACCEPTED: Final = b"A"


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """How a program ended, what it launched, and whether it used HIP at all."""

    ended: Ended
    kernels: tuple[LaunchedKernel, ...]
    connected: bool


@dataclass
class ProgramRun:
    """A program to run: what executes its launches, for which `device` and how many of them.

    `checking` are the emulator's checks, `predicts` is whether launches have predicted times; with
    one of them, or a trace, one process of the program at a time uses HIP, else up to `PROCESSES`.
    """

    device: Device
    emulator: Emulator
    devices: int = 1
    checking: CheckMode | None = None
    predicts: bool = False

    def run(self, command: Sequence[str]) -> ProgramExit:
        """Run the program to its end. Raises InputError where it cannot start, MissingFact for a
        device of which programs may ask what is not known, Unsupported where more of its
        processes use HIP than can, and as `runtime_folder`."""
        facts = properties(self.device, self.devices)
        library = runtime_folder()
        arena = Arena()
        hip = _HipProcesses(self, arena, facts, command)
        try:
            with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
                path = Path(folder) / "hip"
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(str(path))
                    listener.listen()
                    status = _run(command, _environment(library, path), listener, hip)
        finally:
            hip.close()
            arena.close()
        if hip.refused:
            raise Unsupported(f"{command[0]}: {self._why_one_process}; the program was stopped")
        return ProgramExit(status, tuple(hip.kernels.values()), hip.connected)

    @property
    def _why_one_process(self) -> str:
        """Why no more processes of a program may use HIP at once."""
        if self.several:
            return f"more than {PROCESSES} of its processes use HIP at once"
        if self.checking is not None:
            return (
                "several of its processes use HIP at once, and --check follows one: what orders "
                "their accesses (pipes, sockets, shared memory) is not seen. Check one process "
                "with all GPUs (--gpus N), or run without --check"
            )
        return "several of its processes use HIP at once, and --predict and --trace follow one"

    @property
    def several(self) -> bool:
        """Whether several processes may use HIP at once."""
        return self.emulator.mode is None and self.emulator.orders is None and not self.predicts


class _HipProcesses:
    """The processes of a program that use HIP now, each answered by a thread. Their kernels may
    wait for each other: launches of all are a team."""

    def __init__(
        self, run: ProgramRun, arena: Arena, facts: Mapping[str, int | str], command: Sequence[str]
    ) -> None:
        self._run, self._facts, self._command, self._arena = run, facts, command, arena
        parts = PROCESSES if run.several else 1
        self._parts = [arena.part(number, parts) for number in range(parts)]
        self._used = [False] * parts
        self._live: dict[int, threading.Thread] = {}
        self._lock = threading.Lock()
        self.team = Team(self._expects_more)
        self.program = 0
        """The process of the program."""
        self.kernels: dict[tuple[str, Grid, Grid], LaunchedKernel] = {}
        self.connected = self.refused = False

    def accept(self, connection: socket.socket) -> None:
        """Answer a process that has connected, or refuse it where as many use HIP as can, and stop
        the program: others may wait for it."""
        with self._lock:
            free = [number for number in range(len(self._parts)) if number not in self._live]
            if not free:
                self.refused = True
                with connection, contextlib.suppress(ConnectionError):  # stopped with another
                    connection.sendall(_BUSY)
                for process in (*_descendants(self.program), self.program):
                    processes.kill(process)
                return
            number = free[0]
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            name = f"process {_CREDENTIALS.unpack(peer)[0]}"
            thread = threading.Thread(
                target=self._serve, args=(number, connection), name=name, daemon=True
            )
            self._live[number] = thread
            self.connected = True
        thread.start()

    def close(self) -> None:
        """Stop all launches."""
        self.team.stopped = True
        for thread in list(self._live.values()):
            thread.join()

    def _serve(self, number: int, connection: socket.socket) -> None:
        part, run = self._parts[number], self._run
        try:
            with connection:
                if self._used[number]:
                    part.reset()
                self._used[number] = True
                launcher = self._launcher(number)
                facts = {**self._facts, **part.facts()}
                order = self._order()
                socket.send_fds(connection, [_ACCEPTED], (self._arena.file,))
                serve_session(connection, ProgramSession(run.device, facts, part, launcher, order))
        finally:
            with self._lock:
                del self._live[number]
            self.team.on_change()

    def _launcher(self, number: int) -> Launcher:
        run, part = self._run, self._parts[number]
        if not run.several:
            checks = run.checking is not None
            return Launcher(
                run.emulator, run.device, part, checks, run.predicts, kernels=self.kernels
            )
        emulator = run.emulator.separate()
        return _ProcessLauncher(emulator, run.device, part, kernels=self.kernels, processes=self)

    @property
    def are_several(self) -> bool:
        """Whether another process of the program uses HIP, or may."""
        return len(self._live) > 1 or _has_children(self.program)

    def _expects_more(self) -> bool:
        """Whether a process may still launch something, or store to memory: one that uses HIP and
        runs no launch, or one that has not used it yet."""
        if not self.are_several:
            return False
        with self._lock:
            threads = list(self._live.values())
        idle = any(not self.team.runs(thread.ident) for thread in threads)
        return (idle or len(threads) == 1) and time.monotonic() - self.team.since < PATIENCE

    def _order(self) -> ProgramOrder | None:
        """What compares the works of a process with each other."""
        if self._run.checking is None:
            return None
        session, written = self._run.checking.session, WrittenBytes()
        target, program = self._run.device.target, Path(self._command[0])
        order = ProgramOrder(target, session.report, program, written, self._run.devices)
        session.bytes_written, session.works = written, order
        return order


@dataclass
class _ProcessLauncher(Launcher):
    """Executes the launches of one of several processes."""

    processes: _HipProcesses | None = None

    def execute(self, launch: Launch, ranges: Sequence[AddressRange]) -> None:
        assert self.processes is not None
        if not self.processes.are_several:
            super().execute(launch, ranges)
            return
        member = TeamMember(threading.current_thread().name, lambda _: "")
        self.emulator.run(launch, ranges, team=self.processes.team, member=member)


def _has_children(process: int) -> bool:
    """Whether a process has started others that live."""
    return any(map(is_alive, _descendants(process)))


def _descendants(process: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    children: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [each for child in children for each in (child, *_descendants(child))]


def _environment(library: Path, path: Path) -> dict[str, str]:
    folders = os.pathsep.join(filter(None, (str(library), os.environ.get("LD_LIBRARY_PATH"))))
    return {**os.environ, "LD_LIBRARY_PATH": folders, SOCKET: str(path)}


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    listener: socket.socket,
    hip: _HipProcesses,
) -> Ended:
    """Start the program and answer its processes until it ends."""
    try:
        program = processes.start(command, environment)
    except OSError as error:
        raise InputError(f"cannot run {command[0]}: {error.strerror or error}") from error
    hip.program = program.pid
    end = os.pidfd_open(program.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(end, selectors.EVENT_READ)
            selector.register(listener, selectors.EVENT_READ)
            while not any(key.fd == end for key, _ in selector.select()):
                connection, _ = listener.accept()
                hip.accept(connection)
    finally:
        os.close(end)
        if program.poll() is None:
            program.kill()
        status = program.wait()
    return Ended(code=status) if status >= 0 else Ended(signal=-status)


__all__ = ["ProgramExit", "ProgramRun"]
