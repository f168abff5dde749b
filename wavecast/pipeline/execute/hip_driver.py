"""`wavecast hipcc`: command lines of hipcc, compiled and linked by `compile/hip_program`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wavecast import arch as devices
from wavecast import files
from wavecast.compile import hip_program
from wavecast.errors import InputError, UsageError
from wavecast.runtimes.hip_host.library import runtime_folder

DEFAULT_TARGET: Final = "gfx942"
TARGET: Final = "WAVECAST_OFFLOAD_ARCH"
"""The environment variable with the target where the command line has none."""
_HIP: Final = (".hip", ".cu", ".cpp", ".cc", ".cxx", ".c++", ".C")
"""Endings of sources that hipcc compiles as HIP."""
_C: Final = (".c",)
_OBJECTS: Final = (".o", ".a", ".so")
_TARGETS: Final = ("--offload-arch=", "--amdgpu-target=")
_WITH_VALUE: Final = (
    "-I", "-D", "-U", "-include", "-isystem", "-MF", "-MT", "-MQ", "-std", "-Xclang",
)  # fmt: skip
"""Options of compilers whose value may be the next argument."""
_LINKED: Final = ("-l", "-L", "-Wl,", "-rpath", "-static-lib", "-fopenmp", "-shared")
_DROPPED: Final = (
    "-fgpu-default-stream", "-fno-gpu-rdc", "-MD", "-MMD", "-MP", "-MF", "-MT", "-MQ", "-pipe",
    "--hip-link", "--rocm-path", "--hip-path", "-ccbin", "-parallel-jobs",
)  # fmt: skip
"""Options without a meaning here: where ROCm is, and the files of dependencies for make."""
_DEVICE_ONLY: Final = ("--genco", "--cuda-device-only", "--offload-device-only")
_BUNDLED: Final = {"--gpu-bundle-output": True, "--no-gpu-bundle-output": False}
_REFUSED: Final = {"-fgpu-rdc": "device code in several objects cannot be linked: give all sources"}


@dataclass
class _CommandLine:
    """What a command line asks for."""

    sources: list[Path] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    target: str = ""
    output: Path | None = None
    compile_only: bool = False
    device_only: bool = False
    static_library: bool = False
    bundled: bool = True
    """Whether code objects are written as offload bundles, which modules load as well."""
    language: str = ""


def drive(arguments: Sequence[str]) -> int:
    """Do what hipcc does for a command line; the exit code.

    Raises UsageError for options without an equivalent, CompileError, MissingTool, InputError.
    """
    if "-E" in arguments:
        return hip_program.preprocess(arguments)
    command_line = _parse(list(arguments))
    target = devices.load(command_line.target or os.environ.get(TARGET) or DEFAULT_TARGET).target
    if not command_line.sources and not command_line.objects:
        raise UsageError("no input file", hint="give a source or an object file")
    for source in command_line.sources:
        if not source.is_file():
            raise InputError(f"no such file: {source}")
    if command_line.device_only:
        if len(command_line.sources) != 1 or command_line.objects:
            raise UsageError("a code object is compiled from one source")
        _write_code_object(command_line.sources[0], command_line, target)
        return 0
    if command_line.compile_only:
        if command_line.output is not None and len(command_line.sources) > 1:
            raise UsageError("-o with -c takes one source")
        for source in command_line.sources:
            _compile(source, command_line, target, command_line.output or Path(source.stem + ".o"))
        return 0
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        objects: list[str | Path] = []
        for number, source in enumerate(command_line.sources):
            objects.append(_compile(source, command_line, target, Path(folder) / f"{number}.o"))
        output = command_line.output or Path("a.out")
        if command_line.static_library:
            files.write_atomic(output, hip_program.archive([*objects, *command_line.objects]))
            return 0
        flags = [*command_line.objects, *command_line.linked]
        hip_program.link(objects, output, runtime_folder(), flags, target)
    return 0


def _write_code_object(source: Path, command_line: _CommandLine, target: str) -> None:
    """Compile the kernels of a source, with their lines, to what `hipModuleLoad` takes."""
    binary = hip_program.compile_device(source, target, command_line.flags)
    usual = f"{source.stem}-hip-amdgcn-amd-amdhsa-{target}.o"
    if command_line.bundled:
        binary = hip_program.make_bundle(binary, target)
        usual = f"{source.stem}-hip-amdgcn-amd-amdhsa.hipfb"
    files.write_atomic(command_line.output or Path(usual), binary)


def _compile(source: Path, command_line: _CommandLine, target: str, output: Path) -> Path:
    if source.suffix in _C and not command_line.language:
        hip_program.compile_c(source, output, command_line.flags)
    else:
        hip_program.compile_object(source, target, output, command_line.flags, suffix="")
    return output


def _parse(arguments: list[str]) -> _CommandLine:
    command_line = _CommandLine()
    words = iter(arguments)
    for word in words:
        if word in _REFUSED:
            raise UsageError(f"{word}: {_REFUSED[word]}")
        if word in _DEVICE_ONLY:
            command_line.device_only = True
        elif word in _BUNDLED:
            command_line.bundled = _BUNDLED[word]
        elif word == "--emit-static-lib":
            command_line.static_library = True
        elif word == "-c":
            command_line.compile_only = True
        elif word == "-o":
            command_line.output = Path(next(words, ""))
        elif word == "-x":
            command_line.language = next(words, "")
        elif word.startswith(_TARGETS):
            command_line.target = word.partition("=")[2].split(":")[0]
        elif word.startswith(_DROPPED):
            if word in _WITH_VALUE:
                next(words, "")
        elif word in ("-L", "-l"):
            command_line.linked += [word + next(words, "")]
        elif word.startswith(_LINKED) or word == "--shared":
            command_line.linked.append("-shared" if word == "--shared" else word)
        elif word in _WITH_VALUE:
            command_line.flags += [word, next(words, "")]
        elif word.startswith("-"):
            command_line.flags.append(word)
        elif word.endswith(_OBJECTS) or ".so." in word:
            command_line.objects.append(word)
        elif word.endswith((*_HIP, *_C)):
            command_line.sources.append(Path(word))
        else:
            raise UsageError(f"{word} is neither a source nor an object file")
    return command_line


__all__ = ["drive"]
