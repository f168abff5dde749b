"""One HIP program of the suite with its problem size, as an op that can be predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import ClassVar, Self

from calibration import hip_suite
from wavecast.arch import Device
from wavecast.compile.digest import digest
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import InputError, MissingFact, UsageError
from wavecast.perfmodel import queue
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.distance import PredictionSubject
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.predict import kernel_subject
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.profile import LaunchProfile, ProfileSource
from wavecast.runtimes.module.function import Function
from wavecast.runtimes.module.loading import Module, load
from wavecast.sampling.sample import Sample

FOLDER = "gpu_perf_scripts"
"""Folder of a checkout that holds the programs."""


@dataclass(frozen=True, slots=True)
class HipProgram(Op):
    """A program (`fir`) with a problem size (`1024_taps8`), compiled from `sources`."""

    kind: ClassVar[str] = "hip"
    executes_code: ClassVar[bool] = True
    shape_help: ClassVar[str] = "the problem size a program of the suite prints"
    program: str
    size: str
    sources: str

    @property
    def op_class(self) -> str:
        """The class of whole kernels."""
        return "kernel"

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """`shape` is the problem size; `program` and `sources` are options. Raises UsageError."""
        missing = [name for name in ("program", "sources") if name not in options]
        if missing:
            raise UsageError(f"hip needs {' and '.join(missing)}")
        return cls(options["program"], shape, options["sources"])

    @property
    def subject(self) -> PredictionSubject:
        """A HIP kernel of which a sample is executed, with the work-items of the largest launch."""
        items = _work_items(self.program, self.size)
        return kernel_subject("hip", ProfileSource.SAMPLE, items)

    def work(self) -> Work:
        """Raises MissingFact: what of a program's work is useful is not written down."""
        raise MissingFact(f"the useful work of {self.program} is not written down")

    def predict(self, device: Device) -> Prediction:
        """The time between the program's events. Raises InputError where its source is missing."""
        chip = Chip.of(device)
        steps: list[queue.Step] = []
        bounds: dict[str, float] = {}
        notes: dict[str, None] = {}
        for step in hip_suite.steps(self.program, self.size):
            if not isinstance(step, hip_suite.Kernel):
                steps.append(step)
                continue
            found = self._kernel(step, device)
            for name, seconds in found.bounds.items():
                bounds[name] = bounds.get(name, 0.0) + step.count * seconds
            notes.update(dict.fromkeys(found.notes))
            steps.append(queue.Launches(max(0.0, found.seconds - chip.launch), step.count))
        seconds = queue.elapsed_time(chip, steps)
        busy = sum(s.seconds * s.count for s in steps if isinstance(s, queue.Launches))
        bounds["queue"] = seconds - busy
        found = with_interval(
            Prediction(
                device=device.id,
                seconds=seconds,
                low=seconds,
                high=seconds,
                limiter=max(bounds, key=lambda name: bounds[name]),
                fidelity="executed",
                bounds=bounds,
            ),
            self.subject,
            device,
        )
        return replace(found, notes=tuple(dict.fromkeys((*notes, *found.notes))))

    def profile(self, step: hip_suite.Kernel, device: Device) -> LaunchProfile:
        """The profile of an executed sample of a step's launch."""
        return self._function(step, device).executed(
            step.grid, step.block, *step.values, device=device.id,
            dynamic_lds=step.dynamic_lds, polluting_bytes=step.polluting_bytes,
        )  # fmt: skip

    def sample(self, step: hip_suite.Kernel, device: Device) -> Sample:
        """The executed sample of a step's launch."""
        return self._function(step, device).sample(
            step.grid, step.block, *step.values, device=device.id, dynamic_lds=step.dynamic_lds
        )

    def digest(self, device: Device) -> str:
        """Names the instructions of the program's kernels; of one without kernels, nothing."""
        if not hip_suite.source(self.program):
            return digest("")
        module = _module(self._path(), device.target)
        return digest([(f.symbol, _instructions(f)) for f in module.values()])

    def _kernel(self, step: hip_suite.Kernel, device: Device) -> Prediction:
        return self._function(step, device).predict(
            step.grid, step.block, *step.values, device=device.id,
            dynamic_lds=step.dynamic_lds, polluting_bytes=step.polluting_bytes,
        )  # fmt: skip

    def _function(self, step: hip_suite.Kernel, device: Device) -> Function:
        return _module(self._path(), device.target)[step.name]

    def _path(self) -> Path:
        path = Path(self.sources)
        file = hip_suite.source(self.program)
        found = next((p for p in (path / FOLDER / file, path / file) if p.is_file()), None)
        if found is None:
            raise InputError(f"{path} has no {FOLDER}/{file}", hint="a checkout of the suite")
        return found

    def __str__(self) -> str:
        return f"{self.program} {self.size}"


@lru_cache(maxsize=1024)
def _work_items(program: str, size: str) -> int:
    launches = (
        step for step in hip_suite.steps(program, size) if isinstance(step, hip_suite.Kernel)
    )
    return max((prod(step.grid) * prod(step.block) for step in launches), default=1)


def _instructions(function: Function) -> list[str]:
    return [i.decoded.text for i in parse_kernel(function.code).program.instructions]


@lru_cache(maxsize=64)
def _module(path: Path, target: str) -> Module:
    return load(path, target, options=["-O2"])


__all__ = ["HipProgram"]
