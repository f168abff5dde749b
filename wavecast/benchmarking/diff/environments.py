"""Other releases of Triton, each in a separate environment.

An environment is a virtual one of this Python with one release of Triton in it and, behind that,
the packages of the environment wavecast runs in: PyTorch and the rest are those here. It lies in
the cache folder, is made once under a lock that its holder's death releases, and counts only once
it is finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

from wavecast.compile.cache import default_root
from wavecast.errors import InputError, MissingTool, UnknownName, UsageError

_RELEASE: Final = re.compile(r"\d+(\.\d+)+(\.post\d+)?")
_FINISHED: Final = "wavecast-finished"
_PATHS: Final = "zz_wavecast_parent.pth"
_CHECK: Final = "import torch, triton; print('triton', triton.__version__)"
_INSTALL_SECONDS: Final = 3600.0
_CHECK_SECONDS: Final = 300.0


def release_key(release: str) -> tuple[int, ...]:
    """The sort key of a release. Raises UsageError for text that is not a release number."""
    if not _RELEASE.fullmatch(release):
        raise UsageError(f"{release!r} is not a release of Triton", hint="like 3.8.0")
    numbers = [int(number) for number in re.findall(r"\d+", release)]
    return (*numbers, *[0] * (5 - len(numbers)))


def offered_releases() -> tuple[str, ...]:
    """The releases of Triton that pip offers for this Python, oldest first.

    pip is asked as it is configured. Raises MissingTool without pip, InputError when it has no
    answer.
    """
    process = _pip("index", "versions", "triton")
    match = re.search(r"^Available versions: (.*)$", process.stdout, re.MULTILINE)
    if process.returncode or match is None:
        raise InputError(f"pip names no releases of Triton: {_last_line(process.stderr)}")
    releases = [name for name in match[1].split(", ") if _RELEASE.fullmatch(name)]
    return tuple(sorted(releases, key=release_key))


def oldest_supported() -> tuple[int, ...]:
    """The oldest release wavecast works with, by its own requirements; () where those are not at
    hand."""
    try:
        required = metadata.requires("wavecast") or []
    except metadata.PackageNotFoundError:
        return ()
    bounds = [re.match(r"triton\b[^;]*>=\s*([\d.]+)", line) for line in required]
    return next((release_key(bound[1]) for bound in bounds if bound), ())


def between(releases: Sequence[str], first: str = "", last: str = "") -> tuple[str, ...]:
    """Those of `releases` (oldest first) from `first` (default: the oldest supported) to `last`.

    Raises UnknownName for one that is not offered, UsageError when fewer than two are left.
    """
    for name in filter(None, (first, last)):
        if name not in releases:
            raise UnknownName("release of Triton", name, releases)
    low = release_key(first) if first else oldest_supported()
    selection = [name for name in releases if low <= release_key(name)]
    if last:
        selection = [name for name in selection if release_key(name) <= release_key(last)]
    if len(selection) < 2:
        span = f"from {first or 'the oldest supported'} to {last or 'the newest'}"
        raise UsageError(f"{span} there are no two releases of Triton")
    return tuple(selection)


def installed_release() -> str:
    """The release of Triton in this environment, "" without one."""
    from wavecast.benchmarking.environment import version

    return version("triton")


def python_with(release: str) -> Path:
    """The interpreter that imports this release of Triton; the environment is made when missing.

    Raises UsageError for text that is not a release, InputError when the release cannot be
    installed or imported.
    """
    release_key(release)
    if release == installed_release():
        return Path(sys.executable)
    folder = _folder(release)
    python = folder / "bin" / "python"
    if not (folder / _FINISHED).is_file():
        with _lock(folder) as lock:
            if not (folder / _FINISHED).is_file():
                _make(folder, python, release, lock)
    return python


def _folder(release: str) -> Path:
    """One per release, Python and environment behind it."""
    key = "\n".join([sys.version, sys.base_prefix, *_parents()])
    tag = hashlib.sha256(key.encode()).hexdigest()[:12]
    return default_root() / "environments" / f"triton-{release}-{tag}"


def _parents() -> list[str]:
    """Folders of packages of this environment, in order of precedence."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    folders += site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]


@contextmanager
def _lock(folder: Path) -> Iterator[int]:
    """Hold the lock of an environment. Processes that are given its descriptor hold it, too, so
    that an installation whose parent was killed ends before the next begins."""
    path = folder.with_suffix(f"{folder.suffix}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise InputError(f"cannot make an environment in {path.parent}: {error.strerror}") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _make(folder: Path, python: Path, release: str, lock: int) -> None:
    """Make the environment; an earlier attempt is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    venv = _run(command, _INSTALL_SECONDS, (lock,))
    if venv.returncode:
        raise InputError(f"cannot make an environment in {folder}: {_last_line(venv.stderr)}")
    # Before the packages of this environment are visible there: pip must not touch those.
    install = _pip(
        *("--python", str(python), "install", "--no-deps", "--only-binary=:all:"),
        *("--no-compile", f"triton=={release}"),
        open_files=(lock,),
    )
    if install.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(f"pip cannot install Triton {release}: {_error_line(install.stderr)}")
    packages = next((folder / "lib").glob("python*/site-packages"))
    lines = [f"import site; site.addsitedir({parent!r})\n" for parent in _parents()]
    (packages / _PATHS).write_text("".join(lines))
    _check(folder, python, release)
    (folder / _FINISHED).write_text(f"triton {release}\n")


def _check(folder: Path, python: Path, release: str) -> None:
    process = _run([str(python), "-P", "-c", _CHECK], _CHECK_SECONDS)
    if process.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(
            f"Triton {release} cannot be imported with this PyTorch: {_last_line(process.stderr)}"
        )
    module_version = process.stdout.split()[-1]
    if module_version.partition("+")[0] != release:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(f"an environment for Triton {release} imports {module_version}")


def _pip(*arguments: str, open_files: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    quiet = ("--disable-pip-version-check", "--no-input", "--no-color")
    process = _run([sys.executable, "-m", "pip", *quiet, *arguments], _INSTALL_SECONDS, open_files)
    if process.returncode and "No module named pip" in process.stderr:
        raise MissingTool("pip is not installed", hint="python -m ensurepip")
    return process


def _run(
    command: Sequence[str], seconds: float, open_files: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            pass_fds=open_files,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{' '.join(command[:4])} did not finish in {seconds:.0f} s") from None


def _error_line(text: str) -> str:
    errors = [line for line in text.splitlines() if line.startswith("ERROR: ")]
    return errors[-1].removeprefix("ERROR: ") if errors else _last_line(text)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


__all__ = [
    "between",
    "installed_release",
    "offered_releases",
    "oldest_supported",
    "python_with",
    "release_key",
]
