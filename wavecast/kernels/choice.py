"""Launches with the configuration that suits the GPU at hand.

For a class of problems the shipped table names a configuration (`tables`); after it come those of
the kernel's `Space` in the order of their predicted times. They are compiled until one fits the GPU
and spills no registers. Code that the compiler left a race in is passed over; code that cannot be
looked at for one is taken with a warning. What was decided is kept for the process, and Triton
keeps the compiled code on disk.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import triton

from wavecast import isa
from wavecast.analyze.sync import unfinished_stores
from wavecast.arch import Device
from wavecast.errors import CompileError, ParseError
from wavecast.kernels import gpu, tables
from wavecast.kernels.configuration import Configuration
from wavecast.kernels.space import AMD_ONLY, Problem, Settings, Space

ATTEMPTS: Final = 12
"""Candidates that may spill before the one with the fewest spills is taken. After half of them,
those come first whose tiles are half as large per wave as any that spilled."""

_OLDEST: Final = (3, 8)
"""The oldest Triton whose compiler for AMD gets all kernels of the library right: with 3.6 and 3.7
`moe_experts_w4a16` is wrong on gfx942, with 3.6 `scaled_matmul` of two formats, too."""

Grid = Callable[[Settings], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Decision:
    """A configuration taken for a class of problems: `source` is `table`, `formula` or `forced`,
    `spills` the registers per lane that its code keeps in memory, `text` names the kernel's text
    (`tables.source`), `unchecked` says why nobody looked for races that the compiler left in."""

    space: Space
    text: str
    problem: Problem
    device: Device
    configuration: Configuration
    source: str
    spills: int
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class _Tried:
    """A candidate that compiles and fits, and what `Decision` says of it."""

    spills: int
    number: int
    candidate: Configuration
    unchecked: str


_decided: dict[tuple, Decision] = {}
_lock = threading.Lock()
_watching: list[list[Decision]] = []
_forced: dict[str, Configuration] = {}


def launch(
    kernel: Any,
    grid: Grid,
    arguments: Sequence[Any],
    space: Space,
    problem: Problem,
    **constants: Any,
) -> None:
    """Launch `kernel` (a `triton.jit` function) over `grid(settings)` with positional `arguments`
    and the keyword `constants` that are not for `space` to choose.

    Raises CompileError when no configuration compiles and fits the GPU.
    """
    if gpu.dry():
        raise gpu.WouldLaunch
    device = gpu.launching()
    decision = _decided.get(_identity(kernel, space, problem, device))
    if decision is None or space.kernel in _forced:
        decision = _decide(kernel, grid, arguments, space, problem, constants, device)
    for watch in _watching:
        watch.append(decision)
    settings = decision.configuration.settings
    kernel[grid(settings)](*arguments, **constants, **options(settings, device))


def options(settings: Settings, device: Device) -> dict[str, Any]:
    """Settings as a launch on a device takes them. FP fusion is on, whatever the environment."""
    amd = device.target.startswith("gfx")
    kept = {n: v for n, v in settings.items() if amd or n not in AMD_ONLY}
    if device.target not in ("gfx90a", "gfx942"):
        kept.pop("kpack", None)  # Triton takes 1 elsewhere
    return {**kept, "enable_fp_fusion": True}


@contextlib.contextmanager
def watched() -> Iterator[list[Decision]]:
    """The decisions behind the launches of the block, in their order."""
    seen: list[Decision] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


@contextlib.contextmanager
def forced(kernel: str, configuration: Configuration) -> Iterator[None]:
    """Launch a kernel, by its space's name, in one configuration: for tuning and tests."""
    before = _forced.get(kernel)
    _forced[kernel] = configuration
    try:
        yield
    finally:
        del _forced[kernel]
        if before is not None:
            _forced[kernel] = before


def forget() -> None:
    """Decide anew from now on."""
    _decided.clear()


def _identity(kernel: Any, space: Space, problem: Problem, device: Device) -> tuple:
    return id(kernel), space.kernel, device.id, space.key(problem)


def _decide(
    kernel: Any,
    grid: Grid,
    arguments: Sequence[Any],
    space: Space,
    problem: Problem,
    constants: Mapping[str, Any],
    device: Device,
) -> Decision:
    _require_triton(device)
    if space.kernel in _forced:
        configuration = _forced[space.kernel]
        return Decision(space, tables.source(kernel), problem, device, configuration, "forced", 0)
    decision = _first_clean(kernel, grid, arguments, space, problem, constants, device)
    with _lock:
        return _decided.setdefault(_identity(kernel, space, problem, device), decision)


def _require_triton(device: Device) -> None:
    """Raise CompileError for a version of Triton that compiles kernels of the library wrongly."""
    version = tuple(int(part) for part in re.findall(r"\d+", triton.__version__)[:2])
    if device.target.startswith("gfx") and version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise CompileError(
            f"wavecast.ops on {device.target} needs Triton {oldest} or newer: "
            f"{triton.__version__} compiles some of its kernels wrongly"
        )


def _first_clean(
    kernel: Any,
    grid: Grid,
    arguments: Sequence[Any],
    space: Space,
    problem: Problem,
    constants: Mapping[str, Any],
    device: Device,
) -> Decision:
    """The first candidate, that of the table before those by formula, that compiles, fits and
    spills nothing; else the one that spills least. Raises CompileError when none compiles."""
    tried: list[_Tried] = []
    refused: Exception | None = None
    tabled = tables.find(kernel, space, problem, device)
    ranked = space.ranked(problem, device)
    candidates = (tabled, *ranked) if tabled else ranked
    for number, candidate in enumerate(_in_turn(candidates, tried)):
        if len(tried) == ATTEMPTS:
            break
        try:
            spills, unchecked = _examined(kernel, grid, arguments, constants, candidate, device)
        except Exception as error:  # the compiler's own, of many kinds
            refused = error
            continue
        tried.append(_Tried(spills, number, candidate, unchecked))
        if not spills:
            break
    if not tried:
        why = " ".join(str(refused).split())[:300] if refused else "none is allowed"
        raise CompileError(
            f"no configuration of {space.kernel} runs on {device.id} for {dict(problem)}: {why}"
        ) from refused
    taken = min(tried, key=lambda one: (one.spills, one.number))
    if taken.spills:
        warnings.warn(
            f"{space.kernel} on {device.id} spills {taken.spills} registers in every configuration "
            f"tried for {dict(problem)}",
            stacklevel=2,
        )
    if taken.unchecked:
        warnings.warn(
            f"{space.kernel} on {device.id} is not checked for waits that the compiler lost: "
            f"{taken.unchecked}",
            stacklevel=2,
        )
    return Decision(
        space,
        tables.source(kernel),
        problem,
        device,
        taken.candidate,
        "table" if taken.candidate is tabled else "formula",
        taken.spills,
        taken.unchecked,
    )


def _in_turn(
    candidates: Sequence[Configuration], tried: Sequence[_Tried]
) -> Iterator[Configuration]:
    """Candidates in their order; once half of the attempts have spilled, those first whose tiles
    are half as large per wave as any that spilled."""
    later = []
    for candidate in candidates:
        if len(tried) >= ATTEMPTS // 2 and _tile_per_wave(candidate) > (
            min(_tile_per_wave(one.candidate) for one in tried) / 2
        ):
            later.append(candidate)
        else:
            yield candidate
    yield from later


def _examined(
    kernel: Any,
    grid: Grid,
    arguments: Sequence[Any],
    constants: Mapping[str, Any],
    candidate: Configuration,
    device: Device,
) -> tuple[int, str]:
    """Registers a compiled candidate spills, and why it was not checked for races ("" where it
    was). Raises what the compiler or the GPU's loader does, and CompileError for a race."""
    settings = candidate.settings
    named = {**constants, **options(settings, device)}
    programs = grid(settings)  # before the arguments are read, which it may set
    with gpu.trying(candidate):
        compiled = kernel.run(*arguments, grid=programs, warmup=True, **named)
        compiled._init_handles()
    return int(compiled.n_spills or 0), _unchecked(compiled, device)


def _tile_per_wave(candidate: Configuration) -> float:
    """The product of a configuration's block sizes, over its waves."""
    sizes = [value for _, value in candidate.tile if isinstance(value, int) and value > 1]
    return math.prod(sizes) / int(candidate.settings.get("num_warps", 4))


def _unchecked(compiled: Any, device: Device) -> str:
    """Why code could not be checked for waves that read from LDS what others have not stored yet,
    by a bug of LLVM (docs/hardware.md); asked of AMD's code only. Raises CompileError for a race.
    """
    text = compiled.asm.get("amdgcn", "")
    if "s_barrier" not in text:
        return ""
    try:
        program = isa.parse(text, device.target).kernels[compiled.name].program
    except ParseError as error:
        return str(error)
    if unfinished_stores(program):
        raise CompileError("the compiler lost a wait before a barrier (docs/hardware.md)")
    return ""


__all__ = ["ATTEMPTS", "Decision", "Grid", "forced", "forget", "launch", "options", "watched"]
