"""One launch of a kernel in a file, executed on the emulator, and what it did to its arrays."""

from __future__ import annotations

import contextlib
import math
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wavecast import limits
from wavecast.errors import InputError, LaunchError, UnknownName, UsageError
from wavecast.pipeline.plan import Plan, Planned
from wavecast.runtimes.module import Function, Module, load
from wavecast.runtimes.module.described_array import BLOCK, DescribedArray, blocks_of
from wavecast.runtimes.module.language import read, to_numpy
from wavecast.runtimes.module.memory import ACCEPTED

if TYPE_CHECKING:
    from wavecast.pipeline.execute.options import ExecutionOptions


_WORKING_BYTES = 64 * BLOCK
"""What comparisons of blocks take besides the arrays."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """An array against what was expected: how many of its elements differ by more than `atol` plus
    `rtol` of the expected value, the largest difference, and where the first is."""

    different: int
    largest: float
    first: tuple[int, ...]
    actual: float
    expected: float
    rtol: float
    atol: float


@dataclass(frozen=True, slots=True)
class ArrayResult:
    """What became of one array argument: an array or a tensor. `changed` counts elements that are
    not what they were; `stated` says whether they were what the user says, else they were zeros."""

    name: str
    array: Any
    changed: int
    comparison: Comparison | None = None
    saved: Path | None = None
    stated: bool = True

    @property
    def dtype(self) -> str:
        return str(self.array.dtype).removeprefix("torch.")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def blocks(self) -> Iterator[np.ndarray]:
        """The elements in order, as numpy has them."""
        return blocks_of(self.array)


@dataclass(frozen=True, slots=True)
class Execution:
    """A launch that ran: `seconds` of this machine, translation included."""

    kernel: str
    target: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    seconds: float
    outcomes: tuple[ArrayResult, ...]

    @property
    def as_expected(self) -> bool:
        return not any(o.comparison and o.comparison.different for o in self.outcomes)

    @property
    def zeros(self) -> tuple[str, ...]:
        """Arrays of zeros before and after the launch, of which nobody has stated the contents."""
        return tuple(o.name for o in self.outcomes if not o.stated and not o.changed)


def execute_code(
    path: str | Path, plan: Plan, options: ExecutionOptions, compiler_options: Sequence[str] = ()
) -> Execution:
    """Launch a kernel of a HIP file, assembly or code object as planned.

    Raises WavecastError where the plan does not fit the kernel or the launch breaks off.
    """
    module = load(
        path,
        options.arch,
        options=compiler_options,
        threads=options.threads,
        max_instructions=options.max_instructions,
        trace=options.trace,
        check=False if options.check is None else options.check,
        launched=options.launched,
    )
    kernel = _select_kernel(module, plan.kernel)
    if plan.grid is None or plan.block is None:
        raise UsageError(f"{kernel.name} needs a grid and a block", hint="--grid 64 --block 256")
    arguments = order_arguments(kernel, plan.arguments)
    contents = {name: read(item.value, item.folder) for name, item in arguments.items()}
    expected = {
        name: read(item.expect, item.folder) for name, item in arguments.items() if item.expect
    }
    for name in expected:
        _check_comparable(name, contents[name], expected[name])
    arrays = {
        name: content for name, content in contents.items() if isinstance(content, DescribedArray)
    }
    _check_memory(kernel, arguments, arrays)
    values = {
        name: content.array() if isinstance(content, DescribedArray) else content
        for name, content in contents.items()
    }
    started = time.perf_counter()
    _call(kernel, plan, plan.grid, plan.block, values)
    seconds = time.perf_counter() - started
    outcomes = tuple(
        _outcome(name, values[name], array, arguments[name], expected.get(name))
        for name, array in arrays.items()
    )
    for outcome in outcomes:
        if outcome.saved is not None:
            _save(outcome.saved, outcome.array)
    return Execution(kernel.name, kernel.code.target, plan.grid, plan.block, seconds, outcomes)


def _check_memory(
    kernel: Function, arguments: Mapping[str, Planned], arrays: Mapping[str, DescribedArray]
) -> None:
    """Raises UsageError, before anything is allocated, where the arrays do not fit into memory."""
    if not arrays:
        return
    total = sum(array.nbytes for array in arrays.values()) + _WORKING_BYTES
    largest = max(arrays, key=lambda name: arrays[name].nbytes)
    limits.check_memory(total, f"{kernel.name} with {largest}={arguments[largest].value}")


def _select_kernel(module: Module, name: str) -> Function:
    if name:
        return module[name]
    if len(module) == 1:
        return next(iter(module.values()))
    names = ", ".join(function.name for function in module.values())
    raise UsageError(f"{module.source} has {len(module)} kernels", hint=f"--kernel: {names}")


def order_arguments(kernel: Function, arguments: Mapping[str, Planned]) -> dict[str, Planned]:
    """The arguments in the kernel's order. Raises UnknownName, LaunchError for a missing one, and
    as `read` where a value of the others is wrong."""
    by_offset = all(name.startswith("@") for name in arguments)
    if arguments and by_offset and not kernel.parameters:
        return dict(arguments)
    names = [parameter.name for parameter in kernel.parameters]
    numbers = {str(index + 1): name or str(index + 1) for index, name in enumerate(names)}
    labels = list(numbers.values())
    offsets = {
        f"@{parameter.offset}": label
        for parameter, label in zip(kernel.parameters, labels, strict=True)
    }
    by_label: dict[str, Planned] = {}
    for name, item in arguments.items():
        label = _at_offset(kernel, name, offsets) or numbers.get(name, name)
        if label not in labels:
            raise UnknownName(f"argument of {kernel.name}:", name, labels)
        if label in by_label:
            raise LaunchError(f"{kernel.name}: argument {label} is given twice")
        by_label[label] = item
    missing = [label for label in labels if label not in by_label]
    if missing:
        for item in arguments.values():
            read(item.value, item.folder)  # a wrong value is the first mistake
        raise LaunchError(
            f"{kernel.name}: no value for {', '.join(missing)}", hint=f"--arg {missing[0]}=…"
        )
    return {label: by_label[label] for label in labels}


def _at_offset(kernel: Function, name: str, labels: Mapping[str, str]) -> str:
    """The label of the argument that `@16` names, "" for another name. Raises LaunchError where no
    argument begins there."""
    if not name.startswith("@") or not labels:
        return ""
    with contextlib.suppress(ValueError):
        name = f"@{int(name[1:], 0)}"
    if name not in labels:
        known = ", ".join(f"{at} {label}" for at, label in labels.items())
        raise LaunchError(f"{kernel.name} has no argument at {name}", hint=f"it has {known}")
    return labels[name]


def _call(kernel: Function, plan: Plan, grid: Any, block: Any, values: Mapping[str, Any]) -> None:
    if any(name.startswith("@") for name in values):
        segment, memory = segment_of(kernel, values)
        call_arguments, more = [segment], memory
    else:
        call_arguments, more = list(values.values()), []
    kernel(
        grid, block, *call_arguments,
        dynamic_lds=plan.dynamic_lds or 0, cluster=plan.cluster, memory=more,
    )  # fmt: skip


def segment_of(kernel: Function, values: Mapping[str, Any]) -> tuple[bytes, list[Any]]:
    """The argument segment of values named by their offset, and the arrays among them. Raises
    LaunchError and UsageError."""
    data, memory = bytearray(), []
    for name, value in values.items():
        try:
            offset = int(name.removeprefix("@"), 0)
        except ValueError:
            offset = -1
        if not 0 <= offset < 1 << 16:
            raise UsageError(f"{name} is not an offset in the argument segment", hint="such as @16")
        packed = _bytes_of(value)
        if packed is None:
            raise LaunchError(
                f"{kernel.name}: the size of {name} is not known",
                hint=f"say its dtype, such as i32:{value}, or give {ACCEPTED}",
            )
        if _is_array(value):
            memory.append(value)
        data.extend(bytes(max(0, offset + len(packed) - len(data))))
        data[offset : offset + len(packed)] = packed
    return bytes(data), memory


def _bytes_of(value: Any) -> bytes | None:
    if value is None:
        return bytes(8)
    if isinstance(value, np.ndarray):
        return struct.pack("<Q", value.ctypes.data)
    if _is_array(value):
        return struct.pack("<Q", value.data_ptr())
    return value if isinstance(value, bytes) else getattr(value, "tobytes", lambda: None)()


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "data_ptr")


def _check_comparable(name: str, value: Any, expected: Any) -> None:
    if not isinstance(value, DescribedArray):
        raise UsageError(f"{name} is not an array: --expect needs one")
    if isinstance(expected, DescribedArray) and value.shape != expected.shape:
        raise UsageError(
            f"{name} has shape {value.shape}, what is expected in it has {expected.shape}"
        )


def _outcome(
    name: str, value: Any, before: DescribedArray, planned: Planned, expected: Any
) -> ArrayResult:
    pairs = zip(blocks_of(value), before.blocks(), strict=True)
    changed = sum(int(np.count_nonzero(~_same(now, was))) for now, was in pairs)
    comparison = _compare_array(value, expected, planned) if planned.expect else None
    return ArrayResult(name, value, changed, comparison, planned.save, before.stated)


def _save(path: Path, array: Any) -> None:
    try:
        np.save(path, to_numpy(array), allow_pickle=False)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _same(first: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Equal elements; a NaN equals a NaN."""
    return (first == other) | ((first != first) & (other != other))


def _compare_array(value: Any, expected: Any, planned: Planned) -> Comparison:
    shape, is_array = tuple(value.shape), isinstance(expected, DescribedArray)
    wanted_blocks = expected.blocks() if is_array else repeat(expected)
    different, largest, first, sample, position = 0, 0.0, 0, None, 0
    for actual, reference in zip(blocks_of(value), wanted_blocks, strict=False):
        reference = np.broadcast_to(reference, actual.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.isclose(
                actual, reference, rtol=planned.rtol, atol=planned.atol, equal_nan=True
            )
            distance = np.abs(actual.astype(np.float64) - reference.astype(np.float64))
        if np.isfinite(distance).any():
            largest = max(largest, float(np.nanmax(distance)))
        wrong = np.flatnonzero(~close)
        at = int(wrong[0]) if len(wrong) else 0
        if sample is None or (len(wrong) and not different):
            first, sample = position + at, (float(actual[at]), float(reference[at]))
        different += len(wrong)
        position += len(actual)
    index = tuple(map(int, np.unravel_index(first, shape))) if sample is not None else ()
    return Comparison(
        different, largest, index, *(sample or (0.0, 0.0)), planned.rtol, planned.atol
    )


__all__ = [
    "ArrayResult",
    "Comparison",
    "Execution",
    "execute_code",
    "order_arguments",
    "segment_of",
]
