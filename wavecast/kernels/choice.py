"""Launches with the configuration that suits the GPU at hand.

For a class of problems the shipped table names a configuration (`tables`); after it come those of
the kernel's `KernelSpec` in the order of their predicted times. They are compiled until one fits
the GPU and spills no registers. Code in which the compiler left a race is passed over; code that
cannot be checked for one is taken with a warning. Decisions are kept for the process, and Triton
keeps the compiled code on disk.
"""

import contextlib
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import triton

from wavecast import isa
from wavecast.analyze.sync import unfinished_stores
from wavecast.arch import Device
from wavecast.compile.configuration import Configuration
from wavecast.errors import CompileError, ParseError
from wavecast.kernels import checks, tables
from wavecast.kernels.spec import AMD_ONLY, KernelSpec, Problem, Settings
from wavecast.kernels.strides import contiguous
from wavecast.launch import gpu, recording

ATTEMPTS: Final = 12
"""Candidates that may spill before the one with the fewest spills is taken. After half of them,
those come first whose tiles are half as large per wave as any that spilled."""

_OLDEST: Final = (3, 8)
"""The oldest Triton whose compiler for AMD gets all kernels of the library right: with 3.6 and 3.7
`moe_experts_w4a16` is wrong on gfx942 (`kpack=2` with products of K=16 halves the accumulator,
docs/lab-reproducers.md), with 3.6 `scaled_matmul` of two formats, too."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a launch in one configuration passes to Triton."""

    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    workspaces: Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that was made: in which configuration, and its workspaces by parameter name."""

    settings: Settings
    workspaces: Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Decision:
    """The configuration of the problems with one tuning key: `source` is `table`, `formula` or
    `forced`, `spills` the registers per lane that its code keeps in memory, `text` names the
    kernel's text (`tables.source`), `unchecked` says why the code was not checked for races that
    the compiler left in."""

    spec: KernelSpec
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


def run(spec: KernelSpec, problem: Problem, /, **arguments: Any) -> Launched:
    """Launch a kernel in the configuration that suits `problem` and the GPU at hand.

    `arguments` are the kernel's parameters by name, a pointer `x_ptr` as `x`. Parameters that are
    entries of `problem` (a constant `TOP_K` is its `top_k`), settings, workspaces, or strides that
    the spec names, need not be given, nor `WIDE` (whether an offset into some tensor needs 64 bits)
    and `XCDS` (dies that share the workgroups).

    Raises CompileError when no configuration compiles and fits the GPU, and TypeError for arguments
    that the kernel does not have or lacks.
    """
    if gpu.dry():
        raise gpu.WouldLaunch
    device = gpu.launching()
    for name in spec.contiguous:
        arguments[name] = contiguous(arguments[name])

    def bind(settings: Settings) -> Bound:
        return bound(spec, problem, arguments, settings, device)

    recorded = recording.current()
    pause = contextlib.nullcontext if recorded is None else recorded.pause
    with pause():
        decision = _decision(spec.function, spec, problem, device, bind)
    settings = decision.configuration.settings
    call = bind(settings)
    with pause():
        kernel = spec.function[call.grid](**{**options(spec, settings, device), **call.arguments})
    if recorded is not None:
        recorded.on_launch(spec.function, kernel, call.grid, call.arguments)
    return Launched(settings, call.workspaces)


def bound(
    spec: KernelSpec, problem: Problem, arguments: Mapping[str, Any], settings: Settings,
    device: Device,
) -> Bound:  # fmt: skip
    """The grid, the arguments by parameter name, and the workspaces of a launch. Raises TypeError
    as `run` does."""
    tensors = [value for value in arguments.values() if isinstance(value, torch.Tensor)]
    workspaces = {
        name: (torch.zeros if workspace.zeroed else torch.empty)(
            workspace.shape, dtype=workspace.dtype, device=tensors[0].device
        )
        for name, workspace in spec.workspaces(problem, settings).items()
    }
    constants = {name.upper(): value for name, value in problem.items()}
    strides = spec.strides_of(arguments)
    values = {**strides, **constants, **problem, **settings, **workspaces, **arguments}
    values |= spec.derived(values)
    parameters = spec.parameters
    if "WIDE" in parameters and "WIDE" not in values:
        values["WIDE"] = checks.wide(*tensors, *workspaces.values())
    if "XCDS" in parameters and "XCDS" not in values:
        values["XCDS"] = device.dies
    lacking = [name for name in spec.required_parameters if name not in values]
    foreign = [name for name in arguments if name not in parameters]
    if lacking or foreign:
        raise TypeError(f"{spec.name} lacks {lacking} and does not take {foreign}")
    kernel_arguments = {label: values[name] for name, label in parameters.items() if name in values}
    return Bound(spec.programs(problem, settings), kernel_arguments, workspaces)


def options(spec: KernelSpec, settings: Settings, device: Device) -> dict[str, Any]:
    """Settings as a launch on a device takes them, with the libraries of the kernel. FP fusion is
    on, whatever the environment."""
    amd = device.vendor == "amd"
    launch_options = {n: v for n, v in settings.items() if amd or n not in AMD_ONLY}
    if not device.capabilities.matrix_half_k:
        launch_options.pop("kpack", None)  # Triton takes 1 elsewhere
    libraries = spec.libraries(device)
    if libraries:
        launch_options["extern_libs"] = dict(libraries)
    return {**launch_options, "enable_fp_fusion": True}


@contextlib.contextmanager
def record_decisions() -> Iterator[list[Decision]]:
    """The decisions behind the launches of the block, in their order."""
    decisions: list[Decision] = []
    _watching.append(decisions)
    try:
        with recording.block():
            yield decisions
    finally:
        _watching.remove(decisions)


@contextlib.contextmanager
def forced(kernel: str, configuration: Configuration) -> Iterator[None]:
    """Launch a kernel, by the name of its spec, in one configuration: for tuning and tests."""
    before = _forced.get(kernel)
    _forced[kernel] = configuration
    try:
        with recording.block():
            yield
    finally:
        del _forced[kernel]
        if before is not None:
            _forced[kernel] = before


def forget() -> None:
    """Forget all decisions: the next launches decide again."""
    _decided.clear()
    recording.forget()


def _decision(
    function: Any, spec: KernelSpec, problem: Problem, device: Device,
    bind: Callable[[Settings], Bound],
) -> Decision:  # fmt: skip
    """The decision for a launch, made now where there is none; those who watch see it."""
    identity = id(function), spec.name, device.id, spec.key(problem)
    decision = _decided.get(identity)
    if decision is None or spec.name in _forced:
        _require_triton(device)
        if spec.name in _forced:
            configuration, text = _forced[spec.name], tables.source(function)
            decision = Decision(spec, text, problem, device, configuration, "forced", 0)
        else:
            candidate = _first_clean(function, spec, problem, device, bind)
            with _lock:
                decision = _decided.setdefault(identity, candidate)
    for watch in _watching:
        watch.append(decision)
    return decision


def _require_triton(device: Device) -> None:
    """Raise CompileError for a version of Triton that compiles kernels of the library wrongly."""
    version = tuple(int(part) for part in re.findall(r"\d+", triton.__version__)[:2])
    if device.vendor == "amd" and version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise CompileError(
            f"wavecast.ops on {device.target} needs Triton {oldest} or newer: "
            f"{triton.__version__} compiles some of its kernels wrongly"
        )


def _first_clean(
    function: Any, spec: KernelSpec, problem: Problem, device: Device,
    bind: Callable[[Settings], Bound],
) -> Decision:  # fmt: skip
    """The first candidate, that of the table before those by formula, that compiles, fits and
    spills nothing; else the one that spills least. Raises CompileError when none compiles."""
    attempts: list[_Tried] = []
    failure: Exception | None = None
    tabled = tables.find(function, spec, problem, device)
    ranked = spec.ranked(problem, device)
    candidates = (tabled, *ranked) if tabled else ranked
    for number, candidate in enumerate(_in_order(candidates, attempts)):
        if len(attempts) == ATTEMPTS:
            break
        try:
            spills, unchecked = _examine(function, spec, bind, candidate, device)
        except Exception as error:  # the compiler's own, of many kinds
            failure = error
            continue
        attempts.append(_Tried(spills, number, candidate, unchecked))
        if not spills:
            break
    if not attempts:
        why = " ".join(str(failure).split())[:300] if failure else "none is allowed"
        raise CompileError(
            f"no configuration of {spec.name} runs on {device.id} for {dict(problem)}: {why}"
        ) from failure
    best = min(attempts, key=lambda attempt: (attempt.spills, attempt.number))
    if best.spills:
        warnings.warn(
            f"{spec.name} on {device.id} spills {best.spills} registers in every configuration "
            f"tried for {dict(problem)}",
            stacklevel=2,
        )
    if best.unchecked:
        warnings.warn(
            f"{spec.name} on {device.id} is not checked for waits that the compiler lost: "
            f"{best.unchecked}",
            stacklevel=2,
        )
    return Decision(
        spec,
        tables.source(function),
        problem,
        device,
        best.candidate,
        "table" if best.candidate is tabled else "formula",
        best.spills,
        best.unchecked,
    )


def _in_order(
    candidates: Sequence[Configuration], attempts: Sequence[_Tried]
) -> Iterator[Configuration]:
    """Candidates in their order; once half of the attempts have spilled, those first whose tiles
    are half as large per wave as any that spilled."""
    later = []
    for candidate in candidates:
        if len(attempts) >= ATTEMPTS // 2 and _tile_per_wave(candidate) > (
            min(_tile_per_wave(attempt.candidate) for attempt in attempts) / 2
        ):
            later.append(candidate)
        else:
            yield candidate
    yield from later


def _examine(
    function: Any, spec: KernelSpec, bind: Callable[[Settings], Bound], candidate: Configuration,
    device: Device,
) -> tuple[int, str]:  # fmt: skip
    """Registers a compiled candidate spills, and why it was not checked for races ("" where it
    was). Raises what the compiler or the GPU's loader does, and CompileError for a race."""
    call = bind(candidate.settings)
    keywords = {**options(spec, candidate.settings, device), **call.arguments}
    with gpu.trying(candidate):
        compiled = function.run(grid=call.grid, warmup=True, **keywords)
        compiled._init_handles()
    return int(compiled.n_spills or 0), _unchecked_reason(compiled, device)


def _tile_per_wave(candidate: Configuration) -> float:
    """The product of a configuration's block sizes, over its waves."""
    sizes = [value for _, value in candidate.tile if isinstance(value, int) and value > 1]
    return math.prod(sizes) / int(candidate.settings.get("num_warps", 4))


def _unchecked_reason(compiled: Any, device: Device) -> str:
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
