"""Which operator launched a kernel, and which module called an operator, by time and thread."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.profiles.profile import NONE, HostCalls, Profile
from wavecast.wording import count

_MODULE, _OP, _CALL = range(3)
_PART: Final = 1 << 16
"""Rows that are Python integers at once: they take ten times the memory of their columns."""
Column = NDArray[np.int64]


def nest(profile: Profile) -> None:
    """Fill `parent` and `module` of the host's calls, and `op` of what devices did.

    The parent of an operator is the operator around it, that of a call of the runtime the innermost
    operator around it. A module is a path such as `Model_0.Layer_3.Attention_3`.
    """
    tables: tuple[HostCalls, ...] = (profile.module_calls, profile.ops, profile.calls)
    for thread in sorted({number for table in tables for number in table.thread}):
        _thread(profile, tables, thread)
    by_correlation = {
        correlation: number
        for number, correlation in enumerate(profile.calls.correlation)
        if correlation != NONE
    }
    for activities in (profile.launches, profile.copies):
        for number, correlation in enumerate(activities.correlation):
            call = by_correlation.get(correlation)
            if call is not None:
                activities.op[number] = profile.calls.parent[call]


def _thread(profile: Profile, tables: tuple[HostCalls, ...], thread: int) -> None:
    kinds, numbers, starts, ends = [], [], [], []
    for kind, table in enumerate(tables):
        mine = np.flatnonzero(np.asarray(table.thread) == thread)
        begin = np.asarray(table.start)[mine]
        kinds.append(np.full(mine.size, kind))
        numbers.append(mine)
        starts.append(begin)
        ends.append(begin + np.asarray(table.duration)[mine])
    kind_of, number_of = np.concatenate(kinds), np.concatenate(numbers)
    start_of, end_of = np.concatenate(starts), np.concatenate(ends)
    order = np.lexsort((kind_of, -end_of, start_of))
    stack: list[tuple[int, int, int, int]] = []  # (end, kind, module path, operator)
    columns = kind_of, number_of, start_of, end_of
    for kind, number, start, end in _rows(columns, order):
        while stack and stack[-1][0] <= start and stack[-1][0] < end:
            stack.pop()
        _, _, module, operator = stack[-1] if stack else (0, 0, NONE, NONE)
        table = tables[kind]
        table.parent[number], table.module[number] = operator, module
        if kind == _MODULE:
            name = profile.modules[table.info[number]]
            path = f"{profile.modules[module]}.{name}" if module != NONE else name
            module = profile.modules.number(path)
        elif kind == _OP:
            operator = number
        else:
            continue
        stack.append((end, kind, module, operator))


def _rows(columns: Sequence[Column], order: Column) -> Iterator[tuple[int, int, int, int]]:
    """The rows of columns in an order; as Python integers a part of them at a time."""
    for first in range(0, len(order), _PART):
        part = order[first : first + _PART]
        yield from zip(*(column[part].tolist() for column in columns), strict=True)


def adopt(profile: Profile) -> None:
    """Give launches without an operator, whose calls are not in the file, that of equal kernels.

    Kernels are equal by name and sizes, or where the file lacks their sizes by name; if operators
    with several sizes launch such kernels, the one whose kernels take the closest time is taken.
    """
    launches = profile.launches
    times: defaultdict[tuple[object, ...], defaultdict[int, list[int]]] = defaultdict(
        lambda: defaultdict(list)
    )
    example: dict[int, int] = {}
    for info, op, duration in zip(launches.info, launches.op, launches.duration, strict=True):
        if op != NONE:
            number = profile.ops.info[op]
            example.setdefault(number, op)
            for key in _keys(profile, info):
                times[key][number].append(duration)
    calls = _AddedCalls(profile, example)
    medians = {
        key: {number: float(np.median(all_)) for number, all_ in durations.items()}
        for key, durations in times.items()
    }
    adopted = 0
    for number, (info, op) in enumerate(zip(launches.info, launches.op, strict=True)):
        if op != NONE:
            continue
        candidates = next((medians[key] for key in _keys(profile, info) if key in medians), None)
        if candidates:
            nanoseconds = max(1, launches.duration[number])
            closest = _closest(candidates, nanoseconds)
            launches.op[number] = calls.of(closest, profile.kernels[info].name)
            adopted += 1
    if adopted:
        profile.notes.append(
            f"{count(adopted, 'launch', 'launches')} without a call in the file: taken as calls of "
            "the operator whose kernels are equal and take the closest time"
        )


def _closest(times: Mapping[int, float], duration: int) -> int:
    """The key of the time whose ratio to `duration` is closest to 1."""
    return min(times, key=lambda key: abs(math.log(max(1.0, times[key]) / duration)))


class _AddedCalls:
    """Calls of operators that are not in the file, each like the one in `example`: a call takes
    launches until it has as many of each kernel."""

    def __init__(self, profile: Profile, example: dict[int, int]) -> None:
        self._ops, self._example = profile.ops, example
        by_call: defaultdict[int, Counter[str]] = defaultdict(Counter)
        examples = set(example.values())
        for info, op in zip(profile.launches.info, profile.launches.op, strict=True):
            if op in examples:
                by_call[op][profile.kernels[info].name] += 1
        self._kernels = {number: by_call[op] for number, op in example.items()}
        self._current: dict[int, tuple[int, Counter[str]]] = {}

    def of(self, number: int, kernel: str) -> int:
        """The call of operator `number` that launches `kernel`."""
        call, remaining = self._current.get(number, (NONE, Counter()))
        if remaining[kernel] <= 0:
            like = self._example[number]
            call, remaining = len(self._ops), Counter(self._kernels[number])
            ops = self._ops
            ops.add(ops.info[like], ops.thread[like], ops.start[like], ops.duration[like])
            ops.parent[call], ops.module[call] = ops.parent[like], ops.module[like]
            self._current[number] = (call, remaining)
        remaining[kernel] -= 1
        return call


def _keys(profile: Profile, info: int) -> tuple[tuple[object, ...], ...]:
    kernel = profile.kernels[info]
    by_name: tuple[object, ...] = (kernel.name,)
    if kernel.blocks == (0, 0, 0):
        return (by_name,)
    return ((kernel.name, kernel.blocks, kernel.threads), by_name)


__all__ = ["adopt", "nest"]
