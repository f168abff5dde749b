"""The time of a launch from an executed sample of its workgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from wavecast.analyze.occupancy import ResourceDemand, occupancy
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_descriptor
from wavecast.emulate.launch import AddressRange
from wavecast.errors import UsageError
from wavecast.isa.program import Kernel, KernelDescriptor
from wavecast.model import launch as model
from wavecast.model.cache import replay
from wavecast.model.cache.accesses import LDS
from wavecast.model.cache.geometry import Geometry
from wavecast.model.cache.traffic import footprint, kept, reach
from wavecast.model.chip import Chip
from wavecast.model.cu import streams as unit
from wavecast.model.cu.code import Code
from wavecast.model.kernel import predicted
from wavecast.model.memory import residency
from wavecast.model.prediction import Prediction
from wavecast.predict.dispatch import Dispatch
from wavecast.predict.sample import GOLDEN, KEPT, Sample, sample

DIFFERENT: Final = 0.1
"""Spread of workgroups from which the interval is wider."""


def predict(
    launch: Launch,
    ranges: Sequence[AddressRange],
    device: Device,
    *,
    warm: bool = True,
    beside: float = 0.0,
) -> Prediction:
    """The time of one launch on a device. See `execute`.

    The interval is wider, with the reason, where workgroups of the sample differ or too few of them
    could be executed.
    """
    found = sampled(launch, ranges, device, warm=warm, beside=beside)
    program = found.launched.code.program
    return predicted(found.launched, program, "executed", notes=found.notes, widen=found.widen)


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A launch as executed, why its interval is wider than usual, and how many times."""

    launched: model.Launched
    notes: tuple[str, ...]
    widen: float


def sampled(
    launch: Launch,
    ranges: Sequence[AddressRange],
    device: Device,
    *,
    warm: bool = True,
    beside: float = 0.0,
) -> Sampled:
    """Execute and replay a sample of a launch, and judge the sample. See `execute`."""
    launched, taken = _executed(launch, ranges, device, beside if warm else None)
    notes, widen = list(taken.notes), 1.0 + 0.25 * len(taken.notes)
    if taken.spread > DIFFERENT:
        notes.append(f"workgroups execute {taken.spread:.0%} more or less than each other")
        widen += min(1.0, taken.spread)
    return Sampled(launched, tuple(notes), widen)


def execute(
    launch: Launch,
    ranges: Sequence[AddressRange],
    device: Device,
    *,
    warm: bool = True,
    beside: float = 0.0,
) -> model.Launched:
    """Execute and replay a sample of a launch for a device.

    `ranges` are the host addresses the launch may touch, one per array. `warm`: an equal launch ran
    before, and others touched `beside` bytes since. Raises UsageError for a device that does not
    run the code, Unsupported and ExecutionError as the emulator does, MissingFact where the device
    lacks a number.
    """
    return _executed(launch, ranges, device, beside if warm else None)[0]


def _executed(
    launch: Launch, ranges: Sequence[AddressRange], device: Device, beside: float | None
) -> tuple[model.Launched, Sample]:
    if device.target != launch.code.target:
        raise UsageError(
            f"{launch.code.kernel} is code for {launch.code.target}, not for {device.id}",
            hint="compile it for that device",
        )
    chip = Chip.of(device)
    descriptor = parse_descriptor(launch.code)
    dispatch, grid = _layout(launch, descriptor, chip)
    taken = sample(launch, ranges, dispatch, device)
    scale = _scale(taken)
    moved = _moved(taken, scale, chip, beside)
    rows, traffic = _levels(taken, moved, chip, scale, beside)
    code = _code(launch.code.digest, taken.kernel, device, descriptor.wave_size)
    streams = _streams(taken, rows, code)
    dtype = _dtype(code, taken.instruction_counts)
    return model.Launched(chip, code, streams, grid, traffic, dtype, (), taken.work), taken


def _layout(
    launch: Launch, descriptor: KernelDescriptor, chip: Chip
) -> tuple[Dispatch, model.Grid]:
    device = chip.device
    threads = int(np.prod(launch.block))
    cu_mode = descriptor.directives.get("workgroup_processor_mode") == 0
    limits = device.limits(descriptor.wave_size, cu_mode=cu_mode)
    lds = descriptor.lds_bytes + launch.dynamic_lds
    fits = occupancy(
        limits, ResourceDemand(descriptor.vgprs, descriptor.agprs, descriptor.sgprs, lds, threads)
    )
    number = int(np.prod([int(n) for n in launch.grid]))
    resident = max(1, fits.workgroups)
    units = limits.units or chip.units
    dispatch = Dispatch(number, chip.dies, units // chip.dies, resident)
    waves = fits.waves_per_workgroup
    return dispatch, model.Grid(number, waves, resident, units, chip.dies, limits.simds)


def _scale(taken: Sample) -> np.ndarray:
    """How many bytes of the launch each recorded byte stands for, per request: workgroups that were
    not executed, instructions that were not recorded."""
    own = np.concatenate([stream.blocks for stream in taken.streams]).astype(np.int64)
    seen = np.bincount(own, minlength=len(taken.block_counts))
    more = np.where(seen > 0, taken.usual / np.maximum(seen, 1), 1.0)
    of_instruction = np.repeat(more, taken.table.lengths)[taken.accesses.instruction]
    return of_instruction * (taken.dispatch.workgroups / len(taken.numbers))


def _moved(taken: Sample, scale: np.ndarray, chip: Chip, beside: float | None = 0.0) -> np.ndarray:
    """What requests ask of the caches after an equal launch, of which the L2 keeps what its die
    touched, as far as that fits with the `beside` bytes touched since; None: after none."""
    accesses, dispatch = taken.accesses, taken.dispatch
    first = np.searchsorted(accesses.stream, np.arange(len(taken.streams) + 1))
    clock = np.concatenate(
        [
            taken.table.clocks(stream.blocks, accesses.instruction[low:high])
            for stream, low, high in zip(taken.streams, first, first[1:], strict=False)
        ]
    )
    units = np.array([dispatch.unit_of(int(number)) for number in taken.numbers])
    unit_of = units[accesses.stream // taken.waves]
    geometry = Geometry.of(chip).shared(len(taken.numbers) / len(dispatch.first_round()))
    cold = replay.replay(accesses, taken.table.asked, unit_of, clock, geometry)
    if beside is None:
        return cold
    beyond = (cold[:, replay.MISSED] + cold[:, replay.WRITTEN]) * scale
    sizes = taken.places.sizes
    totals = np.bincount(accesses.array, weights=beyond, minlength=len(sizes))
    touched = float(np.minimum(totals / chip.dies, sizes).sum()) + beside / chip.dies
    held = float(np.asarray(residency(touched, chip.l2_slice)))
    again = replay.replay(accesses, taken.table.asked, unit_of, clock, geometry, passes=2)
    return np.where(_chosen(np.full(len(cold), held))[:, None], again, cold)


def _levels(
    taken: Sample,
    moved: np.ndarray,
    chip: Chip,
    scale: np.ndarray,
    beside: float | None = 0.0,
) -> tuple[np.ndarray, model.Traffic]:
    """Rows of requests for the simulator, and the traffic of the launch."""
    accesses, owner = taken.accesses, _owners(taken)
    sizes = np.bincount(owner, weights=taken.places.sizes)
    rows = np.zeros((len(moved), unit.REQUEST), np.float32)
    beyond = _evenly(taken, moved[:, replay.MISSED] + moved[:, replay.WRITTEN])
    each = np.bincount(accesses.array, weights=beyond * scale, minlength=len(owner))
    totals, shared = np.bincount(owner, weights=each), np.ones(len(sizes))
    # what another die has just fetched is in the memory-side cache
    differing = np.bincount(owner, weights=each * taken.shared)
    np.divide(differing, totals, out=shared, where=totals > 0)
    held = 0.0
    if beside is not None:
        held = kept(chip, footprint(differing, sizes.tolist()) + beside)
    own = reach(chip, differing, sizes.tolist(), held)
    memory = own * shared if chip.mall_bytes else own
    path = taken.table.asked.path[accesses.instruction]
    rows[:, unit.TAGS] = moved[:, replay.TAGS]
    rows[:, unit.L2] = moved[:, replay.L2]
    rows[:, unit.MALL] = beyond
    rows[:, unit.HBM] = beyond * _chosen(memory[owner[accesses.array]])
    rows[:, unit.PASSES] = np.where(path == LDS, accesses.turns, 0.0)
    rows[:, unit.SERIAL] = np.where(path == LDS, 0.0, accesses.turns)
    traffic = model.Traffic(
        l2=float((moved[:, replay.L2] * scale).sum()),
        mall=float(totals.sum()),
        hbm=float((totals * memory).sum()),
        written=float((moved[:, replay.WRITTEN] * scale).sum()),
    )
    return rows, traffic


def _owners(taken: Sample) -> np.ndarray:
    """What each array (i64[arrays]) counts as: itself, or all those as one that are found through
    numbers, not through an argument: of them a sample sees the first few only."""
    given = np.array([argument.storage for argument in taken.launch.arguments], np.int64)
    found = ~np.isin(taken.places.first, given[given != 0])
    if not found.any() or not given.any():
        return np.arange(len(found) + 1)
    owner = np.where(found, len(found), np.arange(len(found)))
    _, owner = np.unique(np.append(owner, len(found)), return_inverse=True)
    return owner


def _evenly(taken: Sample, fetched: np.ndarray) -> np.ndarray:
    """Bytes per request (f64[m]) that workgroups fetch for each other, shared among those that wait
    for them: the same request of the same wave, the n-th of its instruction, of every workgroup.

    The replay lets workgroups reach a line in the order of their numbers, so the first ones, which
    are simulated, would fetch for all. Where recordings of most ended before, those that go on
    fetch for them as much as they did while all were there.
    """
    accesses = taken.accesses
    order = np.lexsort((accesses.instruction, accesses.stream))
    stream, instruction = accesses.stream[order], accesses.instruction[order]
    starts = np.flatnonzero(np.diff(stream, prepend=-1) | np.diff(instruction, prepend=-1))
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    of_wave = accesses.instruction.astype(np.int64) * taken.waves + accesses.stream % taken.waves
    _, kind = np.unique(of_wave, return_inverse=True)
    _, alike = np.unique(kind * (turn.max(initial=0) + 1) + turn, return_inverse=True)
    number = np.bincount(alike)
    most = np.zeros(kind.max(initial=-1) + 1, np.int64)
    np.maximum.at(most, kind, number[alike])
    together = number[alike] * 2 >= most[kind]
    own = kind * (accesses.stream.max(initial=0) + 1) + accesses.stream
    goes_on = together & np.isin(own, own[~together])
    share = _mean(kind, fetched, together) / np.maximum(_mean(kind, fetched, goes_on), 1e-9)
    even = (np.bincount(alike, weights=fetched) / number)[alike]
    return np.where(together, even, even * np.minimum(share, 1.0)[kind])


def _mean(kind: np.ndarray, amounts: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The mean amount of every kind (f64[kinds]) over some of them, 0 for none."""
    sums = np.bincount(kind, weights=amounts * where)
    return sums / np.maximum(np.bincount(kind, weights=where), 1)


def _chosen(share: np.ndarray) -> np.ndarray:
    """Which requests go to memory so that a share of them does: by the fractions of n·φ, which
    spread evenly."""
    return (np.arange(len(share)) * GOLDEN) % 1.0 < share


def _streams(taken: Sample, rows: np.ndarray, code: Code) -> unit.Streams:
    """The workgroups of the first compute unit, as far as they were executed, for the simulator."""
    executed = set(taken.numbers.tolist())
    own = [number for number in taken.dispatch.busiest() if number in executed]
    instructions = taken.accesses.instruction
    workgroups = []
    for number in own:
        first = int(np.searchsorted(taken.numbers, number)) * taken.waves
        waves = []
        for stream in range(first, first + taken.waves):
            low, high = np.searchsorted(taken.accesses.stream, (stream, stream + 1))
            recorded = taken.streams[stream]
            blocks = recorded.blocks.astype(np.int64)
            waves.append(
                unit.Wave(blocks, instructions[low:high], rows[low:high], bool(recorded.complete))
            )
        workgroups.append(waves)
    counts = taken.block_counts * (len(own) / len(taken.numbers))
    return unit.streams(code, workgroups, counts)


def _dtype(code: Code, counts: np.ndarray) -> str:
    """The dtype most matrix work is of, "" without any."""
    work: dict[str, float] = {}
    for charge, count in zip(code.charges, counts.tolist(), strict=True):
        if charge.matrix_flops and count:
            work[charge.matrix_dtype] = (
                work.get(charge.matrix_dtype, 0) + count * charge.matrix_flops
            )
    return max(work, key=lambda name: work[name]) if work else ""


def _code(digest: str, kernel: Kernel, device: Device, lanes: int) -> Code:
    known = _codes(digest)
    if device.id not in known:
        known[device.id] = Code.of(kernel.program, device, lanes)
    return known[device.id]


@lru_cache(maxsize=KEPT)
def _codes(digest: str) -> dict[str, Code]:
    """What is known of a kernel, by device."""
    del digest
    return {}


__all__ = ["Sampled", "execute", "predict", "sampled"]
