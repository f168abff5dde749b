"""The HIP runtime library that programs are linked to, compiled once per machine."""

from __future__ import annotations

import tempfile
from importlib import resources
from pathlib import Path
from typing import Final

from wavecast.compile import hip_program, toolchain
from wavecast.compile.cache import default_root
from wavecast.compile.digest import digest
from wavecast.errors import InputError

_SOURCES: Final = Path(str(resources.files("wavecast.integrations.hip_host") / "runtime"))


def runtime_folder() -> Path:
    """The folder with `libamdhip64.so` under the names that programs ask for.

    Raises MissingTool without a compiler, CompileError, InputError where the folder of the cache
    cannot be written.
    """
    sources = sorted(_SOURCES.glob("*.[ch]"))
    content = digest(
        [(path.name, path.read_bytes()) for path in sources], toolchain.headers_digest()
    )
    folder = default_root() / "hip-runtime" / content
    if (folder / hip_program.SONAME).is_file():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".made-", dir=folder.parent) as made:
            _make(Path(made), [path for path in sources if path.suffix == ".c"])
            _publish(Path(made), folder)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    return folder


def _make(folder: Path, sources: list[Path]) -> None:
    library = folder / hip_program.SONAME
    hip_program.shared_library(sources, library)
    (folder / f"lib{hip_program.LIBRARY}.so").symlink_to(hip_program.SONAME)


def _publish(made: Path, folder: Path) -> None:
    """Move what was made to its folder, at once; another process may have been faster."""
    complete = made.with_name(f"{made.name}.complete")
    made.rename(complete)
    made.mkdir()
    try:
        complete.rename(folder)
    except OSError:
        if not (folder / hip_program.SONAME).is_file():
            raise


__all__ = ["runtime_folder"]
