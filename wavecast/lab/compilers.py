"""One kernel's LLVM IR compiled by every code generator of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import Launch
from wavecast.errors import CompileError, WavecastError
from wavecast.lab.codegen import installed
from wavecast.lab.figures import CodeFigures, figures_of

PROGRAM = "(the program's code)"
"""The name of the code that the launch has."""


@dataclass(frozen=True, slots=True)
class CompilerRow:
    """What one code generator makes of the IR; `refused` says why there are no figures."""

    name: str
    command: str
    figures: CodeFigures | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class CompilerComparison:
    """The code generators for one kernel on a device, the program's code first."""

    kernel: str
    device: str
    target: str
    rows: tuple[CompilerRow, ...]


def compared_compilers(launch: Launch, device: Device) -> CompilerComparison:
    """Compile a launch's LLVM IR with every code generator. Raises CompileError for a kernel
    without LLVM IR, WavecastError where its own code cannot be read."""
    text = launch.code.stages.get("llir")
    if not isinstance(text, str):
        raise CompileError(f"{launch.code.kernel}: it has no LLVM IR")
    own = CompilerRow(PROGRAM, launch.code.compiler, figures_of(launch, device))
    code = launch.code
    return CompilerComparison(
        code.kernel, device.id, code.target, (own, *_rows(launch, device, text))
    )


def _rows(launch: Launch, device: Device, text: str) -> Iterator[CompilerRow]:
    for compiler in installed(device):
        try:
            assembly = compiler.assembly(text)
            stages = {**launch.code.stages, "amdgcn": assembly}
            stages.pop("hsaco", None)
            name = digest.digest(launch.code.digest, assembly)
            code = replace(launch.code, stages=stages, digest=name)
            figures = figures_of(replace(launch, code=code), device)
        except WavecastError as error:
            yield CompilerRow(compiler.name, compiler.command, refused=error.message)
        else:
            yield CompilerRow(compiler.name, compiler.command, figures)


__all__ = ["PROGRAM", "CompilerComparison", "CompilerRow", "compared_compilers"]
