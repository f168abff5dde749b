"""A launch profile from an executed sample of its workgroups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from wavecast.analyze.occupancy import kernel_occupancy
from wavecast.arch import Device
from wavecast.compile import rocm
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_descriptor
from wavecast.emulate.launch import AddressRange
from wavecast.errors import UsageError
from wavecast.perfmodel import streams as unit
from wavecast.perfmodel.cache import replay
from wavecast.perfmodel.cache.accesses import ATOMIC, LDS, PRIVATE, STORE, VECTOR
from wavecast.perfmodel.cache.geometry import DieCaches
from wavecast.perfmodel.cache.traffic import footprint, mall_resident, reach
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.recorded import streams
from wavecast.perfmodel.memory import residency
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.profile import (
    LaunchProfile,
    LevelTraffic,
    ProfileSource,
    longest_of,
    origin_of,
)
from wavecast.perfmodel.scratch import scratch_requests
from wavecast.sampling.sample import GOLDEN, Sample, sample


def profile_of_sample(
    launch: Launch,
    ranges: Sequence[AddressRange],
    device: Device,
    *,
    warm: bool = True,
    polluting_bytes: float = 0.0,
) -> LaunchProfile:
    """Execute a sample of a launch and replay its accesses through the caches of a device.

    `ranges` are the host addresses the launch may touch, one per array. With `warm` an equal launch
    ran before, and others touched `polluting_bytes` of cache since; else the caches are empty.

    Raises UsageError for a device that does not run the code, Unpredictable for a workgroup that
    does not fit it, Unsupported and ExecutionError as the emulator does, MissingFact where the
    device lacks a number.
    """
    launch_sample = sample_of(launch, ranges, device)
    return replay_sample(launch_sample, device, warm=warm, polluting_bytes=polluting_bytes)


def sample_of(launch: Launch, ranges: Sequence[AddressRange], device: Device) -> Sample:
    """Execute a sample of a launch for a device. Arguments as of `profile_of_sample`, and what
    it raises."""
    if device.target != launch.code.target:
        raise UsageError(
            f"{launch.code.kernel} is code for {launch.code.target}, not for {device.id}",
            hint="compile it for that device",
        )
    descriptor = parse_descriptor(launch.code)
    lds_bytes = descriptor.lds_bytes + launch.dynamic_lds
    occupancy = kernel_occupancy(device, descriptor, lds_bytes, math.prod(launch.block))
    placement = LaunchPlacement.of(launch, occupancy, device, descriptor.wave_size)
    return sample(launch, ranges, placement, device)


def replay_sample(
    launch_sample: Sample, device: Device, *, warm: bool = True, polluting_bytes: float = 0.0
) -> LaunchProfile:
    """The profile of a sample that was executed for a device. Arguments as `profile_of_sample`."""
    chip, placement = Chip.of(device), launch_sample.placement
    scale = _scale(launch_sample)
    polluting = polluting_bytes if warm else None
    cache_requests = _cache_requests(launch_sample, scale, chip, polluting)
    rows, traffic = _levels(launch_sample, cache_requests, chip, scale, polluting)
    program, coverage = launch_sample.kernel.program, launch_sample.coverage
    code = Code.of(program, device, placement.wave_lanes)
    first = _streams(launch_sample, rows, code)
    return LaunchProfile(
        program=program,
        compiler=launch_sample.launch.code.compiler
        if launch_sample.launch.code.origin == "hip"
        else "",
        compiler_note=rocm.difference(launch_sample.launch.code),
        target=device.target,
        origin=origin_of(launch_sample.launch.code, launch_sample.kernel.descriptor),
        source=ProfileSource.SAMPLE,
        placement=placement,
        streams=first,
        traffic=traffic,
        dtype=_dtype(code, launch_sample.instruction_counts),
        work=float(launch_sample.instruction_counts.sum()) / max(1.0, first.executed.mean()),
        longest=longest_of(placement, launch_sample.longest),
        coverage=coverage,
    )


def _scale(launch_sample: Sample) -> np.ndarray:
    """How many bytes of the launch each recorded byte stands for, per request: workgroups that were
    not executed, instructions that were not recorded."""
    blocks = np.concatenate([stream.blocks for stream in launch_sample.streams]).astype(np.int64)
    counts = np.bincount(blocks, minlength=len(launch_sample.block_counts))
    more = np.where(counts > 0, launch_sample.usual / np.maximum(counts, 1), 1.0)
    of_instruction = np.repeat(more, launch_sample.table.lengths)[
        launch_sample.accesses.instruction
    ]
    return of_instruction * (launch_sample.placement.workgroups / len(launch_sample.numbers))


def _cache_requests(
    launch_sample: Sample, scale: np.ndarray, chip: Chip, polluting: float | None
) -> np.ndarray:
    """What requests ask of the caches (f64[m, COLUMNS]) after an equal launch. The L2 keeps
    what its die touched if that fits with the `polluting` bytes touched since. None: the caches
    are empty."""
    accesses, placement = launch_sample.accesses, launch_sample.placement
    first = np.searchsorted(accesses.stream, np.arange(len(launch_sample.streams) + 1))
    clock = np.concatenate(
        [
            launch_sample.table.clocks(stream.blocks, accesses.instruction[low:high])
            for stream, low, high in zip(launch_sample.streams, first, first[1:], strict=False)
        ]
    )
    units = np.array([placement.unit_of(int(number)) for number in launch_sample.numbers])
    unit_of = units[accesses.stream // launch_sample.waves]
    geometry = DieCaches.of(chip).share(
        len(launch_sample.numbers) / len(placement.first_round_of_die())
    )
    asked = partial(
        replay.replay,
        accesses,
        launch_sample.table.asked,
        unit_of,
        clock,
        geometry,
        fetching=chip.latency["hbm"] * chip.clock,
    )
    cold = asked()
    if polluting is None:
        return cold
    beyond = (cold[:, replay.MISSED] + cold[:, replay.WRITTEN]) * scale
    sizes = launch_sample.arrays.sizes
    totals = np.bincount(accesses.array, weights=beyond, minlength=len(sizes))
    working_set = float(np.minimum(totals / chip.dies, sizes).sum()) + polluting / chip.dies
    resident = float(np.asarray(residency(working_set, chip.l2_slice)))
    again = asked(passes=2)
    return np.where(_select_share(np.full(len(cold), resident))[:, None], again, cold)


def _levels(
    launch_sample: Sample,
    cache_requests: np.ndarray,
    chip: Chip,
    scale: np.ndarray,
    polluting: float | None,
) -> tuple[np.ndarray, LevelTraffic]:
    """Rows of requests for the simulator, and the traffic of the launch."""
    accesses, owner = launch_sample.accesses, _owners(launch_sample)
    sizes = np.bincount(owner, weights=launch_sample.arrays.sizes)
    rows = np.zeros((len(cache_requests), unit.REQUEST), np.float32)
    beyond = _evenly(
        launch_sample, cache_requests[:, replay.MISSED] + cache_requests[:, replay.WRITTEN]
    )
    each = np.bincount(accesses.array, weights=beyond * scale, minlength=len(owner))
    totals, shared = np.bincount(owner, weights=each), np.ones(len(sizes))
    # what another die has just fetched is in the memory-side cache
    differing = np.bincount(owner, weights=each * launch_sample.shared)
    np.divide(differing, totals, out=shared, where=totals > 0)
    resident = 0.0
    if polluting is not None:
        working_set = footprint(differing, sizes.tolist()) + polluting
        resident = mall_resident(chip, working_set)
    memory_share = reach(chip, differing, sizes.tolist(), resident)
    memory = memory_share * shared if chip.mall_bytes else memory_share
    path = launch_sample.table.asked.path[accesses.instruction]
    rows[:, unit.TAGS] = cache_requests[:, replay.TAGS]
    rows[:, unit.L2] = cache_requests[:, replay.L2]
    rows[:, unit.MALL] = beyond
    rows[:, unit.HBM] = beyond * _select_share(memory[owner[accesses.array]])
    late = _evenly(launch_sample, cache_requests[:, replay.LATE])
    rows[:, unit.LATE_MALL] = late
    rows[:, unit.LATE_HBM] = late * _select_share(memory_share[owner[accesses.array]])
    rows[:, unit.PASSES] = np.where(path == LDS, accesses.passes, 0.0)
    rows[:, unit.SERIAL] = np.where(path == LDS, 0.0, accesses.passes)
    kernel, private = launch_sample.kernel, path == PRIVATE
    scratch = scratch_requests(
        kernel.program, chip, launch_sample.placement, kernel.descriptor.scratch_bytes
    )[accesses.instruction[private]]
    rows[private] = scratch
    kinds = launch_sample.table.asked.kind[accesses.instruction]
    l2, mall, hbm = scale[private] @ scratch[:, [unit.L2, unit.MALL, unit.HBM]]
    evicted = scale[private] @ (scratch[:, unit.MALL] * (kinds[private] == STORE))
    traffic = LevelTraffic(
        l2=float((cache_requests[:, replay.L2] * scale).sum() + l2),
        mall=float(totals.sum() + mall),
        hbm=float((totals * memory).sum() + hbm),
        written=float((cache_requests[:, replay.WRITTEN] * scale).sum() + evicted),
        updated=float((cache_requests[:, replay.UPDATED] * scale).sum()),
        atomics=_atomics(launch_sample, scale),
    )
    return rows, traffic


def _atomics(launch_sample: Sample, scale: np.ndarray) -> float:
    """Atomics that go to the address with the most of them, at least: every array's, divided by its
    addresses."""
    accesses, sizes = launch_sample.accesses, launch_sample.arrays.sizes
    table = launch_sample.table.asked
    mask = (table.kind[accesses.instruction] == ATOMIC) & (
        table.path[accesses.instruction] == VECTOR
    )
    lanes = accesses.lanes * scale * mask
    each = np.bincount(accesses.array, weights=lanes, minlength=len(sizes))
    width = int(table.width[accesses.instruction[mask]].min(initial=8))
    return float((each / np.maximum(1.0, np.array(sizes) / max(1, width))).max(initial=0.0))


def _owners(launch_sample: Sample) -> np.ndarray:
    """The number each array counts under (i64[arrays]): its own, or a common one for all arrays
    that are found through pointers in memory, not through an argument: a sample sees only the first
    few of those."""
    launch = launch_sample.launch
    items = (*launch.arguments, *launch.members)
    storages = np.array([argument.storage for argument in items], np.int64)
    indirect = ~np.isin(launch_sample.arrays.first, storages[storages != 0])
    if not indirect.any() or not storages.any():
        return np.arange(len(indirect) + 1)
    owner = np.where(indirect, len(indirect), np.arange(len(indirect)))
    _, owner = np.unique(np.append(owner, len(indirect)), return_inverse=True)
    return owner


def _evenly(launch_sample: Sample, fetched: np.ndarray) -> np.ndarray:
    """Bytes per request (f64[m]) that workgroups fetch for each other, shared among those that wait
    for them: the same request of the same wave, the n-th of its instruction, of every workgroup.

    The replay lets workgroups reach a line in the order of their numbers, so the first ones, which
    are simulated, would fetch for all. If most recordings have ended, each of the others fetches as
    much for them as before.
    """
    accesses = launch_sample.accesses
    order = np.lexsort((accesses.instruction, accesses.stream))
    stream, instruction = accesses.stream[order], accesses.instruction[order]
    starts = np.flatnonzero(np.diff(stream, prepend=-1) | np.diff(instruction, prepend=-1))
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    of_wave = (
        accesses.instruction.astype(np.int64) * launch_sample.waves
        + accesses.stream % launch_sample.waves
    )
    _, kind = np.unique(of_wave, return_inverse=True)
    _, alike = np.unique(kind * (nth.max(initial=0) + 1) + nth, return_inverse=True)
    number = np.bincount(alike)
    most = np.zeros(kind.max(initial=-1) + 1, np.int64)
    np.maximum.at(most, kind, number[alike])
    together = number[alike] * 2 >= most[kind]
    keys = kind * (accesses.stream.max(initial=0) + 1) + accesses.stream
    goes_on = together & np.isin(keys, keys[~together])
    share = _mean(kind, fetched, together) / np.maximum(_mean(kind, fetched, goes_on), 1e-9)
    even = (np.bincount(alike, weights=fetched) / number)[alike]
    return np.where(together, even, even * np.minimum(share, 1.0)[kind])


def _mean(kind: np.ndarray, amounts: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The mean amount of every kind (f64[kinds]) over some of them, 0 for none."""
    sums = np.bincount(kind, weights=amounts * where)
    return sums / np.maximum(np.bincount(kind, weights=where), 1)


def _select_share(share: np.ndarray) -> np.ndarray:
    """Requests (bool[m]) that go to memory so that a share of them does: by the fractions of n·φ,
    which are evenly distributed."""
    return (np.arange(len(share)) * GOLDEN) % 1.0 < share


def _streams(launch_sample: Sample, rows: np.ndarray, code: Code) -> unit.Streams:
    """The executed workgroups of one compute unit, for the simulator."""
    numbers = _usual_unit(launch_sample)
    instructions = launch_sample.accesses.instruction
    workgroups = []
    for number in numbers:
        first = int(np.searchsorted(launch_sample.numbers, number)) * launch_sample.waves
        waves = []
        for stream in range(first, first + launch_sample.waves):
            low, high = np.searchsorted(launch_sample.accesses.stream, (stream, stream + 1))
            recorded = launch_sample.streams[stream]
            blocks = recorded.blocks.astype(np.int64)
            waves.append(
                unit.Wave(blocks, instructions[low:high], rows[low:high], bool(recorded.complete))
            )
        workgroups.append(waves)
    counts = launch_sample.block_counts * (len(numbers) / len(launch_sample.numbers))
    return streams(code, workgroups, counts)


def _usual_unit(launch_sample: Sample) -> list[int]:
    """Numbers of the executed workgroups of the first unit; where all of them were recorded, those
    of the unit whose workgroups execute most nearly as many instructions as usual ones: time does
    not grow with instructions alone, since workgroups have a beginning and an end."""
    placement, waves = launch_sample.placement, launch_sample.waves
    lengths = launch_sample.table.lengths
    usual = float(launch_sample.instruction_counts.sum())
    of_unit: dict[int, list[int]] = {}
    executed: dict[int, float] = {}
    for position, number in enumerate(launch_sample.numbers.tolist()):
        recorded = launch_sample.streams[position * waves : (position + 1) * waves]
        total = sum(float(lengths[s.blocks.astype(np.int64)].sum()) for s in recorded)
        of_unit.setdefault(placement.unit_of(number), []).append(number)
        executed[number] = total if all(s.complete for s in recorded) else np.nan

    def distance(numbers: list[int]) -> float:
        return abs(float(np.mean([executed[number] for number in numbers])) - usual)

    first = of_unit[0]
    whole = [
        numbers
        for numbers in of_unit.values()
        if len(numbers) == len(first) and not np.isnan(distance(numbers))
    ]
    return min(whole, key=distance) if first in whole else first


def _dtype(code: Code, counts: np.ndarray) -> str:
    """The dtype most matrix work is of, "" without any."""
    work: dict[str, float] = {}
    for charge, count in zip(code.charges, counts.tolist(), strict=True):
        if charge.matrix_flops and count:
            work[charge.matrix_dtype] = (
                work.get(charge.matrix_dtype, 0) + count * charge.matrix_flops
            )
    return max(work, key=lambda name: work[name]) if work else ""


__all__ = ["profile_of_sample", "replay_sample", "sample_of"]
