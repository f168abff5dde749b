"""Which pass makes a figure differ between two code generators.

Both compile a kernel's LLVM IR once per pass, with LLVM's `-opt-bisect-limit`: only the first N of
the passes that can be left out run. What a pass changes is the difference between two limits, so
the changes of all passes add up to the figure. Passes are paired by name and order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from typing import Annotated, Final, Protocol

from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import Launch
from wavecast.errors import CompileError, UsageError, WavecastError
from wavecast.json_objects import JsonObject, doc
from wavecast.lab.codegen import CodeGenerator, Llc, installed_generators
from wavecast.lab.figures import CodeFigures, figures_of
from wavecast.lab.releases import TritonRelease
from wavecast.tuning.pool import Pool

LIMIT: Final = 120.0
"""Seconds of one compilation."""
_RUN: Final = re.compile(r"^BISECT: (?:NOT )?running pass \((\d+)\) (.+?) on ", re.MULTILINE)
_OTHERS: Final = ("digest", "low", "high", "limiter", "fidelity", "reason", "faults")
FIGURES: Final = tuple(name for name in CodeFigures.__struct_fields__ if name not in _OTHERS)
"""The figures that a bisection knows."""


class BisectedCompiler(Protocol):
    """Compiles LLVM IR with a limit of passes: (the assembly, what LLVM prints)."""

    @property
    def name(self) -> str: ...

    def limit_passes(self, launch: Launch, limit: int) -> tuple[str, str]: ...


@dataclass(frozen=True, slots=True)
class CoreLlvm:
    """Triton's core LLVM, which has options. From Triton 3.9 on, programs get their code from
    another LLVM."""

    device: Device

    @property
    def name(self) -> str:
        return "Triton's core LLVM"

    def limit_passes(self, launch: Launch, limit: int) -> tuple[str, str]:
        from wavecast.runtimes.triton.dumps import machine_dump

        log, text = machine_dump(launch.code, self.device, [f"-opt-bisect-limit={limit}"])
        return text, log


@dataclass(frozen=True, slots=True)
class LimitedLlc:
    """An llc program."""

    llc: Llc

    @property
    def name(self) -> str:
        return self.llc.name

    def limit_passes(self, launch: Launch, limit: int) -> tuple[str, str]:
        options = (*self.llc.options, f"-opt-bisect-limit={limit}")
        compilation = replace(self.llc, options=options).compile(str(launch.code.stages["llir"]))
        return compilation.text, compilation.log


@dataclass(frozen=True, slots=True)
class PassSweep:
    """The figure of a compiler's code: `values[n]` with the first n of `passes`. None where LLVM
    refuses, or the code has no such figure."""

    compiler: str
    passes: tuple[str, ...]
    values: tuple[float | None, ...]

    def change(self, number: int) -> float | None:
        """By how much a pass changes the figure."""
        before, after = self.values[number], self.values[number + 1]
        return None if before is None or after is None else after - before


class BisectedPass(JsonObject):
    """A pass that changes a figure differently in two code generators."""

    name: Annotated[str, doc("LLVM's name of the pass")]
    first: Annotated[float | None, doc("change by the first one, null if it has no such pass")]
    second: Annotated[float | None, doc("change by the second one")]

    @property
    def apart(self) -> float:
        """The part of the difference between the compilers that the pass makes."""
        return (self.second or 0.0) - (self.first or 0.0)


@dataclass(frozen=True, slots=True)
class Bisection:
    """A figure in two compilers, and the passes that change it differently. `always` are the passes
    that cannot be left out; the changes of it and of `passes` add up to the difference."""

    figure: str
    first: PassSweep
    second: PassSweep
    always: BisectedPass
    passes: tuple[BisectedPass, ...]

    @property
    def most(self) -> BisectedPass | None:
        """The pass that makes most of the difference, None where the figures are equal."""
        first_value, other = self.first.values[-1], self.second.values[-1]
        if first_value is None or other is None or first_value == other:
            return None
        sign = 1 if other > first_value else -1
        return max((self.always, *self.passes), key=lambda each: sign * each.apart)


def bisectable(device: Device, requests: Sequence[CodeGenerator] = ()) -> list[BisectedCompiler]:
    """The code generators whose passes can be limited: Triton's core LLVM, every llc of this
    machine, and those of `requests` that are an llc or a release of Triton."""
    every = (*installed_generators(device), *requests)
    compilers: list[BisectedCompiler] = [
        LimitedLlc(generator) for generator in every if isinstance(generator, Llc)
    ]
    return [
        CoreLlvm(device),
        *compilers,
        *(generator for generator in requests if isinstance(generator, TritonRelease)),
    ]


def check_figure(name: str) -> None:
    """Raise UsageError for a figure that there is not."""
    if name not in FIGURES:
        raise UsageError(f"unknown figure {name!r}", hint=f"one of {', '.join(FIGURES)}")


def bisect_passes(
    launch: Launch, device: Device, compilers: Sequence[BisectedCompiler], figure: str
) -> Bisection:
    """Compare the passes of two compilers on a launch's LLVM IR.

    Raises UsageError for an unknown figure, CompileError for a kernel without LLVM IR or a compiler
    that does not number its passes.
    """
    check_figure(figure)
    if not isinstance(launch.code.stages.get("llir"), str):
        raise CompileError(f"{launch.code.kernel}: it has no LLVM IR")
    first, second = (_swept(launch, device, compiler, figure) for compiler in compilers)
    always = BisectedPass("(passes that always run)", first.values[0], second.values[0])
    passes = tuple(
        bisected_pass for bisected_pass in _pair_passes(first, second) if bisected_pass.apart
    )
    return Bisection(figure, first, second, always, passes)


def _swept(launch: Launch, device: Device, compiler: BisectedCompiler, figure: str) -> PassSweep:
    from wavecast.limits import available_processors

    _, log = compiler.limit_passes(launch, -1)
    names = tuple(name for _, name in _RUN.findall(log))
    if not names:
        raise CompileError(f"{compiler.name}: it does not number its passes")
    limits = range(len(names) + 1)
    with Pool(available_processors(), partial(_text, launch, compiler), limit=LIMIT) as pool:
        texts = {n: text for n, text in pool.map(iter(limits)) if isinstance(text, str)}
    with Pool(
        available_processors(), partial(_figure, launch, device, figure), limit=LIMIT
    ) as pool:
        figures = dict(pool.map(iter(dict.fromkeys(texts.values()))))
    values = (figures.get(texts.get(number, "")) for number in limits)
    return PassSweep(
        compiler.name, names, tuple(value if isinstance(value, float) else None for value in values)
    )


def _text(launch: Launch, compiler: BisectedCompiler, limit: int) -> str | None:
    """The assembly with a limit of passes, None where LLVM refuses."""
    try:
        return compiler.limit_passes(launch, limit)[0]
    except WavecastError:
        return None


def _figure(launch: Launch, device: Device, figure: str, assembly: str) -> float | None:
    """The figure of other assembly of a launch."""
    stages = {**launch.code.stages, "amdgcn": assembly}
    stages.pop("hsaco", None)
    name = digest.digest(launch.code.digest, assembly)
    changed = replace(launch, code=replace(launch.code, stages=stages, digest=name))
    try:
        value = getattr(figures_of(changed, device, predicted=figure == "seconds"), figure)
    except WavecastError:
        return None
    return None if value is None else float(value)


def _pair_passes(first: PassSweep, second: PassSweep) -> Iterator[BisectedPass]:
    """The passes of both, in order."""
    matcher = SequenceMatcher(None, first.passes, second.passes, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            for index, other in zip(range(a, b), range(c, d), strict=True):
                yield BisectedPass(first.passes[index], first.change(index), second.change(other))
            continue
        for index in range(a, b):
            yield BisectedPass(first.passes[index], first.change(index), None)
        for other in range(c, d):
            yield BisectedPass(second.passes[other], None, second.change(other))


__all__ = [
    "FIGURES",
    "BisectedCompiler",
    "BisectedPass",
    "Bisection",
    "CoreLlvm",
    "LimitedLlc",
    "PassSweep",
    "bisect_passes",
    "bisectable",
    "check_figure",
]
