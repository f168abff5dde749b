"""Running a HIP program: the program as a child process, and the emulator that answers it."""

from __future__ import annotations

import os
import selectors
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wavecast import processes
from wavecast.arch import Device
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.launch import Emulator
from wavecast.emulate.written_bytes import WrittenBytes
from wavecast.errors import InputError
from wavecast.processes import Ended
from wavecast.runtimes.hip_host.arena import Arena
from wavecast.runtimes.hip_host.launching import LaunchedKernel, Launcher
from wavecast.runtimes.hip_host.library import runtime_folder
from wavecast.runtimes.hip_host.ordering import ProgramOrder
from wavecast.runtimes.hip_host.properties import properties
from wavecast.runtimes.hip_host.protocol import SOCKET
from wavecast.runtimes.hip_host.session import ProgramSession
from wavecast.runtimes.hip_host.session import serve as serve_session

_BUSY: Final = b"B"
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

    `checking` are the emulator's checks, `predicts` is whether launches have predicted times.
    """

    device: Device
    emulator: Emulator
    devices: int = 1
    checking: CheckMode | None = None
    predicts: bool = False

    def run(self, command: Sequence[str]) -> ProgramExit:
        """Run the program to its end. Raises InputError where it cannot start, MissingFact for a
        device of which programs may ask what is not known, and as `runtime_folder`."""
        facts = properties(self.device, self.devices)
        library = runtime_folder()
        arena = Arena()
        launcher = Launcher(
            self.emulator, self.device, arena, self.checking is not None, self.predicts
        )
        connected = False

        def serve(connection: socket.socket) -> None:
            nonlocal connected
            if connected:
                arena.reset()
            connected = True
            launcher.allocations = []
            order = self._order(command)
            files = (arena.file,)
            socket.send_fds(connection, [_ACCEPTED], files)
            serve_session(connection, ProgramSession(self.device, facts, arena, launcher, order))

        try:
            with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
                path = Path(folder) / "hip"
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(str(path))
                    listener.listen()
                    status = _run(command, _environment(library, path), listener, serve)
        finally:
            arena.close()
        return ProgramExit(status, tuple(launcher.kernels.values()), connected)

    def _order(self, command: Sequence[str]) -> ProgramOrder | None:
        """What compares the works of a process with each other."""
        if self.checking is None:
            return None
        session, written = self.checking.session, WrittenBytes()
        order = ProgramOrder(
            self.device.target, session.report, Path(command[0]), written, self.devices
        )
        session.bytes_written, session.works = written, order
        return order


def _environment(library: Path, path: Path) -> dict[str, str]:
    folders = os.pathsep.join(filter(None, (str(library), os.environ.get("LD_LIBRARY_PATH"))))
    return {**os.environ, "LD_LIBRARY_PATH": folders, SOCKET: str(path)}


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    listener: socket.socket,
    serve: Callable[[socket.socket], None],
) -> Ended:
    """Start the program and answer its processes, one at a time, until it ends."""
    try:
        program = processes.start(command, environment)
    except OSError as error:
        raise InputError(f"cannot run {command[0]}: {error.strerror or error}") from error
    end = os.pidfd_open(program.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(end, selectors.EVENT_READ)
            selector.register(listener, selectors.EVENT_READ)
            while not any(key.fd == end for key, _ in selector.select()):
                connection, _ = listener.accept()
                with connection:
                    _refusing(listener, connection, serve)
    finally:
        os.close(end)
        if program.poll() is None:
            program.kill()
        status = program.wait()
    return Ended(code=status) if status >= 0 else Ended(signal=-status)


def _refusing(
    listener: socket.socket,
    connection: socket.socket,
    serve: Callable[[socket.socket], None],
) -> None:
    """Serve one process while a thread refuses others."""
    import threading

    stop = threading.Event()

    def refuse() -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            while not stop.is_set():
                if selector.select(0.2) and not stop.is_set():
                    other, _ = listener.accept()
                    with other:
                        other.sendall(_BUSY)

    thread = threading.Thread(target=refuse, daemon=True)
    thread.start()
    try:
        serve(connection)
    finally:
        stop.set()
        thread.join()


__all__ = ["ProgramExit", "ProgramRun"]
