"""What a launch does on a device: the value between reading a launch and pricing it.

A profile is made from code (`static.profile_of_code`) or from an executed sample
(`wavecast.sampling.executed.profile_of_sample`). `predict.predict` gives the time of either.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Final

from wavecast.compile.codeobject import CodeObject
from wavecast.isa.program import KernelDescriptor, Program
from wavecast.perfmodel.notes import Note, text
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.streams import Streams

UNEVEN = 0.1
"""Variation between workgroups from which the interval is wider."""


class ProfileSource(Enum):
    """What a profile was made from; the value is the fidelity of its predictions."""

    CODE = "static"
    SAMPLE = "executed"


@dataclass(frozen=True, slots=True)
class LevelTraffic:
    """Bytes a whole launch moves: from the L2, the memory-side cache (`mall`) and memory (`hbm`).
    `written` is the part of `mall` that dies write, `updated` the part of `written` in lines that
    the launch had read before. `atomics` is how many atomics go to the address with the most of
    them, which takes them one after the other (`model.atomics`)."""

    l2: float
    mall: float
    hbm: float
    written: float = 0.0
    updated: float = 0.0
    atomics: float = 0.0


@dataclass(frozen=True, slots=True)
class SampleCoverage:
    """How much of a launch a sample shows.

    `executed` of the `first_round` workgroups that start at once on a compute unit were executed.
    `variation` is the standard deviation over the mean of the instructions that workgroups
    execute.
    """

    executed: int
    first_round: int
    variation: float

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the sample does not show well."""
        return (
            *((Note.PARTIAL_UNIT,) if self.executed < self.first_round else ()),
            *((Note.UNEVEN_WORKGROUPS,) if self.variation > UNEVEN else ()),
        )

    @property
    def widening(self) -> float:
        """The factor on the width of the prediction's interval."""
        partial = 0.25 if Note.PARTIAL_UNIT in self.notes else 0.0
        uneven = min(1.0, self.variation) if Note.UNEVEN_WORKGROUPS in self.notes else 0.0
        return 1.0 + partial + uneven

    def texts(self) -> tuple[str, ...]:
        """The notes in words."""
        return tuple(text(note, asdict(self)) for note in self.notes)


@dataclass(frozen=True, slots=True, eq=False)
class LaunchProfile:
    """A launch of `program` as the simulator takes it, on a device of `target`.

    `placement` is where its workgroups run. `streams` are some workgroups that stand for all: how
    often their waves execute each instruction, and the access stream of each wave with the bytes
    per cache level. `traffic` is what the whole launch moves, None where only the streams count.
    `dtype` is the dtype of the matrix products, for the power limit, "" without any. `work` is the
    number of instructions of a usual workgroup over those of the workgroups in `streams`, `longest`
    that of the longest workgroup over a usual one, where all run at once and the launch ends with
    it. `notes`
    are what the profile assumes or leaves out; `coverage` is None for a profile from code. `origin`
    is where the code is from (`origin_of`), "" if that is not known.
    `compiler` is what made HIP code ("" for other code), `compiler_note` how that differs from what
    users of the target have, "" if it does not (`compile.rocm.difference`).
    """

    program: Program
    target: str
    source: ProfileSource
    placement: LaunchPlacement
    streams: Streams
    traffic: LevelTraffic | None
    dtype: str
    notes: tuple[Note, ...] = ()
    work: float = 1.0
    longest: float = 1.0
    coverage: SampleCoverage | None = None
    origin: str = ""
    compiler: str = ""
    compiler_note: str = ""


def longest_of(placement: LaunchPlacement, longest: float) -> float:
    """`longest` where all workgroups of a launch run at once, else 1: units that take many, one
    after the other, average out."""
    return longest if placement.most_per_unit <= placement.resident else 1.0


def origin_of(code: CodeObject, descriptor: KernelDescriptor) -> str:
    """Where code is from, for the error of its prediction: machine code whose metadata say that
    clang compiled a kernel language is as that of a HIP file."""
    compiled = code.is_amd and descriptor.language == _LANGUAGE_OF_CLANG
    return "hip" if code.origin in ("assembly", "elf") and compiled else code.origin


_LANGUAGE_OF_CLANG: Final = "OpenCL C"
"""The `.language` that clang gives kernels of HIP (LLVM AMDGPUHSAMetadataStreamer.cpp)."""

__all__ = [
    "UNEVEN",
    "LaunchProfile",
    "LevelTraffic",
    "ProfileSource",
    "SampleCoverage",
    "longest_of",
    "origin_of",
]
