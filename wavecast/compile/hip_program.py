"""Whole HIP programs: device code, host code with it, and the linked program.

The host code is compiled by the compiler of the device code with the same headers. ROCm's hipcc
compiles both at once.
"""

from __future__ import annotations

import platform
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from wavecast import files
from wavecast.compile import bundle, hip, process, toolchain
from wavecast.compile.kinds import is_cuda
from wavecast.compile.toolchain import Toolchain
from wavecast.errors import CompileError, MissingTool
from wavecast.isa.decode import wave_lanes_of

LIBRARY: Final = "amdhip64"
SONAME: Final = f"lib{LIBRARY}.so.6"
"""The runtime's name that programs are linked to, which is ROCm's."""
_WITHOUT_FILES: Final = frozenset(
    f"-l{name}"
    for name in (
        "hipblas", "rocblas", "hipblaslt", "hipfft", "rocfft", "hiprand", "rocrand", "hipsparse",
        "rocsparse", "hipsolver", "rocsolver", "MIOpen", "hiprtc", LIBRARY, "stdc++", "stdc++fs",
    )
)  # fmt: skip
"""Options for libraries whose functions are in the headers or in the runtime, and for GCC's C++
library, in whose place the linker has its own."""
_BEFORE_EXPORTS: Final = ("hip/hip_runtime.h", "hip/hip_complex.h", "hip/hip_fp16.h")
"""Headers whose functions stay inline in libraries."""
_ANY_TARGET: Final = "gfx942"
"""Host code does not depend on the target."""
_ALIGNED: Final = 4096
"""Bytes; code objects begin at multiples of a page (LLVM, "Clang Offload Bundler")."""
_DEBUG, _KEPT = b".debug_", b".wcbug_"
"""Names of debug sections, and what they are called while programs are linked: with -Os Zig's
linker drops those, and other options would make it build its C++ library again."""

_WITH_LINES: Final = (
    "-O1", "-gline-tables-only", "-mllvm", "-simplifycfg-hoist-common=false",
    "-mllvm", "-simplifycfg-sink-common=false", "-mllvm", "-enable-tail-merge=false",
)  # fmt: skip
"""Options of host code whose calls keep their source lines: none is made of several."""


def compile_object(
    source: Path,
    target: str,
    output: Path,
    flags: Sequence[str] = (),
    *,
    checked: bool = False,
    suffix: str | None = None,
) -> None:
    """Compile a source of host and device code to an object file. `flags` go to both compilations;
    `checked` is as of `hip.compile_file`. A source that uses names of neither HIP nor CUDA is CUDA
    if `suffix`, by default its own, says so. Raises what `hip.compile_file` raises."""
    text = files.read(source).decode("utf-8", "replace")
    cuda = is_cuda(text, source.suffix if suffix is None else suffix)
    tools = toolchain.find(target, cuda=cuda)
    if not tools.own_headers:
        _by_hipcc(tools, source, target, output, flags)
        return
    try:
        codes = hip.compile_file(source, target, flags, checked=checked, program=True, cuda=cuda)
    except hip.NoKernel:
        codes = []
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        options: list[str | Path] = []
        if codes:
            binary = codes[0].stages.get("hsaco")
            if not isinstance(binary, bytes):
                raise MissingTool("linking device code needs ld.lld", hint="install lld")
            fat = Path(folder) / "device.hipfb"
            fat.write_bytes(make_bundle(binary, target))
            options = ["-Xclang", "-fcuda-include-gpubinary", "-Xclang", fat]
        tool_arguments = toolchain.of_programs(tools).arguments
        host = ("-x", "hip", "--cuda-host-only", f"--offload-arch={target}", "-O3", "-std=c++17")
        wave64 = wave_lanes_of(target) == 64 or "-mwavefrontsize64" in flags
        lanes = ("-DWAVECAST_HOST_WAVE64",) if wave64 else ()
        if checked:  # reports name the lines that launch and copy
            lanes = (*lanes, *_WITH_LINES)
        command = [
            *tools.compiler, *host, "-fuse-cuid=hash", "-fPIC", *tool_arguments, *lanes,
            *toolchain.replace_rocm_folders(flags), *options,
            "-c", source, "-o", output,
        ]  # fmt: skip
        compilation = process.run(command)
    if compilation.status or not output.is_file():
        raise hip.compile_error(compilation.log, compilation.status, tools)
    if checked:
        output.write_bytes(_rename_sections(output.read_bytes(), _DEBUG, _KEPT))


def compile_device(source: Path, target: str, flags: Sequence[str] = ()) -> bytes:
    """The code object of the kernels of a source, with their lines, which stay known by its content
    (`hip.compiled_program`). Raises what `hip.compile_file` raises, and MissingTool without a
    linker."""
    text = files.read(source).decode("utf-8", "replace")
    cuda = is_cuda(text)
    tools = toolchain.find(target, cuda=cuda)
    if not tools.own_headers:
        return _device_by_hipcc(tools, source, target, flags)
    codes = hip.compile_file(source, target, flags, program=True, cuda=cuda)
    binary = codes[0].stages.get("hsaco")
    if not isinstance(binary, bytes):
        raise MissingTool("linking device code needs ld.lld", hint="install lld")
    return binary


def with_lines(data: bytes) -> bytes:
    """An executable with the line table of checked sources under its usual name."""
    return _rename_sections(data, _KEPT, _DEBUG)


def _rename_sections(data: bytes, before: bytes, after: bytes) -> bytes:
    """A 64-bit ELF file with other names of sections, as long as those before."""
    (headers,) = struct.unpack_from("<Q", data, 40)
    size, _, index = struct.unpack_from("<3H", data, 58)
    first, length = struct.unpack_from("<2Q", data, headers + index * size + 24)
    names = data[first : first + length].replace(before, after)
    return data[:first] + names + data[first + length :]


def preprocess(arguments: Sequence[str]) -> int:
    """Preprocess sources of host code as the compiler's own command line says, with its output on
    this process's; its exit code. Raises MissingTool."""
    tools = toolchain.of_programs(toolchain.find())
    return subprocess.run(
        [*tools.compiler, "--cuda-host-only", *map(str, tools.arguments), *arguments], check=False
    ).returncode


def compile_c(
    source: Path, output: Path, flags: Sequence[str] = (), *, checked: bool = False
) -> None:
    """Compile a C source to an object file; `checked` as of `compile_object`. Raises CompileError,
    MissingTool."""
    lines = _WITH_LINES if checked else ()
    base_flags = ("-O2", "-fPIC", f"-I{toolchain.INCLUDE}", *lines)
    compilation = process.run([*_c_compiler(), *base_flags, *flags, "-c", source, "-o", output])
    if compilation.status or not output.is_file():
        raise hip.compile_error(compilation.log, compilation.status, toolchain.find())
    if checked:
        output.write_bytes(_rename_sections(output.read_bytes(), _DEBUG, _KEPT))


def link(
    objects: Sequence[str | Path],
    output: Path,
    library: Path,
    flags: Sequence[str] = (),
    target: str = "",
) -> None:
    """Link object files with the runtime in the folder `library`, which the program finds there
    when it starts. With `-shared` it is the process that has the runtime. Raises CompileError with
    what the linker prints."""
    tools = toolchain.find(target)
    shared = "-shared" in flags
    run_path = () if shared else (f"-Wl,-rpath,{library}",)
    linker_flags = [flag for flag in flags if not tools.own_headers or flag not in _WITHOUT_FILES]
    log, status = "", 0
    linkers = _linkers(tools)
    for number, (linker, last) in enumerate(linkers, 1):
        # A library may leave symbols to its process, but those of the C++ library are not there.
        complete = ("-Wl,-z,defs",) if shared and number < len(linkers) else ()
        command = [
            *linker, *objects, *linker_flags, f"-L{library}", f"-l{LIBRARY}",
            *run_path, "-lm", "-lpthread", *complete, *last, "-o", output,
        ]  # fmt: skip
        link_result = process.run(command)
        if not link_result.status and output.is_file():
            return
        log, status = link_result.log, link_result.status
    lines = [line for line in log.strip().splitlines() if "error" in line]
    what = lines[0] if lines else f"linking failed with status {status}"
    raise CompileError(what, log=log)


def archive(objects: Sequence[str | Path]) -> bytes:
    """A static library of object files. Raises MissingTool without an archiver, CompileError with
    what it says."""
    tools = toolchain.find()
    if tools.name == "ziglang":
        archiver: tuple[str, ...] = (tools.compiler[0], "ar")
    else:
        program = process.find_program(("llvm-ar", "ar"))
        if program is None:
            raise MissingTool("no archiver", hint="install llvm-ar or ar")
        archiver = (program,)
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        output = Path(folder) / "library.a"
        compilation = process.run([*archiver, "rcs", output, *objects])
        if compilation.status or not output.is_file():
            raise CompileError("the static library cannot be written", log=compilation.log)
        return output.read_bytes()


def shared_library(sources: Sequence[Path], output: Path, versions: Path, *, include: Path) -> None:
    """Compile C sources with HIP's host headers, and those of the folder `include`, to a shared
    library named `SONAME`, whose symbols have the `versions` of a version script. Raises
    MissingTool without a compiler, CompileError."""
    flags = (
        "-std=gnu11", "-Os", "-Wall", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread",
        f"-I{toolchain.INCLUDE}", f"-I{include}", f"-Wl,-soname,{SONAME}",
        f"-Wl,--version-script={versions}",
    )  # fmt: skip
    compilation = process.run([*_c_compiler(), *flags, *sources, "-o", output])
    if compilation.status or not output.is_file():
        raise CompileError("wavecast's HIP runtime does not compile", log=compilation.log)


def alias_library(library: Path, versions: Iterable[str], output: Path) -> None:
    """A shared library without symbols that is called as its file and depends on `library`; its
    `versions` are those of the other's symbols. Raises MissingTool, CompileError."""
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source, script = Path(folder) / "empty.c", Path(folder) / "versions.map"
        source.write_text("")
        script.write_text("".join(f"{version} {{\n}};\n" for version in versions))
        flags = (
            "-Os", "-shared", f"-Wl,-soname,{output.name}", f"-Wl,--version-script={script}",
            "-Wl,--no-as-needed",
        )  # fmt: skip
        compilation = process.run([*_c_compiler(), *flags, source, library, "-o", output])
    if compilation.status or not output.is_file():
        raise CompileError(f"{output.name} cannot be linked", log=compilation.log)


def plain_library(source: Path, output: Path, libraries: Sequence[Path]) -> None:
    """A shared library of a C source that depends on `libraries`. Raises MissingTool,
    CompileError."""
    flags = ("-Os", "-fPIC", "-shared", f"-Wl,-soname,{output.name}", "-w")
    compilation = process.run([*_c_compiler(), *flags, source, *libraries, "-o", output])
    if compilation.status or not output.is_file():
        raise CompileError(f"{output.name} does not compile", log=compilation.log)


def exported_library(headers: Sequence[str], output: Path, libraries: Sequence[Path]) -> None:
    """A shared library called as its file, with the functions that `headers` of libraries have
    inline; it depends on `libraries`. Raises MissingTool without a compiler, CompileError."""
    tools = toolchain.of_programs(toolchain.find())
    lines = (
        *(f"#include <{name}>" for name in (*_BEFORE_EXPORTS, "wavecast/library_call.h")),
        "#undef WC_LIBRARY_FN",
        '#define WC_LIBRARY_FN extern "C" __attribute__((visibility("default")))',
        "#define HIPBLAS_V2",
        *(f"#include <{name}>" for name in headers),
        "",
    )
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        source, object_file = Path(folder) / "library.hip", Path(folder) / "library.o"
        source.write_text("\n".join(lines))
        flags = (
            "-x", "hip", "--cuda-host-only", f"--offload-arch={_ANY_TARGET}", "-Os", "-std=c++17",
            "-fPIC", "-fvisibility=hidden",
        )  # fmt: skip
        compilation = process.run(
            [*tools.compiler, *flags, *tools.arguments, "-c", source, "-o", object_file]
        )
        if not compilation.status:
            compilation = process.run(
                [
                    *_c_compiler(), "-Os", "-shared", f"-Wl,-soname,{output.name}", object_file,
                    *libraries, "-o", output,
                ]
            )  # fmt: skip
    if compilation.status or not output.is_file():
        raise CompileError(f"{output.name} does not compile", log=compilation.log)


def _by_hipcc(
    tools: Toolchain, source: Path, target: str, output: Path, flags: Sequence[str]
) -> None:
    arch = f"--offload-arch={target}"
    compilation = process.run([*tools.compiler, arch, *flags, "-c", source, "-o", output])
    if compilation.status or not output.is_file():
        raise hip.compile_error(compilation.log, compilation.status, tools)


def _device_by_hipcc(tools: Toolchain, source: Path, target: str, flags: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        output = Path(folder) / "kernel.hsaco"
        device = ("--cuda-device-only", "--no-gpu-bundle-output", f"--offload-arch={target}")
        compilation = process.run([*tools.compiler, *device, *flags, source, "-o", output])
        if compilation.status or not output.is_file():
            raise hip.compile_error(compilation.log, compilation.status, tools)
        return output.read_bytes()


def _linkers(tools: Toolchain) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """The commands that link programs of a compiler, each with its last options; the next is tried
    where one fails.

    Zig builds its C++ library for the options of a link: for most of a minute, so that a program
    is linked without it if it can be. -Os is one library for all programs, in 0.6 of the time that
    Zig's default takes.
    """
    if not tools.own_headers:
        return ((tools.compiler, ()),)
    if tools.name != "ziglang":
        return (((tools.compiler[0], "--driver-mode=g++"), ()),)
    target = ("-target", toolchain.zig_target())
    c, cxx = ((tools.compiler[0], language, *target) for language in ("cc", "c++"))
    return ((c, ("-Os",)), (cxx, ("-Os",)))


def _c_compiler() -> tuple[str, ...]:
    tools = toolchain.find()
    if tools.name == "ziglang":
        return (tools.compiler[0], "cc", "-target", toolchain.zig_target())
    if tools.own_headers:
        return tools.compiler
    return (process.find_program(("cc", "gcc", "clang"), variable="CC") or tools.compiler[0],)


def make_bundle(binary: bytes, target: str) -> bytes:
    """A code object as the offload bundle that registration passes to the runtime. Its first entry
    is the host's, which is empty."""
    names = (f"host-{platform.machine()}-unknown-linux-gnu-", f"hipv4-amdgcn-amd-amdhsa--{target}")
    entries = b"".join(
        struct.pack("<QQQ", _ALIGNED, size, len(name)) + name.encode()
        for name, size in zip(names, (0, len(binary)), strict=True)
    )
    head = bundle.MAGIC + struct.pack("<Q", len(names)) + entries
    return head.ljust(_ALIGNED, b"\0") + binary


__all__ = [
    "LIBRARY",
    "SONAME",
    "archive",
    "compile_c",
    "compile_device",
    "compile_object",
    "link",
    "make_bundle",
    "shared_library",
]
