"""The programs of ROCm that compilers of languages start, in a folder with ROCm's layout."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wavecast.compile import device_library, toolchain
from wavecast.compile.cache import default_root
from wavecast.compile.digest import digest
from wavecast.errors import InputError, MissingTool

ROOT: Final = "ROCM_PATH"
"""The variable with ROCm's folder."""


def use_rocm_folder(target: str) -> None:
    """Let this process find ROCm's programs, where it has none. Raises MissingTool
    without a linker, InputError where the cache cannot be written."""
    there = os.environ.get(ROOT)
    if there and (Path(there) / "llvm" / "bin" / "ld.lld").exists():
        return
    folder = rocm_folder(target)
    os.environ[ROOT] = os.environ["HIP_PATH"] = str(folder)
    os.environ["PATH"] = os.pathsep.join((str(folder / "bin"), os.environ.get("PATH", "")))


def rocm_folder(target: str) -> Path:
    """A folder with ROCm's layout for a target: compiler and linker, the lists of GPUs, hipcc, and
    the libraries of device code that Triton's wheel contains."""
    tools = toolchain.find(target)
    if not tools.linker:
        raise MissingTool("linking device code needs ld.lld", hint="install lld")
    python = shlex.quote(sys.executable)
    programs = {
        "llvm/bin/clang": f'exec {shlex.join(tools.compiler)} "$@"',
        "llvm/bin/ld.lld": f'exec {shlex.join(tools.linker)} "$@"',
        "bin/rocm_agent_enumerator": f"echo {target}",
        "bin/rocminfo": f"echo '  Name:                    {target}'",
        "bin/hipcc": f'exec env WAVECAST_OFFLOAD_ARCH={target} {python} -m wavecast hipcc "$@"',
    }
    libraries = device_library.bitcode()
    root = default_root() / "rocm" / digest([programs, [*map(str, libraries)]])[:16]
    try:
        for name, command in programs.items():
            _write_program(root / name, f"#!/bin/sh\n{command}\n")
        _link(root / "amdgcn" / "bitcode", libraries)
    except OSError as error:
        raise InputError(f"cannot write {root}: {error.strerror or error}") from error
    return root


def _write_program(path: Path, text: str) -> None:
    from wavecast.files import write_text

    if path.is_file() and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    path.chmod(0o755)


def _link(folder: Path, files: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        with contextlib.suppress(FileExistsError):
            (folder / path.name).symlink_to(path)


__all__ = ["ROOT", "rocm_folder", "use_rocm_folder"]
