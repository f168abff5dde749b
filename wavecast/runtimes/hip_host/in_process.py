"""HIP's runtime in this process, for languages whose compilers launch through HIP's modules
(FlyDSL, TileLang): the library of HIP programs, whose requests are answered by a function here."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from wavecast.arch import Device
from wavecast.compile import hip_program
from wavecast.errors import UsageError, WavecastError
from wavecast.runtimes.hip_host.arena import PROCESS_BASE, Arena, ArenaPart
from wavecast.runtimes.hip_host.launching import Launcher
from wavecast.runtimes.hip_host.library import NAMES, runtime_folder
from wavecast.runtimes.hip_host.properties import properties
from wavecast.runtimes.hip_host.session import ProgramSession

_ANSWER = ctypes.CFUNCTYPE(
    None, ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_uint64),
)  # fmt: skip
_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_INTERNAL: Final = 70
"""The status of an answer that a defect of ours prevents."""
_PYTHON: Final = (
    "PyGILState_Check", "PyEval_SaveThread", "PyEval_RestoreThread", "PyGILState_Ensure",
    "PyGILState_Release", "PyThreadState_SetAsyncExc",
)  # fmt: skip


class _Server(ctypes.Structure):
    """`Server` of `runtime/connection.c`."""

    _fields_ = (
        ("answer", _ANSWER),
        ("take", _TAKE),
        *((name, ctypes.c_void_p) for name in _PYTHON),
    )


@dataclass(frozen=True)
class LoadedRuntime:
    """The library in this process, from the first GPU that needs it to the end."""

    library: ctypes.CDLL
    arena: ArenaPart


@functools.cache
def load_runtime() -> LoadedRuntime:
    """The runtime, under all names that programs ask for. Raises as `runtime_folder`, and
    UsageError where its memory cannot be mapped."""
    folder = runtime_folder()
    arena = Arena(PROCESS_BASE)
    os.register_at_fork(after_in_child=arena.keep_private)
    library = ctypes.CDLL(str(folder / hip_program.SONAME), mode=ctypes.RTLD_GLOBAL)
    for name in sorted((folder / NAMES).iterdir()):
        ctypes.CDLL(str(name), mode=ctypes.RTLD_GLOBAL)
    atexit.register(library.wavecast_serve, None)  # libraries unload modules after Python's end
    return LoadedRuntime(library, arena.part())


class HipInProcess:
    """HIP's runtime of this process, answered for one GPU, or several `devices`, while `serving`.

    `launcher_of` makes what executes launches, of the arena. What fails is raised where the program
    called, as soon as the call returns to Python, and is in `failures`.
    """

    def __init__(
        self, device: Device, launcher_of: Callable[[ArenaPart], Launcher], devices: int = 1
    ) -> None:
        self._device, self._devices = device, devices
        self._launcher_of = launcher_of
        self.launcher: Launcher | None = None
        """What executes the launches; None before the first use of HIP."""
        self.failures: list[BaseException] = []
        self._raised: list[type[BaseException]] = []
        self._data = b""
        self._session: ProgramSession | None = None

    def start(self) -> None:
        """Answer HIP's calls of this process from now on. Raises as `load_runtime`, and UsageError
        where another GPU answers."""
        with _starting:
            if _serving and _serving[-1][0] is self:
                return
            if _serving:
                raise UsageError("HIP's runtime of this process belongs to another GPU already")
            python = (getattr(ctypes.pythonapi, name) for name in _PYTHON)
            addresses = [ctypes.cast(function, ctypes.c_void_p) for function in python]
            server = _Server(_ANSWER(self._answer), _TAKE(self._take), *addresses)
            load_runtime().library.wavecast_serve(ctypes.byref(server))
            _serving.append((self, server))

    def _open(self) -> ProgramSession:
        """The session, at the first call. Raises MissingFact for a GPU of which programs may ask
        what is not known."""
        arena = load_runtime().arena
        facts = properties(self._device, self._devices) | arena.facts()
        self.launcher = self._launcher_of(arena)
        return ProgramSession(
            self._device, facts, arena, self.launcher,
            on_error=self._on_error, modules=_modules,
        )  # fmt: skip

    def stop(self) -> None:
        """Answer no more: calls fail until another GPU answers."""
        self._session = None
        if _serving and _serving[-1][0] is self:
            load_runtime().library.wavecast_serve(None)
            _serving.clear()

    def _answer(
        self, number: int, head: int, head_bytes: int, tail: int, tail_bytes: int, answer: Any
    ) -> None:
        before = len(self.failures)
        try:
            content = ctypes.string_at(head, head_bytes) if head_bytes else b""
            if tail_bytes:
                content += ctypes.string_at(tail, tail_bytes)
            if self._session is None:
                self._session = self._open()
            status, self._data = self._session.answer(number, content)
        except BaseException as error:
            self.failures.append(error)
            status, self._data = _INTERNAL, b""
        answer[0], answer[1] = status, len(self._data)
        if len(self.failures) > before:
            answer[2], answer[3] = self._raise_later(self.failures[-1])

    def _take(self, to: int) -> None:
        ctypes.memmove(to, self._data, len(self._data))

    def _on_error(self, error: WavecastError) -> None:
        self.failures.append(error)

    def _raise_later(self, error: BaseException) -> tuple[int, int]:
        """This thread, and the class that Python raises there once the answer has been given."""
        kind = type(error)

        def restore(self: BaseException) -> None:
            self.args = error.args
            self.__dict__.update(error.__dict__)
            self.__cause__ = error.__cause__
            load_runtime().library.wavecast_raised()

        names = {"__init__": restore, "__module__": kind.__module__}
        raised = type(kind.__name__, (kind,), names)
        self._raised.append(raised)  # the caller does not own it
        return threading.get_ident(), id(raised)


_starting: Final = threading.RLock()
"""Locked while the runtime starts: ranks that are threads load it at once."""
_serving: list[tuple[HipInProcess, _Server]] = []
_modules: dict[int, Any] = {}
"""Modules outlive a GPU: programs keep them in caches."""


def is_loaded() -> bool:
    """Whether this process has the runtime."""
    return load_runtime.cache_info().currsize > 0


def serving() -> HipInProcess | None:
    """What answers HIP's calls of this process, None where nothing does."""
    return _serving[-1][0] if _serving else None


__all__ = ["HipInProcess", "LoadedRuntime", "is_loaded", "load_runtime", "serving"]
