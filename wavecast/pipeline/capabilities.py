"""What this machine can do: programs and packages found, and the inputs they make possible."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from wavecast.compile import cuda
from wavecast.compile.processor import VARIABLE, processor
from wavecast.emulate.matrix.detection import detect
from wavecast.errors import MissingTool
from wavecast.extras import install_hint
from wavecast.isa.targets import TARGETS

NVIDIA_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_103")


@dataclass(frozen=True, slots=True)
class Tool:
    """A program or package. `version` is "" when it was not found."""

    name: str
    version: str
    purpose: str
    install: str

    @property
    def found(self) -> bool:
        return bool(self.version)

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "found": self.found}


@dataclass(frozen=True, slots=True)
class Input:
    """A kind of input, the targets it works for here, and what the others need."""

    name: str
    targets: tuple[str, ...]
    missing: str

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class HostFeature:
    """Something processors may have, by LLVM's name, what it is for, and whether the emulator's
    code uses it: it is there, is not switched off, and gives the right bits."""

    name: str
    purpose: str
    used: bool


@dataclass(frozen=True, slots=True)
class HostSupport:
    """The state of this machine. `processor` is what native code of the emulator is made for."""

    tools: tuple[Tool, ...]
    inputs: tuple[Input, ...]
    processor: str
    features: tuple[HostFeature, ...]


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _program(*names: str) -> str:
    return next((path for name in names if (path := shutil.which(name))), "")


def _hipcc() -> str:
    return _program("hipcc", "/opt/rocm/bin/hipcc")


def _nvcc() -> str:
    try:
        return cuda.version(cuda.find())
    except MissingTool:
        return ""


def _triton_nvidia_tools() -> str:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return ""
    folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
    return f"in triton {_package('triton')}" if (folder / "nvdisasm").is_file() else ""


_TOOLS: tuple[tuple[str, Callable[[], str], str, str], ...] = (
    ("triton", lambda: _package("triton"), "Triton kernels", "pip install 'triton>=3.6,<3.10'"),
    ("torch", lambda: _package("torch"), "scripts that use it", install_hint("torch")),
    ("ziglang", lambda: _package("ziglang"), "HIP without ROCm", install_hint("hip")),
    ("hipcc", _hipcc, "HIP with ROCm", "optional; part of ROCm"),
    ("nvcc", _nvcc, "CUDA for NVIDIA GPUs", install_hint("cuda")),
    ("nvdisasm, ptxas", _triton_nvidia_tools, "NVIDIA code", "part of Triton's wheel"),
)  # fmt: skip


def examine() -> HostSupport:
    """Look for every tool and derive what works."""
    tools = tuple(Tool(name, probe(), purpose, install) for name, probe, purpose, install in _TOOLS)
    availability = {tool.name: tool.found for tool in tools}
    amd = TARGETS
    triton, torch = availability["triton"], availability["torch"]
    hip = availability["ziglang"] or availability["hipcc"]
    nvidia = availability["nvdisasm, ptxas"]
    nvcc = nvidia and availability["nvcc"]
    inputs = (
        Input(
            "Python script with Triton kernels",
            (*amd, *(NVIDIA_TARGETS if nvidia else ())) if triton and torch else (),
            "" if triton and torch else "triton and torch",
        ),
        Input("HIP source", amd if hip else (), "" if hip else "ziglang or hipcc"),
        Input(
            "CUDA source",
            (*(amd if availability["ziglang"] else ()), *(NVIDIA_TARGETS if nvcc else ())),
            "" if availability["ziglang"] and nvcc else "ziglang for AMD, nvcc for NVIDIA",
        ),
        Input("assembly text", amd, ""),
        Input("AMD code object", amd, ""),
        Input("PTX, cubin", NVIDIA_TARGETS if nvidia else (), "" if nvidia else "Triton's wheel"),
    )
    cpu = processor()
    limit = f", limited by {VARIABLE}" if os.environ.get(VARIABLE) else ""
    text = f"{cpu.cpu}, vectors of {cpu.strip_lanes} lanes{limit}"
    return HostSupport(tools, inputs, text, _features())


def _features() -> tuple[HostFeature, ...]:
    """What of the processor makes matrix instructions faster, and whether it is used."""
    host = detect()
    return (
        HostFeature("f16c", "conversion of f16", host.half_conversion),
        HostFeature("avx512bf16", "products of bf16 and narrower floats in pairs", host.bf16_dots),
        HostFeature("avx512vnni", "products of four 8-bit integers at a time", host.byte_dots),
        HostFeature("avx512vbmi", "conversion of 8-bit floats by tables", host.byte_tables),
    )
