"""ROCm's libraries in this process: those whose functions the host computes, and names of others.

An extension module asks the loader for libraries and for symbols. What is missing is compiled for
it: a library of the headers of `compile/include`, and functions whose call is an error with their
name.
"""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from wavecast import files
from wavecast.compile import hip_program, toolchain
from wavecast.compile.cache import default_root
from wavecast.compile.digest import digest
from wavecast.errors import InputError
from wavecast.isa import elf
from wavecast.runtimes.hip_host.library import runtime_folder, unsupported_functions

_HEADERS: Final = {
    name: f"{name}/{name}.h"
    for name in (
        "hipblas", "hipblaslt", "hipfft", "hiprand", "hipsolver", "hipsparse", "rocblas",
        "rocsolver", "rocsparse",
    )
}  # fmt: skip
"""Library -> the header with its functions."""
_VERSIONS: Final = {"roctx64": ("ROCTX_4.1",), "roctracer64": ("ROCTRACER_4.0", "ROCTRACER_4.1")}
"""Library -> the versions of its symbols, where they have one."""
_NO_EFFECT: Final = (
    "roctxMarkA", "roctxRangePop", "roctxRangePushA", "roctxRangeStartA", "roctracer_start",
    "roctracer_stop",
)  # fmt: skip
"""Functions that only tell a profiler something."""
_MISSING_LIBRARY: Final = re.compile(
    r"(lib(hip\w+|roc\w+|rccl|MIOpen)\.so[.\d]*): cannot open shared object file"
)
_MISSING_SYMBOL: Final = re.compile(r"(\S+): undefined symbol: ((?:hip|roc|nccl|miopen)\w+)")
_PREFIXES: Final = ("hip", "roc", "nccl", "miopen")


def provide_missing(message: str) -> bool:
    """Load what the loader says is missing; False for anything but ROCm's libraries and their
    symbols. Raises MissingTool without a compiler, CompileError, InputError."""
    if match := _MISSING_LIBRARY.search(message):
        _load(_library(match[1], match[2]))
        return True
    if match := _MISSING_SYMBOL.search(message):
        file = Path(match[1])
        if file.is_file():
            _load(_symbols(elf.read(file.read_bytes()), match[2]))
            return True
    return False


def _load(path: Path) -> None:
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _library(soname: str, name: str) -> Path:
    """The library of a name: the functions of its header, or none."""
    runtime = runtime_folder() / hip_program.SONAME
    versions = _VERSIONS.get(name, ("ROCM",))

    def make(output: Path) -> None:
        if name in _HEADERS:
            hip_program.exported_library([_HEADERS[name]], output, [runtime])
        else:
            hip_program.alias_library(runtime, versions, output)

    return _stored(soname, (soname, versions, str(runtime)), make)


def _symbols(file: elf.Elf, first: str) -> Path:
    """A library with functions for all symbols that a file needs and that are nowhere."""
    process = ctypes.CDLL(None)
    names = {
        symbol.name.partition("@")[0]  # without its version
        for symbol in file.symbols.values()
        if symbol.section is None and not symbol.absolute and symbol.name.startswith(_PREFIXES)
    }
    absent = sorted({name for name in names if not hasattr(process, name)} | {first})
    runtime = runtime_folder() / hip_program.SONAME

    def make(output: Path) -> None:
        source = output.with_suffix(".c")
        nothing = "".join(f"int {name}() {{ return 0; }}\n" for name in _effectless(absent))
        others = [name for name in absent if name not in _NO_EFFECT]
        source.write_text(nothing + unsupported_functions(others))
        hip_program.plain_library(source, output, [runtime])

    return _stored("symbols.so", (absent, str(runtime)), make)


def _effectless(names: Iterable[str]) -> list[str]:
    return [name for name in names if name in _NO_EFFECT]


def _stored(name: str, content: object, make: Callable[[Path], None]) -> Path:
    """The file of a cache, made where it is not there."""
    folder = default_root() / "rocm-libraries" / digest(content, toolchain.headers_digest())
    path = folder / name
    if path.is_file():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="wavecast-") as staging:
            output = Path(staging) / name
            make(output)
            files.write_atomic(path, output.read_bytes())
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    return path


__all__ = ["provide_missing"]
