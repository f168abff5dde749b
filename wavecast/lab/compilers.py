"""One kernel's LLVM IR compiled by every code generator of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import Launch
from wavecast.errors import CompileError, WavecastError
from wavecast.json_objects import JsonObject, doc
from wavecast.lab.bisect import Bisection, bisect_passes, bisectable
from wavecast.lab.codegen import CodeGenerator, installed_generators
from wavecast.lab.figures import CodeFigures, figures_of

PROGRAM = "(the program's code)"
"""The name of the code that the launch has."""


class CompilerRow(JsonObject):
    """What one code generator makes of a kernel's LLVM IR."""

    name: str
    command: str
    figures: CodeFigures | None = None
    refused: Annotated[str, doc("why there are no figures")] = ""


@dataclass(frozen=True, slots=True)
class CompilerComparison:
    """The code generators for one kernel on a device, the program's code first."""

    kernel: str
    device: str
    target: str
    rows: tuple[CompilerRow, ...]
    bisections: tuple[Bisection, ...] = ()
    """Triton's core LLVM and each llc, by the figure asked for."""


def compared_compilers(
    launch: Launch, device: Device, *, figure: str = "", others: Sequence[CodeGenerator] = ()
) -> CompilerComparison:
    """Compile a launch's LLVM IR with every code generator of this machine, and `others`; with
    `figure`, find the passes that make it differ. Raises CompileError for a kernel without LLVM IR,
    UsageError for an unknown figure, WavecastError where its own code cannot be read."""
    text = launch.code.stages.get("llir")
    if not isinstance(text, str):
        raise CompileError(f"{launch.code.kernel}: it has no LLVM IR")
    triton_row = CompilerRow(PROGRAM, launch.code.compiler, figures_of(launch, device))
    code = launch.code
    rows = (triton_row, *_rows(launch, device, text, others))
    bisections = tuple(_bisections(launch, device, figure, others)) if figure else ()
    return CompilerComparison(code.kernel, device.id, code.target, rows, bisections)


def _bisections(
    launch: Launch, device: Device, figure: str, generators: Sequence[CodeGenerator]
) -> Iterator[Bisection]:
    first, *others = bisectable(device, generators)
    for other in others:
        with contextlib.suppress(CompileError):  # an older llc refuses the IR, as its row says
            yield bisect_passes(launch, device, (first, other), figure)


def _rows(
    launch: Launch, device: Device, text: str, others: Sequence[CodeGenerator]
) -> Iterator[CompilerRow]:
    for compiler in (*installed_generators(device), *others):
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
