"""Executing a sample of a launch: the workgroups one die runs first, some of them to their end.

Those tell how often code runs; of the others the beginning is enough to see what they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Final, Protocol

import numpy as np

from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.launch import AddressRange, Emulator
from wavecast.emulate.trace.logs import Reduce
from wavecast.emulate.trace.mode import TraceMode
from wavecast.emulate.trace.result import Stream, Trace
from wavecast.isa.program import Kernel
from wavecast.perfmodel.cache.accesses import Accesses, ArrayMap, reduce_records
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.profile import SampleCoverage
from wavecast.sampling.isolation import run_in_fork
from wavecast.sampling.requests import RequestTable

MOST: Final = 50_000_000
"""Instructions a wave of the first workgroup may execute: some seconds. More means a loop whose
end depends on data that the sample does not have."""
INSTRUCTIONS: Final = 1_500_000
"""Wave-instructions executed of whole workgroups after the first: about a tenth of a second."""
ENTRIES: Final = 300_000
"""Blocks and accesses recorded of all waves of a sample; of workgroups that execute very many
instructions up to twice as many, half of what one executes."""
WAVE_ENTRIES: Final = 8192
"""Most blocks and accesses recorded of a wave; the rest is assumed to repeat them."""
LEAST_ENTRIES: Final = 768
"""Blocks and accesses of a wave that are worth recording."""
GLANCE: Final = 96
"""Blocks and accesses of a wave that show what dies share."""
PROBED: Final = 24_000_000
"""Wave-instructions executed, unrecorded, of workgroups from all over the grid."""
LEAST_PROBES: Final = 4
MOST_PROBES: Final = 64
GOLDEN: Final = (5**0.5 - 1) / 2
"""Fractions of its multiples are evenly distributed and periodic in nothing."""
KEPT: Final = 32
"""Launch codes whose translation is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Workgroups that were executed.

    `numbers` (i64, sorted) are theirs, `streams` their waves in order. `block_counts` (f64[blocks])
    are the executions per basic block of all of them to their end, scaled from those workgroups
    that were executed so far. `usual` (f64[blocks]) are those of as many usual
    workgroups of the launch: the first ones may execute more than others, or less. `longest` is the
    number of instructions of the longest workgroup that was executed over that of a usual one.
    `accesses` are their requests, numbered by stream, in the `arrays` of the launch. `shared`
    (f64[arrays], 0 to 1) is what all dies touch of an array at once over the sum of what each does:
    1 without any sharing.
    """

    kernel: Kernel
    launch: Launch
    placement: LaunchPlacement
    numbers: np.ndarray
    streams: tuple[Stream, ...]
    block_counts: np.ndarray
    usual: np.ndarray
    longest: float
    accesses: Accesses
    arrays: ArrayMap
    table: RequestTable
    shared: np.ndarray

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return len(self.streams) // len(self.numbers)

    @property
    def coverage(self) -> SampleCoverage:
        """How much of the launch the sample shows. The variation of recordings that were cut is 0:
        they are as long as each other."""
        first_round = self.placement.first_round_of_unit()
        executed = min(len(self.numbers), len(first_round))
        return SampleCoverage(executed, len(first_round), self._variation())

    def _variation(self) -> float:
        if not all(stream.complete for stream in self.streams):
            return 0.0
        lengths = self.table.lengths
        each = [float(lengths[stream.blocks.astype(np.int64)].sum()) for stream in self.streams]
        sums = np.array(each).reshape(len(self.numbers), -1).sum(axis=1)
        return float(sums.std() / max(1.0, sums.mean()))

    @property
    def instruction_counts(self) -> np.ndarray:
        """Executions per instruction and usual workgroup, f64[instructions]."""
        return np.repeat(self.usual, self.table.lengths) / len(self.numbers)


def sample(
    launch: Launch, ranges: Sequence[AddressRange], placement: LaunchPlacement, device: Device
) -> Sample:
    """Execute the workgroups of the first round on one die, as many as the budget allows, those of
    the first compute unit before the others. Memory stays as it is.

    `ranges` are the host addresses the launch may touch. Raises Unsupported for code that cannot be
    executed, ExecutionError when the sample breaks off.
    """
    emulator = _emulator(launch.code.digest)
    kernel = emulator.translate(launch.code).kernel
    lanes = kernel.descriptor.wave_size
    table, arrays = RequestTable.of(kernel.program, device, lanes), ArrayMap.of(ranges)
    reduce = partial(reduce_records, instructions=table.asked, arrays=arrays)
    reduce(np.zeros((0, 2 + lanes), np.uint64))  # compiled here, not in every fork
    run = partial(_run, emulator, launch, ranges, reduce)
    part = run_in_fork(partial(_sample, run, launch, placement, len(arrays.sizes)))
    return Sample(
        kernel=kernel,
        launch=launch,
        placement=placement,
        numbers=part["numbers"],
        streams=tuple(Stream(**stream) for stream in part["streams"]),
        block_counts=part["block_counts"],
        usual=part["usual"],
        longest=part["longest"],
        accesses=Accesses.join([Accesses(**access) for access in part["accesses"]]),
        arrays=arrays,
        table=table,
        shared=part["shared"],
    )


class _Run(Protocol):
    """Runs workgroups of a launch, recording `entries` of every wave; waves end after `cut`."""

    def __call__(self, numbers: Sequence[int], entries: int, cut: int | None = None) -> Trace: ...


def _sample(
    run: _Run, launch: Launch, placement: LaunchPlacement, arrays: int
) -> dict[str, object]:
    """In the fork: the fields of a `Sample` that executing gives, as plain values."""
    unit_numbers, all_ = placement.first_round_of_unit(), placement.first_round_of_die()
    first = run(unit_numbers[:1], WAVE_ENTRIES, MOST)
    if first.instructions >= MOST:
        raise ExecutionError(
            f"a workgroup did not end within {MOST:,} instructions of a wave: "
            "does a loop depend on data that is not there?"
        )
    waves, full = first.waves, max(1, first.instructions)
    recorded = (sum(len(s.blocks) for s in first.streams) + sum(map(len, first.reduced))) / waves
    unit_set = set(unit_numbers)
    order = [*unit_numbers, *(number for number in all_ if number not in unit_set)]
    whole = min(len(order), 1 + int(INSTRUCTIONS / full))
    budget = min(2 * ENTRIES, max(ENTRIES, full // 2))
    # waves may be longer than those of the first workgroup
    entries = int(min(WAVE_ENTRIES, max(LEAST_ENTRIES, budget / waves / len(order))))
    room = min(len(order), max(1, int(ENTRIES / max(1.0, min(recorded, entries)) / waves)))
    traces = [first, *(run([number], entries) for number in order[1 : min(whole, room)])]
    counts = sum((trace.block_counts for trace in traces), np.zeros_like(first.block_counts))
    whole = min(whole, room)
    usual, lasted = counts / whole, [trace.instructions for trace in traces]
    if whole < placement.workgroups:
        probes = _probes(placement.workgroups, full)
        probed = [run([number], 1, MOST) for number in probes]
        usual = sum((trace.block_counts for trace in probed), np.zeros_like(counts)) / len(probes)
        lasted = [trace.instructions for trace in probed]
    if room > whole:
        # an entry is a block or an access; blocks have some ten instructions each
        cut = int(full / waves * entries / max(recorded, 1.0)) + 1
        traces.append(run(order[whole:room], entries, cut))
    numbers = np.array(sorted(order[:room]), np.int64)
    streams = {(s.workgroup, s.wave): s for trace in traces for s in trace.streams}
    ordered = tuple(
        streams[launch.workgroup(int(number)), wave] for number in numbers for wave in range(waves)
    )
    scaled = counts.astype(float) * (room / whole)
    ran = (*([number] for number in order[:whole]), order[whole:room])
    accesses = [
        _renumber_streams(part, np.searchsorted(numbers, np.sort(of)), waves)
        for trace, of in zip(traces, (of for of in ran if of), strict=True)
        for part in trace.reduced
    ]
    steps = full / waves / max(recorded, 1.0)
    return {
        "numbers": numbers,
        "streams": [_fields(stream) for stream in ordered],
        "block_counts": scaled,
        "usual": usual * room,
        "longest": max(1.0, max(lasted) * len(lasted) / max(1, sum(lasted))),
        "accesses": [_fields(access) for access in accesses],
        "shared": _shared_fraction(run, placement, waves, int(steps * GLANCE) + 1, arrays),
    }


def _fields(value: Stream | Accesses) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _probes(workgroups: int, full: int) -> tuple[int, ...]:
    """Workgroups from all over the grid, when one executes `full` instructions: in pairs at equal
    distances from its start and its end, so that work which grows along the grid averages out."""
    count = min(workgroups, MOST_PROBES, max(LEAST_PROBES, PROBED // full))
    parts = (np.arange(-(-count // 2)) + 0.5) * GOLDEN % 1.0
    positions = np.concatenate([parts, 1.0 - parts]) * workgroups
    return tuple(np.unique(np.minimum(positions.astype(np.int64), workgroups - 1)).tolist())


def _shared_fraction(
    run: _Run, placement: LaunchPlacement, waves: int, cut: int, arrays: int
) -> np.ndarray:
    """How much dies share of each array at the start (f64[arrays]): distinct sectors of one wave of
    every workgroup, on all dies together over the sum of each alone."""
    numbers = placement.first_round()
    if placement.dies == 1 or len(numbers) <= placement.dies:
        return np.ones(arrays)
    trace = run(numbers, GLANCE, cut)
    parts = [[np.zeros(0, np.int64)] for _ in range(arrays)]
    for part in trace.reduced:
        lengths = np.diff(part.start)
        first = part.stream % waves == 0
        die = np.repeat(part.stream // waves % placement.dies, lengths)
        array, mask = np.repeat(part.array, lengths), np.repeat(first, lengths)
        tagged = part.sectors.astype(np.int64) << 8 | die
        for number in np.unique(array[mask]).tolist():
            parts[number].append(tagged[mask & (array == number)])
    shares = np.ones(arrays)
    for number, tagged in enumerate(map(np.concatenate, parts)):
        each = len(np.unique(tagged))
        if each:
            shares[number] = len(np.unique(tagged >> 8)) / each
    return shares


def _renumber_streams(part: Accesses, positions: np.ndarray, waves: int) -> Accesses:
    """The accesses of some workgroups, with streams numbered as in the whole sample, where these
    workgroups are at `positions`."""
    return replace(part, stream=positions[part.stream // waves] * waves + part.stream % waves)


def _run(
    emulator: Emulator,
    launch: Launch,
    ranges: Sequence[AddressRange],
    reduce: Reduce,
    numbers: Sequence[int],
    entries: int,
    cut: int | None = None,
) -> Trace:
    mode = TraceMode(
        memory=False,
        workgroups=numbers,
        only=True,
        streams=numbers,
        limit_entries=entries,
        reduce=reduce,
    )
    try:
        emulator.run(launch, ranges, mode=mode, cut=cut)
    except ExecutionError as error:
        raise ExecutionError(f"a sample of workgroups could not run: {error.message}") from None
    return mode.traces[0]


@lru_cache(maxsize=KEPT)
def _emulator(digest: str) -> Emulator:
    del digest
    return Emulator(1, TraceMode(memory=False, streams=1))


def translate(code: CodeObject) -> NativeKernel:
    """The native code that samples of a kernel execute. Raises as `Emulator.translate`."""
    return _emulator(code.digest).translate(code)


__all__ = ["Sample", "sample", "translate"]
