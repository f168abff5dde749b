"""Observes a script as it runs: the files it looks at, and what no file decides.

Python tells an audit hook about files that are opened, folders that are listed, modules that are
imported, and about processes, connections and libraries. `os.stat` and its relatives are replaced,
for a script may only ask whether a file exists. Native code may open files unseen, so a script that
loads extension modules other than `_THROUGH_PYTHON` is refused.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton.dependencies import (
    FOLDER,
    RunDependencies,
    importable,
    lies_in,
    listing,
    package_folders,
    size_and_time,
    state,
)

_OUTSIDE: Final = {
    "ctypes.dlopen": "loads a library",
    "os.exec": "starts a program",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.posix_spawn": "starts a program",
    "os.system": "starts a program",
    "socket.connect": "opens a connection",
    "socket.getaddrinfo": "opens a connection",
    "sqlite3.connect": "opens a database",
    "subprocess.Popen": "starts a program",
}
"""Audit events of what files do not decide."""
_TOOLS: Final = ("triton", "wavecast")
"""Packages whose processes and libraries are part of a capture."""
_THROUGH_PYTHON: Final = frozenset(
    (
        *("PIL", "kiwisolver", "llvmlite", "markupsafe", "matplotlib", "msgpack", "msgspec"),
        *("numpy", "pandas", "regex", "scipy", "torch", "triton", "wavecast", "yaml"),
    )
)
"""Packages whose native code reads files that Python opened, or that came with the package."""
_SYSTEM: Final = ("/dev", "/proc", "/sys")
_TICK: Final = 10_000_000
"""Nanoseconds that the clock of Linux file systems may lag behind (1 / CONFIG_HZ)."""
_ASKING: Final = ("access", "lstat", "readlink", "stat")
_IMPORTS: Final = "<frozen importlib"


class RunObserver:
    """Observes from `install` on. Paths below `ignored` do not count: caches, the run's own files.

    Audit hooks cannot be removed: this is for a process that ends with the script.
    """

    def __init__(self, script: Path, ignored: tuple[str, ...]) -> None:
        self._ignored = tuple(map(os.path.realpath, ignored)) + _SYSTEM
        self._packages = (*package_folders(), *(_folder(name) for name in _TOOLS))
        self._tools = tuple(_folder(name) for name in _TOOLS)
        self._stat = os.stat
        self._touched: dict[str, str] = {}
        self._written: set[str] = set()
        self._listed: set[str] = set()
        self._names: set[str] = set()
        self._loaded = frozenset(sys.modules)
        self._outside = ""
        self._started = 0
        self._ended = False
        self._script = os.path.abspath(script)
        self._touch(self._script)

    def install(self, patches: Patches) -> None:
        """Start to observe; `patches` put `os.stat` and its relatives back."""
        for name in _ASKING:
            original = getattr(os, name)
            asking = self._asking(original)
            patches.attribute(os, name, asking)
            for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
                if original in able:
                    able.add(asking)
        finder = _AskedModules(self._names)
        sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
        patches.callback(sys.meta_path.remove, finder)
        self._started = time.time_ns()
        sys.addaudithook(self._audit)

    def dependencies(self) -> RunDependencies | str:
        """What the run depended on, or why that is not known."""
        self._ended = True
        modules = list(sys.modules.items())
        foreign = ", ".join(self._native(modules))
        if self._outside or foreign:
            return self._outside or f"loads native code: {foreign}"
        installed: set[str] = set()
        folders = {os.path.abspath(folder) for folder in sys.path}
        for _, module in modules:
            nested = [os.path.abspath(folder) for folder in vars(module).get("__path__", ())]
            folders.update(folder for folder in nested if not self._is_installed(folder))
            file = vars(module).get("__file__")
            if not isinstance(file, str):
                continue
            file = os.path.abspath(file)
            if self._is_installed(file):
                installed.add(file)
            else:
                self._touch(file)
        paths = {path for path in self._touched if not lies_in(path, self._ignored)}
        installed |= {path for path in paths if self._is_installed(path)}
        installed.discard(self._script)  # known by its content, also where a package has it
        paths -= installed
        if any(self._has_changed(path) for path in paths - self._written):
            return "a file changed while it ran"
        names = {"__init__"} | {
            part for name in (*self._names, *sys.modules) for part in name.split(".")
        }
        directories = {path for path in self._listed if not lies_in(path, self._ignored)}
        return RunDependencies(
            {path: state(path) for path in paths},
            {path: size_and_time(path) for path in installed},
            {path: listing(path) for path in directories if not self._is_installed(path)},
            {path: importable(path, names) for path in folders},
            names,
        )

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self._ended:
            return
        if event == "open":
            self._note_open(args[0], args[2])
        elif event == "import":
            self._names.add(str(args[0]))
        elif event == "os.mkdir":
            self._writes(args[0])
        elif event in ("os.listdir", "os.scandir"):
            if not _importing(sys._getframe(1)):
                self._listed.update(_paths(args[0] if args[0] is not None else os.curdir))
        elif event in _OUTSIDE and not self._of_tools(sys._getframe(1)):
            self._outside = self._outside or _OUTSIDE[event]

    def _note_open(self, path: object, flags: object) -> None:
        """Note an open file: read, or replaced. What is appended to a file depends on nothing."""
        mode = flags if isinstance(flags, int) else os.O_RDONLY
        if mode & os.O_TRUNC:
            self._writes(path)
        elif mode & os.O_EXCL or not (mode & os.O_CREAT and mode & os.O_ACCMODE == os.O_WRONLY):
            for name in _paths(path):
                self._touch(_source(name) if "__pycache__" in name else name)

    def _writes(self, path: object) -> None:
        """Note a new file or folder: what the script reads of it later is its own."""
        for name in _paths(path):
            if name not in self._touched and self._look(name) != FOLDER:
                self._written.add(name)

    def _touch(self, path: str) -> None:
        """Note that the script looks at a path, and what is there at the first look."""
        if path in self._touched:
            return
        if not self._written.isdisjoint((path, *map(str, Path(path).parents))):
            self._written.add(path)
        self._touched[path] = self._look(path)

    def _look(self, path: str) -> str:
        """What tells one file at a path from another, cheap to ask."""
        try:
            status = self._stat(path)
        except (OSError, ValueError):
            return ""
        if stat.S_ISDIR(status.st_mode):
            return FOLDER
        return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"

    def _asking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def asking(path: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._ended:
                for name in _paths(path):
                    self._touch(name)
            return original(path, *args, **kwargs)

        return asking

    def _is_installed(self, path: str) -> bool:
        return lies_in(path, self._packages) or lies_in(os.path.realpath(path), self._packages)

    def _has_changed(self, path: str) -> bool:
        """Whether there is another file than the script saw first, or may be."""
        if self._look(path) != self._touched[path]:
            return True
        try:
            changed = self._stat(path).st_mtime_ns
        except (OSError, ValueError):
            return False
        return changed >= self._started - _TICK and self._touched[path] != FOLDER

    def _native(self, modules: list[tuple[str, ModuleType]]) -> Iterator[str]:
        """Extension modules that the script has loaded, and that may open files."""
        library = package_folders()[:2]
        packages = package_folders()[2:]
        for name, module in modules:
            file = vars(module).get("__file__")
            if name in self._loaded or not isinstance(file, str):
                continue
            standard = lies_in(file, library) and not lies_in(file, packages)
            is_through_python = name.split(".")[0] in _THROUGH_PYTHON
            if file.endswith(tuple(EXTENSION_SUFFIXES)) and not standard and not is_through_python:
                yield name

    def _of_tools(self, frame: FrameType | None) -> bool:
        """Whether code of `_TOOLS` asked for something, be it through the standard library."""
        library = package_folders()[:2]
        while frame is not None:
            file = frame.f_code.co_filename
            if lies_in(file, self._tools):
                return True
            if not file.startswith("<frozen") and not _standard(file, library):
                return False
            frame = frame.f_back
        return False


class _AskedModules:
    """A finder that finds nothing, and notes for what `importlib` looked: it has no audit event."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        self._names.add(name)


def _standard(file: str, library: tuple[str, ...]) -> bool:
    return lies_in(os.path.realpath(file), library) and "site-packages" not in file


def _importing(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_IMPORTS)


def _paths(path: object) -> Iterator[str]:
    """The absolute path that a call names; nothing for a descriptor."""
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if isinstance(path, str):
        yield os.path.abspath(path)


def _source(path: str) -> str:
    """The source file that a file of compiled Python is made from."""
    try:
        return source_from_cache(path)
    except (NotImplementedError, ValueError):
        return path


def _folder(package: str) -> str:
    return os.path.realpath(str(Path(str(sys.modules[package].__file__)).parent))


__all__ = ["RunObserver"]
