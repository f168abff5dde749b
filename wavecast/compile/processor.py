"""The processor native code is made for: the one this runs on, or a plainer one that is asked for.

`WAVECAST_HOST_CPU` names an x86-64 level (`x86-64`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4`) that
native code is to be limited to; without it every feature of the machine is used.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cache
from typing import Final

from llvmlite import binding

from wavecast.errors import UsageError

VARIABLE: Final = "WAVECAST_HOST_CPU"
_AVX2: Final = frozenset({"avx2", "fma", "f16c", "bmi", "bmi2"})
_AVX512: Final = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})
_LEVELS: Final = {
    "x86-64": frozenset[str](),
    "x86-64-v2": frozenset[str](),
    "x86-64-v3": _AVX2,
    "x86-64-v4": _AVX2 | _AVX512,
}
"""Levels of the x86-64 psABI and those of their features that matter here."""


_emitters = threading.local()
"""Target machines of a thread, as attributes."""


@dataclass(frozen=True, slots=True)
class Processor:
    """What LLVM is told: triple, CPU name and feature list; `flags` are the features it has."""

    triple: str
    cpu: str
    features: str
    flags: frozenset[str]

    @property
    def architecture(self) -> str:
        """LLVM's name of the instruction set: `x86_64`, `aarch64`."""
        return self.triple.split("-", 1)[0]

    @property
    def strip_lanes(self) -> int:
        """32-bit lanes of a vector: 16 with AVX-512, 8 with AVX2, else 4 (SSE, NEON)."""
        if {"avx512f", "avx512bw", "avx512vl"} <= self.flags:
            return 16
        return 8 if "avx2" in self.flags else 4

    def machine(self, level: int) -> binding.TargetMachine:
        """A target machine at an optimisation level; an engine owns the one it was made with."""
        target = binding.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, codemodel="jitdefault"
        )

    def emitter(self, level: int) -> binding.TargetMachine:
        """A target machine that makes object code, one per thread: the first use of each builds
        its tables, which takes as long as a short function."""
        machines: dict[str, binding.TargetMachine] = vars(_emitters)
        key = f"{self.identity}{level}"
        if key not in machines:
            machines[key] = self.machine(level)
        return machines[key]

    @property
    def identity(self) -> tuple[str, str, str]:
        """What machine code depends on."""
        return self.triple, self.cpu, self.features


@cache
def processor() -> Processor:
    """The processor of this process. Raises UsageError for a level that is not known."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple = binding.get_default_triple()
    level = os.environ.get(VARIABLE, "")
    if level:
        if level not in _LEVELS or not triple.startswith("x86_64"):
            raise UsageError(
                f"{VARIABLE}={level} is not a level of this processor",
                hint="known: " + ", ".join(_LEVELS),
            )
        return Processor(triple, level, "", _LEVELS[level])
    features = binding.get_host_cpu_features()
    flags = frozenset(name for name, present in features.items() if present)
    return Processor(triple, binding.get_host_cpu_name(), features.flatten(), flags)


def load_object(code: bytes) -> binding.ExecutionEngine:
    """An engine with one object file in it; every symbol it refers to is known by then."""
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), processor().machine(1))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


__all__ = ["VARIABLE", "Processor", "load_object", "processor"]
