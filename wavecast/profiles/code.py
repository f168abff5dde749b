"""Kernels of a profile whose code is at hand: explained with the grid, block and LDS of their
launches, next to their measured times and counters.

Scripts make their own launches; those of code files are taken from the profile. A kernel of the
profile is the one of the code if their names are equal, and of several launches of a script the one
with the same grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from wavecast import compile as compilers
from wavecast.arch.device import Device
from wavecast.compile.names import readable
from wavecast.errors import InputError
from wavecast.perfmodel.prediction import Prediction
from wavecast.pipeline import Given, SourceOptions, explain_launches, explain_path
from wavecast.pipeline.explain.code_launches import CodeLaunches
from wavecast.pipeline.explain.result import Explanation
from wavecast.pipeline.explain.selection import Selection
from wavecast.pipeline.plan import Plan
from wavecast.profiles.code_differences import difference
from wavecast.profiles.code_figures import predicted_figures
from wavecast.profiles.counters import (
    CLOCK,
    CountedLaunches,
    CounterUnit,
    by_kernel,
    known_figures,
)
from wavecast.profiles.kernel_names import short
from wavecast.profiles.profile import Profile, ProfiledKernel
from wavecast.profiles.summary import ProfileSummary

_LONG: Final = 100_000
"""Nanoseconds of a launch from which cycles of the whole GPU give its clock: the counter runs for
some microseconds before and after a kernel."""
_CYCLES: Final = "GRBM_GUI_ACTIVE"
NO_PLAN: Final = Plan()
_FASTEST: Final = 1.1
"""A measured clock over the highest of the chip, above which the cycles are not of one die."""


@dataclass(frozen=True, slots=True)
class CodeFigure:
    """A figure as the counters and the prediction have it; None where one has it not. `why` says
    what explains a difference, and is empty where there is none."""

    name: str
    unit: CounterUnit
    measured: float | None
    predicted: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedKernel:
    """A kernel of a profile (`number` in `Profile.kernels`) and the explanation of its code in
    `source`. `count` launches took `seconds` each on average."""

    number: int
    source: Path
    explanation: Explanation
    count: int
    seconds: float
    figures: tuple[CodeFigure, ...]
    notes: tuple[str, ...] = ()

    @property
    def prediction(self) -> Prediction | None:
        """The predicted time of a launch."""
        return self.explanation.predicted.prediction


@dataclass(frozen=True, slots=True)
class ExplainedCode:
    """The kernels of a profile that the files have, longest first, and what was not explained."""

    kernels: tuple[ExplainedKernel, ...] = ()
    notes: tuple[str, ...] = field(default=())


def explain_kernels(
    profile: Profile,
    summary: ProfileSummary,
    device: Device,
    files: Sequence[Path],
    plan: Plan = NO_PLAN,
) -> ExplainedCode:
    """The kernels of `profile` that are in `files`, on the chip that ran them.

    `plan` has the arguments of the kernels of code files, and their grid and block where the
    profile has none. Raises InputError for a file that cannot be read, NothingAnalysed for a script
    without launches.
    """
    counts_by_kernel = by_kernel(profile)
    kernels: dict[int, ExplainedKernel] = {}
    notes: list[str] = []
    for file in files:
        source = _Script(file, device) if file.suffix == ".py" else _CodeFile(file, device, plan)
        before = len(kernels)
        for number, share in summary.by_kernel.items():
            if number in kernels:
                continue
            kernel = profile.kernels[number]
            explanation, why = source.explanation(kernel)
            if explanation is None:
                notes += [f"{file.name}: {why}"] if why else []
                continue
            kernels[number] = _kernel(
                number, kernel, file, explanation, share.count,
                share.nanoseconds, counts_by_kernel.get(number),
            )  # fmt: skip
        if len(kernels) == before:
            notes.append(f"{file.name}: no kernel of the profile is in it")
    longest = sorted(kernels.values(), key=lambda entry: -entry.count * entry.seconds)
    return ExplainedCode(tuple(longest), tuple(dict.fromkeys(notes)))


def same_name(profiled: str, symbol: str) -> bool:
    """Whether a profiler's name, demangled or not, is that of the kernel with a symbol."""
    if profiled == symbol:
        return True
    return short(readable(profiled)) == short(readable(symbol).removesuffix("<…>"))


class _Script:
    """The launches of a script, which runs once."""

    def __init__(self, path: Path, device: Device) -> None:
        report = explain_path(path, Selection((device,), ()), SourceOptions())
        self._explanations = report.explanations
        self._failures = {failure.kernel: failure.message for failure in report.failures}

    def explanation(self, kernel: ProfiledKernel) -> tuple[Explanation | None, str]:
        """That of the launch of a kernel, or why there is none."""
        mine = [e for e in self._explanations if same_name(kernel.name, e.code.kernel)]
        if not mine:
            return None, next(
                (why for name, why in self._failures.items() if same_name(kernel.name, name)), ""
            )
        name = mine[0].code.kernel
        if not all(kernel.blocks):
            return (mine[0], "") if len(mine) == 1 else (None, f"{name}: no grid in the profile")
        alike = [e for e in mine if e.launch is not None and e.launch.grid == kernel.blocks]
        if alike:
            return alike[0], ""
        grids = ", ".join(dict.fromkeys(_grid(e.launch.grid) for e in mine if e.launch))
        profiled = _grid(kernel.blocks)
        return None, f"{name}: the grid is {profiled} in the profile and {grids} in the script"


class _CodeFile:
    """The kernels of a code object, of assembly or of HIP."""

    def __init__(self, path: Path, device: Device, plan: Plan) -> None:
        if not path.is_file():
            raise InputError(f"no such file: {path}", hint="give a script, HIP file or code object")
        self._codes = compilers.load(path, device.target)
        self._device, self._plan = device, plan

    def explanation(self, kernel: ProfiledKernel) -> tuple[Explanation | None, str]:
        """That of a launch of the kernel as the profile has it, or why there is none."""
        codes = [code for code in self._codes if same_name(kernel.name, code.kernel)]
        if not codes:
            return None, ""
        grid = kernel.blocks if all(kernel.blocks) else None
        block = kernel.threads if all(kernel.threads) else None
        plan = Plan("", grid, block).over(self._plan)
        explanation, why = self._with(codes[0].kernel, plan)
        if explanation is not None and kernel.lds_bytes > explanation.analysis.lds_bytes:
            dynamic = kernel.lds_bytes - explanation.analysis.lds_bytes
            return self._with(codes[0].kernel, replace(plan, dynamic_lds=dynamic))
        return explanation, why

    def _with(self, symbol: str, plan: Plan) -> tuple[Explanation | None, str]:
        codes = [code for code in self._codes if code.kernel == symbol]
        code_launches = CodeLaunches()
        code_launches.add(codes, plan, self._device)
        explanations, failed = explain_launches(
            code_launches.launches,
            Selection((self._device,), ()),
            Given(),
            profile_of=code_launches.profile_of,
        )
        why = next((failure.message for failure in (*code_launches.refused, *failed)), "")
        return (explanations[0] if explanations else None), why


def _kernel(
    number: int,
    kernel: ProfiledKernel,
    source: Path,
    explanation: Explanation,
    count: int,
    nanoseconds: int,
    counts: CountedLaunches | None,
) -> ExplainedKernel:
    measured = _measured_figures(counts, explanation.device) if counts else {}
    predicted = predicted_figures(explanation)
    builds = tuple(_other_build(kernel, explanation))
    figures = []
    for figure in known_figures():
        sides = measured.get(figure.name), predicted.get(figure.name)
        if sides == (None, None):
            continue
        why = ""
        if sides[0] is not None and sides[1] is not None:
            why = difference(figure.name, sides[0], sides[1], explanation, builds, measured)
        figures.append(CodeFigure(figure.name, figure.unit, *sides, why))
    return ExplainedKernel(
        number, source, explanation, count, nanoseconds * 1e-9 / count, tuple(figures), builds
    )


def _measured_figures(counts: CountedLaunches, device: Device) -> dict[str, float]:
    """Figures of a launch: bytes of several launches are divided by their number."""
    gaps = dict(counts.figures())
    for figure in known_figures():
        if figure.name in gaps and figure.unit is CounterUnit.BYTES:
            gaps[figure.name] /= counts.launches
    clock = _clock(counts, device)
    if clock is not None and CLOCK not in gaps:
        gaps[CLOCK] = clock
    return gaps


def _clock(counts: CountedLaunches, device: Device) -> float | None:
    """GHz by cycles of the GPU, which some profilers add up over its dies; None for short
    launches."""
    cycles = counts.sums.get(_CYCLES)
    if not cycles or counts.nanoseconds < _LONG * counts.launches:
        return None
    if device.get("peak_clock") is None:
        return None
    highest = _FASTEST * device.clock_hz.number / 1e9
    each = cycles / counts.nanoseconds
    of_a_die = each / device.dies
    return next((clock for clock in (each, of_a_die) if clock <= highest), None)


def _other_build(kernel: ProfiledKernel, explanation: Explanation) -> Iterator[str]:
    """How the code differs from that of the profile."""
    analysis = explanation.analysis
    registers, lds = analysis.registers, analysis.lds_bytes
    actual = registers.vgpr + (0 if kernel.accumulators else registers.agpr)
    granule = explanation.device.limits().vgpr_granule
    if kernel.registers and abs(kernel.registers - actual) >= granule:
        yield f"another build: {kernel.registers} registers in the profile, {actual} in the code"
    threads, actual = math.prod(kernel.threads), explanation.code.workgroup_size
    if threads and actual and threads != actual:
        yield f"another build: {threads} threads per workgroup in the profile, {actual} in the code"
    if kernel.lds_bytes and kernel.lds_bytes < lds:
        yield f"another build: {kernel.lds_bytes:,} B of LDS in the profile, {lds:,} in the code"


def _grid(grid: tuple[int, int, int]) -> str:
    return "x".join(map(str, grid))


__all__ = ["CodeFigure", "ExplainedCode", "ExplainedKernel", "explain_kernels", "same_name"]
