"""From a kernel and a launch to `Values`: sample waves, follow them, put the findings together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wavecast.analyze.values.access import AddressPattern, Sighting, describe, requested_bytes
from wavecast.analyze.values.domain import WaveOps
from wavecast.analyze.values.inputs import Inputs, WaveId
from wavecast.analyze.values.paths import Paths
from wavecast.analyze.values.plans import Plans
from wavecast.analyze.values.pointers import Pointers
from wavecast.analyze.values.roots import Uses, roots, uses
from wavecast.analyze.values.sample import first_samples, more_samples
from wavecast.analyze.values.scratch import SLOT_BASE
from wavecast.analyze.values.slices import Slices, slices
from wavecast.analyze.values.state import RegisterState
from wavecast.analyze.values.steps import Steps
from wavecast.analyze.values.walk import Walk, WalkResult
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import KernelDescriptor, Program, first_block
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.targets import isa_target

BUDGET = 25_000
"""Instructions interpreted over all sampled waves before a walk gives up."""

_CORNERS = 3
"""First samples of a launch with several workgroups or waves."""


@dataclass(frozen=True, slots=True)
class Values:
    """What static evaluation found.

    `block_counts[b]` is how often a wave executes block `b`, averaged over the sampled waves, None
    where it depends on what is not known (`unknown_blocks` says on what). `counts_of_waves[w][b]`
    is the same of wave `w` of a workgroup, empty where its waves are alike. `longest` is the number
    of instructions of the longest sampled wave over that of the average one. `requested` has, per
    argument, the bytes one wave asks for (loaded, stored; atomics count as both), where the counts
    of all its accesses are known. `notes` are assumptions the counts rest on.
    """

    block_counts: tuple[float | None, ...]
    trip_counts: tuple[tuple[float | None, str], ...]
    unknown_blocks: Mapping[int, str]
    accesses: Mapping[int, AddressPattern]
    uses: Uses
    requested: Mapping[str, tuple[float, float]]
    notes: tuple[str, ...]
    sampled_waves: int
    counts_of_waves: tuple[tuple[float | None, ...], ...]
    longest: float

    @property
    def arguments_read(self) -> frozenset[str]:
        """Parameters the kernel loads from."""
        return self.uses.read

    @property
    def arguments_written(self) -> frozenset[str]:
        """Parameters the kernel stores to."""
        return self.uses.written

    @property
    def arguments_updated(self) -> frozenset[str]:
        """Parameters the kernel updates atomically."""
        return self.uses.updated

    @property
    def complete(self) -> bool:
        """Every access to global memory was traced to a parameter (see `Uses`)."""
        return self.uses.complete

    def trip_count(self, loop: int) -> tuple[float | None, str]:
        """Iterations per entry of a loop, and why they are unknown or what they rest on."""
        return self.trip_counts[loop]

    def memory(self, instruction: int) -> AddressPattern | None:
        """The access of a memory instruction; None for any other, and for spills."""
        return self.accesses.get(instruction)


def evaluate(
    program: Program,
    descriptor: KernelDescriptor,
    code: CodeObject,
    launch: Launch | None = None,
) -> Values:
    """Evaluate one kernel for one launch; without a launch arguments and grid are unknown."""
    inputs = Inputs(code, descriptor, launch)
    sampling = _Sampling(program, inputs, slices(program, descriptor))
    sampling.run()
    if sampling.too_slow:
        sampling = _Sampling(program, inputs, slices(program, descriptor, False), False)
        sampling.run()
    outcomes = sampling.outcomes
    shares = _shares(sampling.workgroup, inputs.waves)
    counts = _block_counts(outcomes, sampling.followed, inputs.waves, shares)
    arguments = roots(
        program, descriptor, sampling.parts, Pointers(code, descriptor, launch=launch)
    )
    accesses = _accesses(program, sampling.parts, inputs, sampling.seen, arguments)
    reasons = _Reasons(program)
    return Values(
        block_counts=counts,
        trip_counts=_trip_counts(program, outcomes, reasons),
        unknown_blocks={
            block: reasons.of(origin)
            for outcome in outcomes
            for block, origin in outcome.unknown_blocks.items()
        },
        accesses=accesses,
        uses=uses(program, arguments),
        requested=requested_bytes(program, accesses, counts, inputs.lanes),
        notes=_notes(sampling, reasons),
        sampled_waves=len(outcomes),
        counts_of_waves=tuple(
            tuple(
                None if count is None else count * part
                for count, part in zip(counts, row, strict=True)
            )
            for row in shares.tolist()
        ),
        longest=_longest(program, outcomes, sampling.followed, counts, shares),
    )


class _Sampling:
    """Follows a few waves of a launch, more of them where the first ones differ or pass work by.

    The first ones are corners and the centre of the grid; where triangular work leaves those
    empty, the rest of the grid need not be.
    """

    def __init__(
        self, program: Program, inputs: Inputs, parts: Slices, follow_exec: bool = True
    ) -> None:
        self.program = program
        self.inputs = inputs
        self.parts = parts
        self.follow_exec = follow_exec
        self.seen: dict[int, Sighting] = {}
        self.outcomes: list[WalkResult] = []
        self.followed: list[int] = []
        """The number in its workgroup of the wave of each outcome."""
        self.workgroup: dict[int, WalkResult] = {}
        """Waves, by number, of one workgroup; empty where its waves are not known to differ."""
        self.takes_numbers = False
        """Whether floats from memory were taken not to be NaN."""
        self._budget = BUDGET
        self._plans = Plans(program, parts, Steps(program, parts, inputs, self.seen))
        self._paths = Paths(program)

    @property
    def too_slow(self) -> bool:
        """The budget did not suffice for the first waves."""
        return len(self.outcomes) < len(first_samples(self.inputs)) or any(
            outcome.cut_short for outcome in self.outcomes
        )

    def run(self) -> None:
        for who in first_samples(self.inputs):
            # room for one more like the last, or the light walk is the better one
            if self.outcomes and self._budget < 2 * self.outcomes[-1].interpreted:
                return
            self._follow(who)
        first = list(self.outcomes)
        alike = all(outcome.counts == first[0].counts for outcome in first)
        if self.too_slow or (alike and not self._passes_loops(first[0])):
            return
        if not alike:
            self._follow_workgroup(max(outcome.interpreted for outcome in first))
        affordable = self._budget // max(outcome.interpreted for outcome in first)
        for who in more_samples(self.inputs, affordable):
            self._follow(who)
        if self.outcomes[-1].cut_short:
            self.outcomes = first  # evenly spaced, or none
            del self.followed[len(first) :]

    def _follow_workgroup(self, cost: int) -> None:
        """Follow the waves of the workgroup in the middle, if they differ and the budget allows for
        `cost` each."""
        samples = first_samples(self.inputs)
        waves = self.inputs.waves
        if len(samples) < _CORNERS or waves == 1 or self._budget < waves * cost:
            return
        middle = samples[1]
        workgroup = {middle.wave: self.outcomes[1]}
        for numbers in ({0, waves - 1}, set(range(waves))):
            for number in sorted(numbers - workgroup.keys()):
                walk = self._walk(replace(middle, wave=number))
                outcome = walk.run(first_block(self.program, self.inputs.descriptor))
                self._budget -= outcome.interpreted
                if outcome.cut_short:
                    return
                workgroup[number] = outcome
            if all(outcome.counts == self.outcomes[1].counts for outcome in workgroup.values()):
                return
        self.workgroup = workgroup

    def _passes_loops(self, outcome: WalkResult) -> bool:
        """A loop that no unknown value decides about is not entered."""
        return any(
            not outcome.counts[loop.header] and loop.header not in outcome.unknown_blocks
            for loop in self.program.loops
        )

    def _follow(self, who: WaveId) -> None:
        walk = self._walk(who)
        outcome = walk.run(first_block(self.program, self.inputs.descriptor))
        self.takes_numbers |= walk.state.ops.takes_numbers
        self._budget -= outcome.interpreted
        self.outcomes.append(outcome)
        self.followed.append(who.wave)

    def _walk(self, who: WaveId) -> Walk:
        spills = self.parts.spills.values()
        size = max((slots.first + slots.count for slots in spills), default=SLOT_BASE)
        machine = FloatMode(target=isa_target(self.inputs.code.target))
        state = RegisterState(WaveOps(self.inputs.lanes, machine), size)
        for position, value in self.inputs.registers(who).items():
            state.values[position] = value
        state.exec_changed()
        first = not self.outcomes
        return Walk(
            self.program, self._plans, self._paths, state, self._budget, first, self.follow_exec
        )


def _block_counts(
    outcomes: Sequence[WalkResult],
    wave_numbers: Sequence[int],
    waves: int,
    shares: np.ndarray,
) -> tuple[float | None, ...]:
    """Executions of an average wave. `wave_numbers` is the number of each outcome's wave in its
    workgroup of `waves`, `shares` what `_shares` returns."""
    unknown = {block for outcome in outcomes for block in outcome.unknown_blocks}
    averages: list[float | None] = []
    for block, counts in enumerate(zip(*(o.counts for o in outcomes), strict=True)):
        sampled = float(shares[list(wave_numbers), block].sum()) if len(shares) else 0.0
        if block in unknown:
            averages.append(None)
        elif sampled:
            averages.append(sum(counts) / sampled)
        else:
            averages.append(_average(counts, wave_numbers, waves))
    return tuple(averages)


def _shares(workgroup: Mapping[int, WalkResult], waves: int) -> np.ndarray:
    """How often each wave of a workgroup executes each block, over the mean of its waves
    (f64[waves, blocks]); no rows where its waves are alike."""
    if not workgroup:
        return np.ones((0, 0))
    counts = np.array([workgroup[wave].counts for wave in range(waves)])
    mean = counts.mean(axis=0)
    return np.divide(counts, mean, out=np.ones_like(counts), where=mean > 0)


def _longest(
    program: Program,
    outcomes: Sequence[WalkResult],
    wave_numbers: Sequence[int],
    counts: Sequence[float | None],
    shares: np.ndarray,
) -> float:
    """The number of instructions of the longest wave over that of an average wave of its number."""
    lengths = np.array([block.stop - block.start for block in program.blocks])
    average = lengths * np.array([count or 0.0 for count in counts])
    longest = 1.0
    for outcome, wave in zip(outcomes, wave_numbers, strict=True):
        usual = float(np.sum(average * shares[wave]) if len(shares) else np.sum(average))
        if usual and not outcome.unknown_blocks:
            longest = max(longest, float(np.dot(lengths, outcome.counts)) / usual)
    return longest


def _average(counts: Sequence[int], wave_numbers: Sequence[int], waves: int) -> float:
    """The mean of all samples; where the number of a wave decides, of the waves of a workgroup,
    each like the nearest one that was followed (one wave of four that updates memory: a
    quarter)."""
    of_wave = dict(zip(wave_numbers, counts, strict=True))
    repeated = len(of_wave) < len(counts)
    if not repeated or any(of_wave[w] != n for w, n in zip(wave_numbers, counts, strict=True)):
        return sum(counts) / len(counts)
    nearest = (min(of_wave, key=lambda wave, at=at: abs(wave - at)) for at in range(waves))
    return sum(of_wave[wave] for wave in nearest) / waves


def _trip_counts(
    program: Program, outcomes: Sequence[WalkResult], reasons: _Reasons
) -> tuple[tuple[float | None, str], ...]:
    """Executions of a loop's latches per entry: the iterations that went round."""
    trips: list[tuple[float | None, str]] = []
    for loop in program.loops:
        reason = next((o.unknown_loops[loop.index] for o in outcomes
                       if loop.index in o.unknown_loops), None)  # fmt: skip
        entries = sum(outcome.entries[loop.index] for outcome in outcomes)
        if reason is None and not entries:
            reason = next((o.unknown_blocks[loop.header] for o in outcomes
                           if loop.header in o.unknown_blocks), None)  # fmt: skip
        rounds = sum(outcome.counts[latch] for outcome in outcomes for latch in loop.latches)
        if reason is not None:
            trips.append((None, reasons.of(reason)))
        elif not entries:
            trips.append((0.0, "the sampled waves do not enter this loop"))
        else:
            trips.append((rounds / entries, ""))
    return tuple(trips)


class _Reasons:
    """Origins of unknown values as words."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def of(self, origin: object) -> str:
        if not isinstance(origin, int):
            return str(origin) if origin else "not known"
        instruction = self._program.instructions[origin]
        where = (
            f"line {instruction.location.outermost.line}"
            if instruction.location is not None
            else f"assembly line {instruction.line}"
        )
        if instruction.decoded.memory is not None:
            return f"depends on data loaded at {where}"
        return f"depends on {instruction.mnemonic} at {where}, which is not evaluated"


def _accesses(
    program: Program,
    parts: Slices,
    inputs: Inputs,
    sightings: Mapping[int, Sighting],
    arguments: Mapping[int, tuple[str, ...]],
) -> dict[int, AddressPattern]:
    patterns = {}
    for instruction in program.instructions:
        memory = instruction.decoded.memory
        if memory is None or instruction.index in parts.spills:
            continue
        if memory.kind is MemoryKind.PERMUTE:
            continue
        pair = "offset0" in instruction.modifiers or "offset1" in instruction.modifiers
        names = arguments.get(instruction.index, ())
        start = 0 if memory.space is Space.BUFFER else inputs.storage(names)
        if memory.space is Space.LDS:
            start = 0
        patterns[instruction.index] = describe(
            sightings.get(instruction.index),
            inputs.lanes,
            max(1, memory.bytes // 2 if pair else memory.bytes),
            2 if pair else 1,
            memory.kind,
            names,
            start,
        )
    return patterns


def _notes(sampling: _Sampling, reasons: _Reasons) -> tuple[str, ...]:
    notes = []
    outcomes, grid = sampling.outcomes, sampling.inputs.grid
    differ = any(outcome.counts != outcomes[0].counts for outcome in outcomes)
    if grid is not None and (differ or sampling.too_slow):
        total = grid[0] * grid[1] * grid[2]
        notes.append(f"block counts are the average of {len(outcomes)} waves of {total} workgroups")
    if sampling.takes_numbers:
        notes.append("floats from memory are taken not to be NaN")
    assumed = {origin for outcome in outcomes for origin in outcome.assumed}
    for reason in sorted(reasons.of(origin) for origin in assumed):
        notes.append(f"a branch is counted as if some lane took it: {reason}")
    program = sampling.program
    for index in sorted({loop for outcome in outcomes for loop in outcome.retries}):
        location = program.loops[index].location
        where = f" at line {location.outermost.line}" if location is not None else ""
        notes.append(f"retries of the compare-and-swap loop{where} are not counted")
    return tuple(dict.fromkeys(notes))
