"""A launch profile from code: blocks with their counts, accesses with their patterns.

Nothing is executed. The path of a wave is laid out from the loops and their trip counts; of long
loops some iterations carry the weight of all. Every wave of the launch executes the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wavecast.analyze.result import CodeAnalysis
from wavecast.analyze.values.walk import CUT_SHORT
from wavecast.arch import Device
from wavecast.compile import rocm
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.isa.program import Kernel, Loop, Program
from wavecast.perfmodel.access_streams import AccessStreams
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.fold import FIRST, LAST
from wavecast.perfmodel.notes import Note
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.profile import LaunchProfile, ProfileSource, longest_of, origin_of
from wavecast.perfmodel.streams import Streams, expand_blocks

Array = np.ndarray[Any, Any]


def profile_of_code(
    launch: Launch,
    analysis: CodeAnalysis,
    kernel: Kernel,
    device: Device,
    mall_resident: Mapping[str, float] | None = None,
) -> LaunchProfile:
    """The profile of a launch from its code.

    `mall_resident` is the share, by argument, of the bytes that are in the memory-side cache before
    the launch. Raises Unpredictable where a count or the grid is not known or a workgroup does not
    fit the device, MissingFact where the device lacks a number.
    """
    program, wave_lanes = kernel.program, kernel.descriptor.wave_size
    placement = LaunchPlacement.of(launch, analysis.occupancy, device, wave_lanes)
    counts = _counts(analysis, analysis.executed, program)
    chip = Chip.of(device)
    code = Code.of(program, device, wave_lanes)
    paths = _paths(program, analysis, placement.waves)
    lengths = np.array([b.stop - b.start for b in program.blocks], np.int64)
    executions = np.repeat(counts, lengths)
    accesses = AccessStreams(
        launch, analysis, kernel, code, chip, placement, executions, mall_resident or {}
    )
    streams = _streams(code, paths, accesses.rows)
    flops = analysis.executed_flops or {}
    return LaunchProfile(
        program=program,
        compiler=launch.code.compiler if launch.code.origin == "hip" else "",
        compiler_note=rocm.difference(launch.code),
        target=device.target,
        origin=origin_of(launch.code, kernel.descriptor),
        source=ProfileSource.CODE,
        placement=placement,
        streams=streams,
        traffic=accesses.traffic(),
        dtype=max(flops, key=lambda name: flops[name]) if flops else "",
        longest=longest_of(placement, analysis.longest),
        notes=(
            *(() if analysis.executed_of_waves else (Note.WAVES_ALIKE,)),
            *((Note.UNKNOWN_ADDRESSES,) if accesses.unknown_addresses else ()),
            *((Note.UNKNOWN_REUSE,) if accesses.unknown_reuse else ()),
        ),
    )


def with_fewer_iterations(
    profile: LaunchProfile, analysis: CodeAnalysis, code: Code, loop: int, divisor: float
) -> LaunchProfile:
    """The profile of a launch from code in which a loop (its index) runs 1/divisor of its
    iterations. Bytes of the whole launch stay."""
    program = profile.program
    blocks_of_loop = program.loops[loop].blocks

    def fewer(counts: tuple[float | None, ...]) -> tuple[float | None, ...]:
        return tuple(
            count / divisor if count is not None and number in blocks_of_loop else count
            for number, count in enumerate(counts)
        )

    loops = tuple(
        replace(entry, trip_count=entry.trip_count / divisor)
        if entry.index == loop and entry.trip_count is not None
        else entry
        for entry in analysis.loops
    )
    shorter = replace(
        analysis,
        executed=fewer(analysis.executed),
        executed_of_waves=tuple(map(fewer, analysis.executed_of_waves)),
        loops=loops,
    )
    paths = _paths(program, shorter, profile.placement.waves)
    original = profile.streams
    rows = code.contiguous.copy()
    rows[original.steps[code.slots[original.steps] > 0]] = original.rows
    streams = _streams(code, paths, rows)
    return replace(profile, streams=streams)


def _streams(code: Code, paths: Sequence[tuple[Array, Array]], rows: Array) -> Streams:
    """A workgroup whose waves execute the blocks of `paths` with their weights; `rows`
    (f32[instructions, REQUEST]) are the requests of one execution."""
    lengths = np.array([b.stop - b.start for b in code.program.blocks], np.int64)
    firsts = np.array([b.start for b in code.program.blocks], np.int64)
    steps = [expand_blocks(blocks, firsts, lengths) for blocks, _ in paths]
    requests = [rows[executed[code.slots[executed] > 0]] for executed in steps]
    return Streams(
        waves=len(paths),
        steps=np.concatenate(steps).astype(np.int32),
        weights=np.concatenate(
            [np.repeat(weights, lengths[blocks]) for blocks, weights in paths]
        ).astype(np.float32),
        start=np.cumsum([0, *map(len, steps)]),
        rows=np.concatenate(requests).astype(np.float32),
        rows_start=np.cumsum([0, *map(len, requests)]),
    )


def _paths(program: Program, analysis: CodeAnalysis, waves: int) -> list[tuple[Array, Array]]:
    """The path of each wave of a workgroup."""
    every = analysis.executed_of_waves or (analysis.executed,)
    paths = {
        executed: _path(program, analysis, _counts(analysis, executed, program))
        for executed in set(every)
    }
    return [paths[every[wave % len(every)]] for wave in range(waves)]


def _counts(analysis: CodeAnalysis, executed: Sequence[float | None], program: Program) -> Array:
    """Executions per block (f64[blocks]). Raises Unpredictable for one not known."""
    counts = np.zeros(len(program.blocks))
    for block in program.blocks:
        count = executed[block.index] if block.index < len(executed) else None
        if count is None:
            raise Unpredictable(
                _why(analysis, program, block.index), hint="--sample executes a part of the launch"
            )
        counts[block.index] = count
    return counts


def _why(analysis: CodeAnalysis, program: Program, block: int) -> str:
    for loop in analysis.loops:
        if loop.trip_count is None and block in program.loops[loop.index].blocks:
            where = f" at line {loop.location.line}" if loop.location else ""
            return f"the loop{where} runs an unknown number of times ({loop.trip_note})"
    location = program.instructions[program.blocks[block].start].location
    where = f" at line {location.line}" if location else ""
    if analysis.unknown_counts.get(block) == CUT_SHORT:
        return f"how often the code{where} runs is not known: {CUT_SHORT}"
    return f"how often the code{where} runs depends on data"


def _path(program: Program, analysis: CodeAnalysis, counts: Array) -> tuple[Array, Array]:
    """Blocks in the order a wave enters them, and the executions that each represents."""
    trips = {loop.index: loop.trip_count or 0.0 for loop in analysis.loops}
    headers = {loop.header: loop for loop in program.loops}
    path: list[int] = []
    weights: list[float] = []

    def region(holds: Callable[[int], bool], weight: float, region_loop: Loop | None) -> None:
        inner_blocks: set[int] = set()
        for block in program.blocks:
            number = block.index
            if not holds(number) or number in inner_blocks or counts[number] == 0:
                continue
            loop = headers.get(number)
            if loop is not None and loop is not region_loop:
                iterations(loop, weight)
                inner_blocks |= loop.blocks
            else:
                path.append(number)
                weights.append(weight)

    def iterations(loop: Loop, weight: float) -> None:
        trip = max(1.0, trips.get(loop.index, 1.0))
        whole = int(min(trip, FIRST + LAST))
        late = max(1, whole - FIRST)
        for iteration in range(whole):
            share = 1.0 if iteration < whole - late else (trip - (whole - late)) / late
            region(lambda number: number in loop.blocks, weight * share, loop)

    region(lambda _: True, 1.0, None)
    blocks = np.array(path, np.int64)
    block_weights = np.array(weights)
    sums = np.bincount(blocks, block_weights, len(counts))
    scale = np.divide(counts, sums, out=np.zeros(len(counts)), where=sums > 0)
    return blocks, block_weights * scale[blocks]


__all__ = ["profile_of_code", "with_fewer_iterations"]
