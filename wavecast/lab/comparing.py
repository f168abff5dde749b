"""Whether an alternative computes what the original does: both run on the emulator.

Both execute the same workgroups over the same memory in a fork, for every case: memory as the
program left it, random floating-point inputs by seed, and smaller integer arguments. All of them
are a little smaller, which reaches the masks at the edges of tiles, or half, or one is as small as
it gets, which ends loops after few iterations. Alternatives that only change the order of
instructions must agree in every byte. Those that round elsewhere (`Setting.rounding`) may differ by
`ROUNDING` epsilons of the dtype, of the element and of the root mean square of its array.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from wavecast.compile.codeobject import Argument, Launch, Parameter
from wavecast.dtypes import Dtype, Spelling, is_dtype, lookup
from wavecast.emulate import engine
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.checked_emulator import checked_emulator
from wavecast.emulate.engine import RunOrder
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.launch import AddressRange
from wavecast.emulate.native import native_kernel
from wavecast.errors import WavecastError
from wavecast.json_objects import checked_object
from wavecast.lab import elements
from wavecast.pipeline.explain.recompiling import with_scalars
from wavecast.runtimes.module.types import scalar_dtype
from wavecast.sampling.isolation import run_in_fork

Array = np.ndarray[Any, Any]

WORKGROUPS: Final = 6
"""Workgroups that are executed of a launch: its corners, and some in between."""
AT_EDGES: Final = 2
"""Workgroups that are executed where one argument is as small as it gets: the first and the
last."""
CHECKED: Final = 64
"""Workgroups of a launch that is executed whole with checks."""
CHECKED_OF_MORE: Final = 16
"""Workgroups that are executed with checks of a launch that has more than `CHECKED`."""
ROUNDING: Final = 16.0
"""Epsilons that results may differ by where the setting changes the rounding."""
LEAST_TOLERANCE: Final = 2.0**-14
"""The least relative tolerance: sums of narrow products in fp32 differ by more than its epsilon."""
SEEDS: Final = (1,)
"""Seeds of the random inputs."""


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What the executions of two versions showed. `difference` is "" where the results agree in
    all `cases`; `largest` is the largest relative difference of floating-point results, and
    `reports` are errors of `--check` that the original does not have."""

    cases: tuple[str, ...]
    difference: str
    largest: float = 0.0
    reports: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the alternative may replace the original."""
        return bool(self.cases) and not self.difference and not self.reports

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> ExecutionResult:
        """The result that `dataclasses.asdict` made values of. Raises TypeError, ValueError."""
        return checked_object(ExecutionResult, document)


def compare_launches(
    original: Launch, alternative: Launch, ranges: Sequence[AddressRange], *, rounding: bool
) -> ExecutionResult:
    """Execute both versions of a launch and compare what they wrote.

    `ranges` are the host addresses the launch may touch; memory stays as it is. Raises
    ExecutionError where the original cannot run, Unsupported where one has no translation.
    """
    outcome = run_in_fork(partial(_result_fields, original, alternative, list(ranges), rounding))
    reports: Sequence[str] = ()
    if not outcome["difference"]:
        reports = run_in_fork(partial(_reports, original, alternative, list(ranges)))
    return ExecutionResult(
        tuple(outcome["cases"]), outcome["difference"], outcome["largest"], tuple(reports)
    )


def _result_fields(
    original: Launch, alternative: Launch, ranges: list[AddressRange], rounding: bool
) -> dict[str, object]:
    """In the fork: the fields of an `ExecutionResult` but its reports."""
    arrays = [_view(first, end) for first, end in ranges]
    initial_values = [array.copy() for array in arrays]
    dtypes = _dtypes(original.arguments, ranges)
    cases: list[str] = []
    largest = 0.0
    for case in _cases(original):
        name = case.name
        _restore(arrays, initial_values)
        if case.seed:
            _fill(arrays, dtypes, case.seed)
        before = [array.copy() for array in arrays]
        reference, groups = with_scalars(original, case.smaller), case.groups
        try:
            expected = _run(reference, ranges, arrays, groups)
        except WavecastError as error:
            if cases:  # the data or arguments do not mean anything to the kernel
                continue
            raise ExecutionError(f"the launch as it is cannot run: {error.message}") from error
        if case.smaller:
            _restore(arrays, before)
            if not _equal(expected, _run(reference, ranges, arrays, groups, backwards=True)):
                continue
        _restore(arrays, before)
        try:
            actual = _run(with_scalars(alternative, case.smaller), ranges, arrays, groups)
        except ExecutionError as error:
            return {"cases": [*cases, name], "difference": error.message, "largest": largest}
        for number, (want, have) in enumerate(zip(expected, actual, strict=True)):
            apart, difference = _difference(want, have, dtypes[number], rounding)
            largest = max(largest, apart)
            if difference:
                text = f"{name}: {_name(original.arguments, ranges[number])}: {difference}"
                return {"cases": [*cases, name], "difference": text, "largest": largest}
        cases.append(name)
    return {"cases": cases, "difference": "", "largest": largest}


@dataclass(frozen=True, slots=True)
class _Case:
    """Memory and arguments that both versions are executed with: random inputs of a `seed`, 0 for
    memory as it is, `smaller` integer arguments by name, and how many workgroups."""

    name: str
    seed: int = 0
    smaller: Mapping[str, int] = field(default_factory=dict)
    groups: int = WORKGROUPS


def _cases(launch: Launch) -> list[_Case]:
    cases = [_Case("memory as it is"), *(_Case(f"seed {seed}", seed) for seed in SEEDS)]
    steps = _steps(launch)
    values = _values(launch)
    sizes = {
        name: int(value)
        for name, step in steps.items()
        if isinstance(value := values.get(name), (int, np.integer)) and value > 2 * step
    }
    if not sizes:
        return cases
    smaller = {name: value - steps[name] for name, value in sizes.items()}
    half = {name: value // 2 // steps[name] * steps[name] for name, value in sizes.items()}
    cases += [_Case("smaller sizes", SEEDS[0], smaller), _Case("half sizes", SEEDS[0], half)]
    return cases + [
        _Case(f"{name}={steps[name]}", SEEDS[0], {name: steps[name]}, AT_EDGES) for name in sizes
    ]


def _steps(launch: Launch) -> dict[str, int]:
    """By integer argument, the numbers that keep what the code was specialised on: multiples of 16
    where the argument is one, else all."""
    stated = _values(launch)
    return {
        parameter.name: 16 if "divisibility=16" in parameter.attributes else 1
        for parameter in launch.code.named_parameters
        if parameter.offset is not None
        and parameter.size in (4, 8)
        and (
            parameter.type in _INTEGERS
            or "int" in scalar_dtype(parameter.type)
            or _is_untyped_integer(parameter, stated.get(parameter.name))
        )
    }


def _values(launch: Launch) -> dict[str, object]:
    return {argument.name: argument.value for argument in launch.arguments}


def _is_untyped_integer(parameter: Parameter, value: object) -> bool:
    """Whether an argument of machine code, which has no types, is stated as an integer. One of 8
    bytes may be an address."""
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return is_integer and not parameter.type and parameter.size == 4


_INTEGERS: Final = ("i32", "i64", "u32", "u64")
"""Triton's names; those of HIP are C++'s."""


def _view(first: int, end: int) -> Array:
    return np.ctypeslib.as_array((ctypes.c_uint8 * (end - first)).from_address(first))


def _restore(arrays: Sequence[Array], copies: Sequence[Array]) -> None:
    for array, values in zip(arrays, copies, strict=True):
        array[:] = values


def _equal(first: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def _fill(arrays: Sequence[Array], dtypes: Sequence[Dtype | None], seed: int) -> None:
    """Random values in every floating-point array of whole elements; indices stay."""
    for number, (array, dtype) in enumerate(zip(arrays, dtypes, strict=True)):
        if dtype is not None and array.size % int(dtype.bytes) == 0:
            count = array.size // int(dtype.bytes)
            array[:] = elements.random(count, dtype, seed * 1000 + number)


def _dtypes(arguments: Sequence[Argument], ranges: Sequence[AddressRange]) -> list[Dtype | None]:
    """The floating-point dtype of each range, None for other arrays and for those that arguments
    of different dtypes share."""
    dtypes: list[Dtype | None] = []
    for first, _ in ranges:
        names = {
            item.dtype for item in arguments if item.kind == "tensor" and item.storage == first
        }
        name = names.pop() if len(names) == 1 else ""
        dtype = lookup(name, Spelling.TORCH) if name and is_dtype(name, Spelling.TORCH) else None
        encoding = dtype.encoding if dtype is not None else None
        dtypes.append(dtype if dtype and encoding and encoding.bits == dtype.bits >= 8 else None)
    return dtypes


def _name(arguments: Sequence[Argument], addresses: AddressRange) -> str:
    names = [item.name for item in arguments if item.storage == addresses[0]]
    return "/".join(names) or "memory"


def _run(
    launch: Launch,
    ranges: list[AddressRange],
    arrays: Sequence[Array],
    count: int,
    *,
    backwards: bool = False,
) -> list[Array]:
    """Execute `count` workgroups; the memory afterwards."""
    native = native_kernel(launch.code)
    waves = -(-math.prod(launch.block) // native.kernel.descriptor.wave_size)
    groups, order = _workgroups(launch, count), np.arange(waves)
    if backwards:
        groups, order = groups[::-1].copy(), order[::-1].copy()
    words = sorted((first & ~3, end + 3 & ~3) for first, end in ranges)
    engine.run(native, launch, words, threads=1, order=RunOrder(groups, order))
    return [array.copy() for array in arrays]


def _workgroups(launch: Launch, count: int) -> Array:
    """At most `count` workgroups (int64) of the corners of the grid, and some between them, in
    order; the first and the last are among them."""
    total = math.prod(launch.grid)
    x, y, z = launch.grid
    corners = {a + x * (b + y * c) for a in (0, x - 1) for b in (0, y - 1) for c in (0, z - 1)}
    more = {int(total * part) for part in (0.382, 0.618, 0.146, 0.854)}
    ends = {0, total - 1}
    workgroups = [*sorted(ends), *sorted(corners - ends), *sorted(more - corners)][:count]
    return np.array(sorted(workgroups), np.int64)


def _difference(want: Array, have: Array, dtype: Dtype | None, rounding: bool) -> tuple[float, str]:
    """(the largest relative difference, what is wrong or "")."""
    if np.array_equal(want, have):
        return 0.0, ""
    if dtype is None or not rounding or want.size % int(dtype.bytes):
        count = int(np.count_nonzero(want != have))
        return 0.0, f"{count} bytes differ"
    expected, actual = elements.numbers(want, dtype), elements.numbers(have, dtype)
    bad = np.isfinite(expected) != np.isfinite(actual)
    both = np.isfinite(expected) & np.isfinite(actual)
    a, b = expected[both], actual[both]
    scale = np.abs(a) + math.sqrt(float(np.mean(a * a))) if a.size else a
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(a == b, 0.0, np.abs(a - b) / scale)
    largest = float(apart.max()) if apart.size else 0.0
    tolerance = max(ROUNDING * elements.epsilon(dtype), LEAST_TOLERANCE)
    wrong = int(np.count_nonzero(bad)) + int(np.count_nonzero(apart > tolerance))
    return largest, f"{wrong} elements differ by up to {largest:.2g} relative" if wrong else ""


def _reports(original: Launch, alternative: Launch, ranges: list[AddressRange]) -> list[str]:
    """In a fork: errors of checks that only the alternative has, with the arguments as they are and
    with smaller sizes."""
    arrays = [_view(first, end) for first, end in ranges]
    initial_values = [array.copy() for array in arrays]
    messages: dict[str, None] = {}
    for case in _cases(original):
        if case.seed and case.name != "smaller sizes":
            continue
        most = CHECKED_OF_MORE if case.smaller else CHECKED
        reference, other = (
            _limit_grid(with_scalars(launch, case.smaller), most)
            for launch in (original, alternative)
        )
        try:
            reference_kinds = {kind for kind, _ in _check_errors(reference, ranges)}
        except WavecastError:
            if not case.smaller:
                raise
            reference_kinds = None  # the arguments do not mean anything to the kernel
        _restore(arrays, initial_values)
        if reference_kinds is not None:
            try:
                new = [
                    text
                    for kind, text in _check_errors(other, ranges)
                    if kind not in reference_kinds
                ]
            except ExecutionError as error:
                new = [error.message]
            messages |= dict.fromkeys(new)
            _restore(arrays, initial_values)
    return list(messages)


def _limit_grid(launch: Launch, most: int) -> Launch:
    """The launch, or one of `CHECKED_OF_MORE` of its workgroups at most where it has more than
    `most`."""
    if math.prod(launch.grid) <= most:
        return launch
    grid, budget = [], CHECKED_OF_MORE
    for size in launch.grid:
        grid.append(min(size, budget))
        budget //= max(1, grid[-1])
    x, y, z = grid
    return replace(launch, grid=(x, y, z))


def _check_errors(launch: Launch, ranges: list[AddressRange]) -> list[tuple[str, str]]:
    """(kind, text) of the errors that checks report."""
    reports = Reports()
    checked_emulator(reports, threads=1, canary=0).emulator.run(launch, ranges)
    return [
        (report.kind.rule, f"{report.kind.rule}: {report.message}") for report in reports.errors
    ]


__all__ = ["ROUNDING", "SEEDS", "WORKGROUPS", "ExecutionResult", "compare_launches"]
