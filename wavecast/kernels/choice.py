"""Launches with the configuration that suits the GPU at hand.

For a class of problems the shipped table names a configuration (`tables`); after it come those of
the kernel's `Space` in the order of their predicted times. They are compiled until one fits the GPU
and spills no registers. Code that the compiler left a race in is passed over (`_racing`). What was
decided is kept for the process, and Triton keeps the compiled
code on disk.
"""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wavecast import isa
from wavecast.analyze.sync import unfinished_stores
from wavecast.arch import Device
from wavecast.errors import CompileError, ParseError
from wavecast.kernels import gpu, tables
from wavecast.kernels.configuration import Configuration
from wavecast.kernels.space import AMD_ONLY, Problem, Settings, Space

ATTEMPTS: Final = 8
"""Candidates that may spill before the one with the fewest spills is taken. After half of them,
only those are tried whose tiles are half as large per wave as any that spilled."""

Grid = Callable[[Settings], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Decision:
    """A configuration taken for a class of problems: `source` is `table`, `formula` or `forced`,
    `spills` the registers per lane that its code keeps in memory, `text` names the kernel's text
    (`tables.source`)."""

    space: Space
    text: str
    problem: Problem
    device: Device
    configuration: Configuration
    source: str
    spills: int


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
    if space.kernel in _forced:
        configuration = _forced[space.kernel]
        return Decision(space, tables.source(kernel), problem, device, configuration, "forced", 0)
    decision = _first_clean(kernel, grid, arguments, space, problem, constants, device)
    with _lock:
        return _decided.setdefault(_identity(kernel, space, problem, device), decision)


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
    text = tables.source(kernel)
    spilling: list[tuple[int, int, Configuration]] = []
    refused: Exception | None = None
    tabled = tables.find(kernel, space, problem, device)
    ranked = space.ranked(problem, device)
    for number, candidate in enumerate((tabled, *ranked) if tabled else ranked):
        if len(spilling) == ATTEMPTS:
            break
        source = "table" if candidate is tabled else "formula"
        if len(spilling) >= ATTEMPTS // 2:
            smallest = min(_tile_per_wave(spilled) for _, _, spilled in spilling)
            if _tile_per_wave(candidate) > smallest / 2:
                continue
        try:
            spills = _spills(kernel, grid, arguments, constants, candidate, device)
        except Exception as error:  # the compiler's own, of many kinds
            refused = error
            continue
        if not spills:
            return Decision(space, text, problem, device, candidate, source, 0)
        spilling.append((spills, number, candidate))
    if not spilling:
        why = " ".join(str(refused).split())[:300] if refused else "none is allowed"
        raise CompileError(
            f"no configuration of {space.kernel} runs on {device.id} for {dict(problem)}: {why}"
        ) from refused
    spills, _, least = min(spilling)
    warnings.warn(
        f"{space.kernel} on {device.id} spills {spills} registers in every configuration tried "
        f"for {dict(problem)}",
        stacklevel=2,
    )
    return Decision(space, text, problem, device, least, "formula", spills)


def _spills(
    kernel: Any,
    grid: Grid,
    arguments: Sequence[Any],
    constants: Mapping[str, Any],
    candidate: Configuration,
    device: Device,
) -> int:
    """Registers a compiled candidate spills. Raises what the compiler or the GPU's loader does."""
    settings = candidate.settings
    named = {**constants, **options(settings, device)}
    with gpu.trying(candidate):
        compiled = kernel.run(*arguments, grid=grid(settings), warmup=True, **named)
        compiled._init_handles()
    if _racing(compiled, device):
        raise CompileError("the compiler lost a wait before a barrier (docs/hardware.md)")
    return int(compiled.n_spills or 0)


def _tile_per_wave(candidate: Configuration) -> float:
    """The product of a configuration's block sizes, over its waves."""
    sizes = [value for _, value in candidate.tile if isinstance(value, int) and value > 1]
    return math.prod(sizes) / int(candidate.settings.get("num_warps", 4))


def _racing(compiled: Any, device: Device) -> bool:
    """Whether waves may read from LDS what others have not stored yet, by a bug of LLVM
    (docs/hardware.md); asked of AMD's code only."""
    text = compiled.asm.get("amdgcn", "")
    if "s_barrier" not in text:
        return False
    try:
        program = isa.parse(text, device.target).kernels[compiled.name].program
    except ParseError:
        return False  # an instruction nobody knows here is not this kernel's fault
    return bool(unfinished_stores(program))


__all__ = ["ATTEMPTS", "Decision", "Grid", "forced", "forget", "launch", "options", "watched"]
