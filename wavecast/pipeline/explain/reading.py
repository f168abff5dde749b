"""The machine code of a launch, parsed and analysed for a device."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wavecast import analyze
from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile import nvidia
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.isa.program import Kernel, Program


@dataclass(frozen=True, slots=True, eq=False)
class ReadLaunch:
    """A launch whose code is parsed: of AMD code a kernel with its descriptor, of NVIDIA code a
    program."""

    launch: Launch
    kernel: Kernel | Program
    analysis: CodeAnalysis

    @property
    def program(self) -> Program:
        """The instructions of the kernel."""
        return self.kernel if isinstance(self.kernel, Program) else self.kernel.program


def read_launch(launch: Launch, device: Device) -> ReadLaunch:
    """Parse and analyse the code of a launch for a device. Raises WavecastError where the code
    cannot be read."""
    code = launch.code
    if code.is_amd:
        kernel = parse_kernel(code)
        analysis = analyze.analyze(code, device, kernel.program, kernel.descriptor, launch)
        return ReadLaunch(launch, kernel, analysis)
    launch = replace(launch, code=nvidia.with_sass(code))
    program = analyze.sass_program(launch.code)
    return ReadLaunch(launch, program, analyze.analyze_nvidia(launch.code, device, launch, program))


__all__ = ["ReadLaunch", "read_launch"]
