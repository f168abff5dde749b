"""Where the passes of a kernel are from: Triton, a HIP file, or LLVM IR."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from wavecast import files
from wavecast.arch import Device
from wavecast.compile import digest, hip
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.kinds import FileKind, kind_of
from wavecast.errors import CompileError, InputError, UsageError
from wavecast.lab.codegen import Llc, find_llc


class PassSource(Protocol):
    """A kernel whose passes can be printed."""

    @property
    def launch(self) -> Launch: ...

    @property
    def device(self) -> Device: ...

    def mlir(self) -> str:
        """What MLIR prints between its passes, "" where there is none. Raises CompileError."""
        ...

    def machine(self, options: Sequence[str]) -> tuple[str, str]:
        """What LLVM prints with these options of llc, and the assembly. Raises CompileError."""
        ...

    def launch_of(self, assembly: str) -> Launch:
        """The launch with other assembly. Raises CompileError where it does not assemble."""
        ...


@dataclass(frozen=True, slots=True)
class TritonPasses:
    """A captured Triton kernel. Raises CompileError for code that Triton did not compile."""

    launch: Launch
    device: Device

    def __post_init__(self) -> None:
        if self.launch.code.origin != "triton":
            raise CompileError(
                f"{self.launch.code.kernel}: it is code that the script loads, and only kernels of "
                "Triton and HIP files are compiled again (lab passes FILE.hip)"
            )

    def mlir(self) -> str:
        from wavecast.runtimes.triton import compat
        from wavecast.runtimes.triton.dumps import mlir_dump

        compat.warm_up()
        return mlir_dump(self.launch.code, self.device)

    def machine(self, options: Sequence[str]) -> tuple[str, str]:
        from wavecast.runtimes.triton.dumps import machine_dump

        return machine_dump(self.launch.code, self.device, options)

    def launch_of(self, assembly: str) -> Launch:
        from wavecast.runtimes.triton.generate import assemble

        return replace(self.launch, code=assemble(self.launch.code, assembly, self.device))


@dataclass(frozen=True, slots=True)
class HipPasses:
    """A kernel of a HIP file, in a launch that nobody stated, and the options of its compiler."""

    launch: Launch
    device: Device
    path: Path
    flags: tuple[str, ...] = ()

    def mlir(self) -> str:
        return ""

    def machine(self, options: Sequence[str]) -> tuple[str, str]:
        return hip.compile_with_log(self.path, self.device.target, self.flags, options)

    def launch_of(self, assembly: str) -> Launch:
        return _with_text(self.launch, assembly)


@dataclass(frozen=True, slots=True)
class IrPasses:
    """A kernel of LLVM IR that llc compiles, in a launch that nobody stated."""

    launch: Launch
    device: Device
    text: str
    llc: Llc

    def mlir(self) -> str:
        return ""

    def machine(self, options: Sequence[str]) -> tuple[str, str]:
        llc_options = (*self.llc.options, *options)
        compilation = replace(self.llc, options=llc_options).compile(self.text)
        return compilation.log, compilation.text

    def launch_of(self, assembly: str) -> Launch:
        return _with_text(self.launch, assembly)


def _with_text(launch: Launch, assembly: str) -> Launch:
    """The launch with other assembly that is not assembled."""
    stages = {**launch.code.stages, "amdgcn": assembly}
    stages.pop("hsaco", None)
    name = digest.digest(launch.code.digest, assembly)
    return replace(launch, code=replace(launch.code, stages=stages, digest=name))


def sources_of(path: Path, device: Device, flags: tuple[str, ...] = ()) -> list[PassSource]:
    """The kernels of a HIP file, or of LLVM IR in a file NAME.ll, which the newest llc in PATH
    compiles; `flags` are options of the compiler. Raises CompileError, InputError,
    MissingTool, UsageError for machine code, which passes have made."""
    target = device.target
    if path.suffix != ".ll":
        _refuse_machine_code(path)
        codes = hip.compile_file(path, target, flags)
        return [HipPasses(_launch_without_grid(code), device, path, flags) for code in codes]
    text = files.read_text(path)
    llc = Llc(find_llc(), target, flags)
    sources: list[PassSource] = []
    for code in load(llc.assembly(text), target, path):
        code_object = replace(code, compiler=llc.name)
        sources.append(IrPasses(_launch_without_grid(code_object), device, text, llc))
    return sources


def _refuse_machine_code(path: Path) -> None:
    """Raises UsageError for a file that passes have made. The compiler refuses what is not code."""
    with contextlib.suppress(InputError):
        kind = kind_of(files.read(path), path)
        if kind not in (FileKind.HIP, FileKind.CUDA):
            raise UsageError(f"{path.name} is {kind.value}: passes are those of source or LLVM IR")


def _launch_without_grid(code: CodeObject) -> Launch:
    """A launch whose grid and block nobody stated."""
    return Launch(code, (0, 0, 0), (0, 0, 0))


__all__ = ["HipPasses", "IrPasses", "PassSource", "TritonPasses", "sources_of"]
