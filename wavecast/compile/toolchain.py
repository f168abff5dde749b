"""The compiler from HIP to AMDGCN on this machine, and its command line.

`$WAVECAST_HIPCC` or ROCm's hipcc, if there is one. Otherwise, of the clang of the `ziglang` package
and the clangs in PATH, the one whose version is nearest to that of the ROCm release of the chip's
time (`rocm`), since other versions schedule and wait differently. With these, wavecast's own
headers replace HIP's (`compile/include`, docs/hip.md).
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from wavecast.compile import device_library, process, rocm
from wavecast.compile.digest import digest
from wavecast.errors import MissingTool, UsageError
from wavecast.extras import install_hint

VARIABLE: Final = "WAVECAST_HIPCC"
INCLUDE: Final = Path(__file__).parent / "include"
RUNTIME_HEADER: Final = str(INCLUDE / "hip" / "hip_runtime.h")
INDEX_HEADER: Final = str(INCLUDE / "wavecast" / "ockl.h")
OLDEST_CLANG: Final = 19
GLIBC_MINOR: Final = 31
"""The version of glibc, 2.31, that zig builds programs for where nothing says which."""
_CUDA: Final = (
    "-DWAVECAST_CUDA",
    *("-isystem", str(INCLUDE / "cuda")),
    *("-include", str(INCLUDE / "cuda" / "cuda_runtime.h")),
)
_FOLDER: Final = re.compile(r"(?P<option>-I|-isystem)?(?P<path>\S*\binclude/(?P<name>[a-z]+))/?")
"""A folder of ROCm's headers, with the option before it where that is part of the word."""
PROGRAM: Final = "WAVECAST_PROGRAM"
"""Defined where device code is part of a program, whose runtime prints what kernels print."""
_OURS: Final = re.compile(rb"\bwavecast['\"]?\s+hipcc\b")
_SCRIPT_BYTES: Final = 1 << 16
_CLANGS: Final = tuple(f"clang-{number}" for number in range(40, OLDEST_CLANG - 1, -1))

_LIBCXX_DEFINES: Final = (
    "_LIBCPP_ABI_VERSION=1",
    "_LIBCPP_ABI_NAMESPACE=__1",
    "_LIBCPP_HAS_THREADS=1",
    "_LIBCPP_HAS_MONOTONIC_CLOCK=1",
    "_LIBCPP_HAS_TERMINAL=1",
    "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "_LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS",  # the same in libc++ 19, of zig 0.14
    "_LIBCPP_HAS_FILESYSTEM=1",
    "_LIBCPP_HAS_RANDOM_DEVICE=1",
    "_LIBCPP_HAS_LOCALIZATION=1",
    "_LIBCPP_HAS_UNICODE=1",
    "_LIBCPP_HAS_WIDE_CHARACTERS=1",
    "_LIBCPP_HAS_NO_STD_MODULES",
    "_LIBCPP_PSTL_BACKEND_SERIAL",
    "_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE",
    "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
    "_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS",
    "_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS",
)
"""What zig's libc++ headers need defined, as `zig c++ -v` shows."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A HIP compiler: how to call it for device assembly, to assemble, and to link.

    `own_headers` is True where wavecast's headers replace ROCm's. `linker` is empty when there
    is none, and code objects then have no `hsaco` stage.
    """

    name: str
    compiler: tuple[str, ...]
    linker: tuple[str, ...]
    own_headers: bool
    arguments: tuple[str, ...]
    """Arguments of every device compilation: headers and what they need defined."""
    host: tuple[str, ...] = ()
    """Arguments of host compilations of whole programs: headers and what they need defined."""
    library: Path | None = None
    """AMD's device library where it is to be linked (`device_library`)."""


def is_cuda(tools: Toolchain) -> bool:
    """Whether it is a compiler for CUDA source."""
    return tools.arguments[: len(_CUDA)] == _CUDA


def of_programs(tools: Toolchain) -> Toolchain:
    """The same compiler for the device code of a whole program, which must see the headers that
    its host code sees."""
    shared = tools.host or tools.arguments
    program_arguments = (
        tuple(tools.arguments[: tools.arguments.index("-nostdinc")]) if tools.host else ()
    )
    return replace(tools, arguments=(f"-D{PROGRAM}", *program_arguments, *shared))


def without_runtime_header(tools: Toolchain) -> Toolchain:
    """The same compiler for HIP of compilers, which declare the device library's functions that
    they call, and no other names: as `comgr` compiles it."""
    if not tools.own_headers:
        return replace(tools, arguments=(*tools.arguments, "-nogpuinc"))
    arguments = [INDEX_HEADER if item == RUNTIME_HEADER else item for item in tools.arguments]
    return replace(tools, arguments=tuple(arguments))


def replace_rocm_folders(flags: Sequence[str]) -> tuple[str, ...]:
    """Flags of a compiler with wavecast's folders in place of those of ROCm's headers that are not
    on this machine (`-I/opt/rocm/include/hip`)."""
    return tuple(_replace_rocm_folder(flag) for flag in flags)


def _replace_rocm_folder(flag: str) -> str:
    match = _FOLDER.fullmatch(flag)
    if match is None or Path(match["path"]).exists():
        return flag
    own_folder = INCLUDE / match["name"]
    return f"{match['option'] or ''}{own_folder}" if own_folder.is_dir() else flag


def find(target: str = "", *, cuda: bool = False) -> Toolchain:
    """The compiler for a target; with "", the first found. That of `cuda` source has headers that
    translate CUDA to HIP, and is never ROCm's, whose shuffles have other widths.

    Raises MissingTool, naming the package, when there is none, and as `rocm.release`.
    """
    if cuda:
        tools = _nearest(target)
        return replace(tools, arguments=(*_CUDA, *tools.arguments))
    override = os.environ.get(VARIABLE, "")
    installed = os.environ.get("ROCM_PATH", "/opt/rocm")
    hipcc = process.find_program(("hipcc",), variable=VARIABLE, folders=(f"{installed}/bin",))
    if override and not hipcc:
        raise MissingTool(f"{VARIABLE} names no program: {override!r}")
    if hipcc and (override or not _calls_wavecast(hipcc)):
        if os.environ.get(process.DRIVEN):
            raise UsageError(
                f"{hipcc} calls wavecast, which would call it again",
                hint=f"set {VARIABLE} to the hipcc of ROCm, or take this one out of PATH",
            )
        return _rocm(hipcc, installed)
    return _nearest(target)


def _calls_wavecast(program: str) -> bool:
    """Whether a program is a script that calls `wavecast hipcc`."""
    try:
        with open(program, "rb") as file:
            start = file.read(_SCRIPT_BYTES)
    except OSError:  # a program that can be run but not read
        return False
    return start.startswith(b"#!") and _OURS.search(start) is not None


def _nearest(target: str) -> Toolchain:
    """The compiler with wavecast's headers for a target, as `find`."""
    toolchains = _candidates()
    if not toolchains:
        raise MissingTool(
            "compiling HIP needs a compiler",
            hint=f"{install_hint('hip')} (the ziglang package)",
        )
    if not target or len(toolchains) == 1:
        return toolchains[0]
    clang_release = rocm.release(target).clang
    return min(toolchains, key=lambda tools: abs(clang_version(tools.compiler) - clang_release))


def _candidates() -> list[Toolchain]:
    """The clang of ziglang, then those in PATH, the newest first. One that finds no C++ standard
    library is left out where another is there."""
    zig = _zig_program()
    clangs = [path for name in _CLANGS if (path := process.find_program((name,)))]
    if zig is not None or len(clangs) > 1:
        clangs = [clang for clang in clangs if _has_libraries(clang)] or clangs[: zig is None]
    return [*([_zig(zig)] if zig is not None else ()), *map(_clang, clangs)]


@lru_cache(maxsize=len(_CLANGS))
def _has_libraries(clang: str) -> bool:
    empty = ("-x", "c++", "-fsyntax-only", "-include", "vector", os.devnull)
    return process.run([clang, *empty]).status == 0


def clang_version(compiler: tuple[str, ...]) -> int:
    """The major version of a clang, 0 where it does not say one."""
    return rocm.clang_of(version(compiler))


@lru_cache(maxsize=len(_CLANGS) + 2)
def version(compiler: tuple[str, ...]) -> str:
    """The compiler's name and version: `clang version 22.1.8`."""
    printed = process.run([*compiler, "--version"]).text
    match = re.search(r"^.*clang version .*$", printed, re.MULTILINE)
    return match[0].strip() if match else (printed.strip().splitlines() or ["unknown"])[0]


@lru_cache(maxsize=1)
def headers_digest() -> str:
    """Names the content of wavecast's own headers."""
    headers = sorted(path for path in INCLUDE.rglob("*") if path.is_file())
    return digest([(path.name, path.read_bytes()) for path in headers])


def _rocm(hipcc: str, folder: str) -> Toolchain:
    linker = process.find_program(("ld.lld",), folders=(f"{folder}/llvm/bin",))
    return Toolchain("hipcc", (hipcc,), (linker,) if linker else (), False, ())


def _zig_program() -> Path | None:
    """The zig program inside the `ziglang` package, called without starting Python again."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "zig"
    return program if program.is_file() else None


def _zig(zig: Path) -> Toolchain:
    machine = platform.machine()
    musl = (f"{machine}-linux-musl", "generic-musl")
    short = machine.replace("x86_64", "x86")
    glibc = (f"{machine}-linux-gnu", f"{short}-linux-gnu", "generic-glibc")
    program = str(zig)
    zig_toolchain = _with_own_headers(
        "ziglang",
        (program, "clang"),
        (program, "ld.lld"),
        _zig_headers(zig, musl, "_LIBCPP_HAS_MUSL_LIBC=1"),
    )
    host = _zig_headers(zig, glibc, "_LIBCPP_HAS_MUSL_LIBC=0", f"__GLIBC_MINOR__={GLIBC_MINOR}")
    return replace(zig_toolchain, host=("-target", zig_target(), *host))


def zig_target() -> str:
    """What zig calls this machine with glibc, which whole programs are built for."""
    return f"{platform.machine()}-linux-gnu"


def _zig_headers(zig: Path, libc: Sequence[str], *definitions: str) -> list[str]:
    library, machine = zig.parent / "lib", platform.machine()
    names = [*libc, f"{machine.replace('x86_64', 'x86')}-linux-any", "any-linux-any"]
    folders = [
        *(library / name / "include" for name in ("libcxx", "libcxxabi")),
        library / "include",
        *(library / "libc" / "include" / name for name in names),
    ]
    arguments = ["-nostdinc", "-nostdinc++"]
    for folder in folders:
        if folder.is_dir():
            arguments += ["-isystem", str(folder)]
    return arguments + [f"-D{definition}" for definition in (*_LIBCXX_DEFINES, *definitions)]


def _clang(clang: str) -> Toolchain:
    number = clang.rsplit("-", 1)[-1]
    linker = process.find_program((f"ld.lld-{number}", "ld.lld"))
    return _with_own_headers("clang", (clang,), (linker,) if linker else (), ())


def _with_own_headers(
    name: str, compiler: tuple[str, ...], linker: tuple[str, ...], arguments: Sequence[str]
) -> Toolchain:
    library = device_library.find(clang_version(compiler))
    header_flags = ("-nogpuinc", "-nogpulib", "-isystem", str(INCLUDE))
    implied = ("-include", RUNTIME_HEADER)
    math = (f"-D{device_library.MACRO}",) if library else ()
    flags = (*header_flags, *implied, *math, *arguments)
    return Toolchain(name, compiler, linker, True, flags, library=library)
