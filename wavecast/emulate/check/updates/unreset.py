"""Counters of arrivals that a launch leaves full, so that in the next one nobody arrives last.

A launch of a kernel has counted from 0 to its target or back, and a workgroup has found that it is
the last one (`arrivals.py`). The next launch of it with the same grid finds the counters as they
were left, counts on, and no workgroup is the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.emulate.check import log
from wavecast.emulate.check.clocks.records import INSTRUCTION, WRITES
from wavecast.emulate.check.updates.arrivals import COUNT, LARGEST, SMALLEST, Arrival, results
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import AddressInterval, bytes_at
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.program import Program

_MOST: Final = 1 << 27
"""Bytes that counters are looked for in: a launch with more is not compared."""
_Site = SourceLocation | int
"""Where an instruction is in the source, else its index: compilers copy code, and compile a kernel
again for other arguments."""
_Key = tuple[str, tuple[int, ...], _Site, _Site, int]
"""The kernel and the grid of a launch; the atomic operation, the comparison, and the step."""


@dataclass(frozen=True, slots=True)
class CounterValues:
    """The counters that an atomic operation of a launch has changed last: their `addresses`, and
    their values `before` and `after` the launch (all uint64)."""

    addresses: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[tuple[np.ndarray, ...]]) -> CounterValues:
        """The counters of several pieces of memory, each once."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        if not columns:
            columns = [np.zeros(0, np.uint64)] * 3
        addresses, firsts = np.unique(columns[0], return_index=True)
        return cls(addresses, *(column[firsts] for column in columns[1:]))

    def are_full(self, step: int, smallest: int, largest: int) -> bool:
        """Whether every counter went from 0 to a target, or from a target to 0, and the last
        arrival of several was found by what it returned or made."""
        after, before = self.after.astype(np.int64), self.before.astype(np.int64)
        ends = (before == 0) != (after == 0)
        several = abs(after - before) >= 2 * abs(step)
        hits = [(smallest <= values) & (values <= largest) for values in (after, after - step)]
        return bool(self.addresses.size and (ends & several & (hits[0] | hits[1])).all())

    def left_by(self, other: CounterValues) -> Iterator[int]:
        """The counters that begin as another launch left them, by number."""
        _, mine, theirs = np.intersect1d(self.addresses, other.addresses, return_indices=True)
        for here, there in zip(mine, theirs, strict=True):
            if self.before[here] == other.after[there] and self.after[here] != self.before[here]:
                yield int(here)


class UnresetCounters:
    """The counters that the last launch of each kernel left full, by the first of them: those of
    other GPUs and buffers are others."""

    def __init__(self) -> None:
        self._full: dict[tuple[_Key, int], CounterValues] = {}

    def unreset(
        self, key: _Key, values: CounterValues, words: Sequence[int]
    ) -> tuple[int, int] | None:
        """A launch has ended with `words` of a comparison: the address of a counter that nobody has
        reset, and the value it began with; None for none."""
        counters = key, int(values.addresses[0]) if values.addresses.size else 0
        full = self._full.pop(counters, None)
        if words[COUNT]:
            if values.are_full(key[-1], words[SMALLEST], words[LARGEST]):
                self._full[counters] = values
            return None
        first = None if full is None else next(values.left_by(full), None)
        if first is None:
            return None
        return int(values.addresses[first]), int(values.before[first])


class LaunchArrivals:
    """The arrivals of one launch. Memory: `words` of the comparisons, and a copy of what the
    counters may lie in, by number of its range."""

    def __init__(
        self, arrivals: Sequence[Arrival], numbers: set[int], ranges: Sequence[AddressInterval]
    ) -> None:
        sizes = {number: ranges[number][1] - ranges[number][0] for number in numbers if number}
        few = sum(sizes.values()) <= _MOST
        self.arrivals = arrivals if few else ()
        self.comparisons = list(dict.fromkeys(arrival.comparison for arrival in arrivals))
        self.words = np.array([results()] * max(1, len(self.comparisons)), np.uint64)
        self.ranges = ranges
        self.before = (
            {n: bytes_at(*ranges[n]).copy() for n in sizes if sizes[n]} if self.arrivals else {}
        )

    def attach(self, context: np.ndarray) -> None:
        context[log.EQUALITIES] = self.words.ctypes.data

    def reports(
        self,
        counters: UnresetCounters,
        program: Program,
        launch: Launch,
        shadows: Sequence[tuple[np.ndarray, ...]],
        name_of: Callable[[int], str],
    ) -> list[Report]:
        """The launch has ended: the counters that nobody has reset before it."""
        reports = []
        for sites, copies in self._copies(program).items():
            key = (launch.code.kernel, tuple(launch.grid), *sites)
            numbers = {self.comparisons.index(arrival.comparison) for arrival in copies}
            words = self.words[sorted(numbers)]
            ends = int(words[:, SMALLEST].min()), int(words[:, LARGEST].max())
            parts = [part for arrival in copies for part in self._parts(arrival, shadows)]
            counter = counters.unreset(
                key, CounterValues.of(parts), (int(words[:, COUNT].sum()), *ends)
            )
            if counter is not None:
                reports.append(_report(program, copies[0], name_of(counter[0]), *counter))
        return reports

    def _copies(self, program: Program) -> dict[tuple[_Site, _Site, int], list[Arrival]]:
        """The arrivals by what they are in the source."""
        copies: dict[tuple[_Site, _Site, int], list[Arrival]] = {}
        for arrival in self.arrivals:
            atomic, comparison = (
                program.instructions[n].location or n for n in (arrival.atomic, arrival.comparison)
            )
            copies.setdefault((atomic, comparison, arrival.step), []).append(arrival)
        return copies

    def _parts(
        self, arrival: Arrival, shadows: Sequence[tuple[np.ndarray, ...]]
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """By range the counters: addresses, values before and after."""
        kind, size = (np.uint64, 8) if arrival.bytes == 8 else (np.uint32, 4)
        for number, before in self.before.items():
            records = shadows[number][WRITES]
            first, end = self.ranges[number]
            mine = records >> np.uint64(INSTRUCTION.first) == np.uint64(arrival.atomic)
            counters = np.unique(np.flatnonzero(mine & (records != 0)) * 4 // size)
            whole = (end - first) // size
            counters = counters[counters < whole]
            now, then = (
                content[: whole * size].view(kind) for content in (bytes_at(first, end), before)
            )
            columns = counters * size + first, then[counters], now[counters]
            yield tuple(column.astype(np.uint64) for column in columns)


def _report(program: Program, arrival: Arrival, name: str, address: int, value: int) -> Report:
    atomic = program.instructions[arrival.atomic]
    comparison = program.instructions[arrival.comparison]
    line = comparison.location
    where = f" at {line.outermost}" if line is not None else ""
    return Report(
        kind=Kind.COUNTER_NOT_RESET,
        kernel=program.name,
        target=program.target,
        message=f"counts on from {value} in {name}, where the launch before this one has left it: "
        f"the comparison{where} has found the last arrival in that launch, and none in this one; "
        "reset the counter when the last one has arrived, or before every launch",
        instruction=atomic.index,
        text=atomic.decoded.text,
        location=atomic.location,
        addresses=(address,),
        other=comparison.index,
        other_text=comparison.decoded.text,
        other_location=line,
    )


__all__ = ["CounterValues", "LaunchArrivals", "UnresetCounters"]
