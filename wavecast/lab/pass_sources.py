"""Where the passes of a kernel are from: Triton, a HIP file, or LLVM IR."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from wavecast import files
from wavecast.arch import Device
from wavecast.compile import digest, hip
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.kinds import FileKind, kind_of
from wavecast.compile.names import readable
from wavecast.errors import CompileError, InputError, LaunchError, UsageError
from wavecast.lab.codegen import Llc, find_llc
from wavecast.pipeline.explain.code_launches import CodeLaunches
from wavecast.pipeline.plan import Plan


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


def unstated(code: CodeObject) -> Launch:
    """A launch whose grid and block nobody stated."""
    return Launch(code, (0, 0, 0), (0, 0, 0))


def planned(code: CodeObject, plan: Plan, device: Device) -> Launch:
    """The launch of a plan, `unstated` where it states no grid and block or is of another kernel.
    Raises LaunchError for a plan that does not fit the kernel."""
    sized = plan.grid is not None and plan.block is not None
    if not sized or not plan.is_of(code.kernel, readable(code.kernel)):
        return unstated(code)
    launches = CodeLaunches()
    launches.add([code], plan, device)
    for failure in launches.refused:
        raise LaunchError(failure.message, hint=failure.hint)
    return launches.launches[0]


def sources_of(
    path: Path,
    device: Device,
    flags: tuple[str, ...] = (),
    launch_of: Callable[[CodeObject], Launch] = unstated,
) -> list[PassSource]:
    """The kernels of a HIP file, or of LLVM IR in a file NAME.ll, which the newest llc in PATH
    compiles, with their launches; `flags` are options of the compiler. Raises CompileError,
    InputError, MissingTool, UsageError for machine code, which passes have made."""
    target = device.target
    if path.suffix != ".ll":
        _refuse_machine_code(path)
        codes = hip.compile_file(path, target, flags)
        return [HipPasses(launch_of(code), device, path, flags) for code in codes]
    text = files.read_text(path)
    llc = Llc(find_llc(), target, flags)
    sources: list[PassSource] = []
    for code in load(llc.assembly(text), target, path):
        code_object = replace(code, compiler=llc.name)
        sources.append(IrPasses(launch_of(code_object), device, text, llc))
    return sources


def _refuse_machine_code(path: Path) -> None:
    """Raises UsageError for a file that passes have made. The compiler refuses what is not code."""
    with contextlib.suppress(InputError):
        kind = kind_of(files.read(path), path)
        if kind not in (FileKind.HIP, FileKind.CUDA):
            raise UsageError(f"{path.name} is {kind.value}: passes are those of source or LLVM IR")


__all__ = [
    "HipPasses",
    "IrPasses",
    "PassSource",
    "TritonPasses",
    "planned",
    "sources_of",
    "unstated",
]
