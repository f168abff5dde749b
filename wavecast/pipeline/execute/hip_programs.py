"""HIP programs built and run: sources of host and device code, and executables."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wavecast import arch as devices
from wavecast import files
from wavecast.compile import hip_program
from wavecast.compile.kinds import FileKind, kind_of
from wavecast.errors import UsageError
from wavecast.isa import elf
from wavecast.runtimes.hip_host.library import runtime_folder
from wavecast.runtimes.hip_host.running import ProgramExit, ProgramRun

if TYPE_CHECKING:
    from wavecast.pipeline.execute.options import ExecutionOptions

DEFAULT_TARGET: Final = "gfx942"
_MAIN: Final = re.compile(rb"\bmain\s*\(")
_KERNEL: Final = re.compile(rb"__(?:global|device)__|<<<")
_MACHINES: Final = (elf.MACHINE_X86_64, elf.MACHINE_AARCH64)


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a HIP program is built and run: `gpus` devices, flags of the `compiler`, and whether
    launches are predicted."""

    gpus: int = 1
    compiler: tuple[str, ...] = ()
    predict: bool = False


def is_program(path: Path) -> bool:
    """Whether a file is a program: HIP source with a `main`, or an executable of this kind of
    machine. Raises InputError for a file that cannot be read."""
    data = files.read(path)
    if data[:4] == b"\x7fELF":
        return elf.read(data).machine in _MACHINES and b"/ld" in data[:4096]
    return kind_of(data, path) in (FileKind.HIP, FileKind.CUDA) and _MAIN.search(data) is not None


def run_program(
    path: Path, arguments: Sequence[str], options: ExecutionOptions, program: ProgramOptions
) -> ProgramExit:
    """Build a program where it is source, and run it with its launches on the emulator.

    Raises CompileError, MissingTool, InputError, and UsageError for a GPU that is not AMD's.
    """
    from wavecast.emulate.checked_emulator import checked_emulator

    device = devices.load(options.arch or DEFAULT_TARGET)
    if device.vendor != "amd":
        raise UsageError(f"only AMD GPUs can be executed, not {device.name}")
    checked = checked_emulator(
        options.check,
        device,
        trace=options.trace,
        threads=options.threads,
        max_instructions=options.max_instructions,
    )
    checked.emulator.launched = options.launched
    run = ProgramRun(device, checked.emulator, program.gpus, checked.checks, program.predict)
    if path.read_bytes()[:4] == b"\x7fELF":
        if program.compiler:
            raise UsageError(f"compiler options are for HIP and CUDA source; {path} is compiled")
        return run.run([str(path.absolute()), *arguments])
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        executable = Path(folder) / path.stem
        build(path, device.target, executable, program.compiler, checked=options.check is not None)
        return run.run([str(executable), *arguments])


def build(
    source: Path, target: str, output: Path, flags: Sequence[str] = (), *, checked: bool = False
) -> None:
    """Compile and link a program of one source: C where its name says so and it has no kernel, else
    C++. Raises CompileError, MissingTool."""
    library = runtime_folder()
    compiled = output.with_suffix(".o")
    if source.suffix == ".c" and _KERNEL.search(files.read(source)) is None:
        hip_program.compile_c(source, compiled, flags, checked=checked)
    else:
        hip_program.compile_object(source, target, compiled, flags, checked=checked)
    linked = [flag for flag in flags if flag.startswith(("-l", "-L", "-Wl,"))]
    hip_program.link([compiled], output, library, linked, target)


__all__ = ["ProgramExit", "ProgramOptions", "build", "is_program", "run_program"]
