"""What a launch executes of an NVIDIA kernel: executions, trip counts, patterns of accesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from wavecast.analyze.sass.launch_constants import ArrayOfLaunch, named_arrays
from wavecast.analyze.sass.operands import operation
from wavecast.analyze.sass.pointers import tensors
from wavecast.analyze.sass.walk import WarpAccess, WarpPaths, follow
from wavecast.analyze.values.access import AddressPattern, classify
from wavecast.compile.codeobject import Launch
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Loop, Program

Array = np.ndarray[Any, Any]

WARP: Final = 32
BANKS: Final = 32
"""Banks of shared memory, 4 bytes wide each."""


@dataclass(frozen=True, slots=True)
class SassExecution:
    """What the first and the middle workgroup of a launch execute.

    `blocks` are executions per block of an average warp, `most` those of the warp with the most;
    `trips` iterations per entry of a loop, by its number. `patterns` are the accesses of memory
    instructions the first time a warp executes them, `passes` their passes of shared memory over
    those without conflicts.
    """

    blocks: tuple[float, ...]
    most: tuple[float, ...]
    trips: Mapping[int, float]
    patterns: Mapping[int, AddressPattern]
    passes: Mapping[int, float]


def execute_launch(program: Program, launch: Launch) -> SassExecution:
    """Follow the warps of two workgroups. Raises as `walk.follow`."""
    warps = -(-(launch.block[0] * launch.block[1] * launch.block[2]) // WARP)
    count = launch.grid[0] * launch.grid[1] * launch.grid[2]
    numbers = np.unique([0, count // 2])
    ids = np.array([launch.workgroup(int(number)) for number in numbers], np.int64)
    paths = follow(
        program, launch, np.repeat(ids, warps, axis=0), np.tile(np.arange(warps), len(numbers))
    )
    run_of = {int(start): run for run, start in enumerate(paths.starts)}
    each = np.zeros((len(paths.starts), paths.members.shape[1]))
    np.add.at(each, paths.blocks, paths.members)
    of_block = np.stack([each[run_of[block.start]] for block in program.blocks])
    first: dict[int, WarpAccess] = {}
    for access in paths.accesses:
        first.setdefault(access.instruction, access)
    arrays = named_arrays(launch)
    patterns = {at: _pattern(program, access, arrays) for at, access in first.items()}
    unknown = {at for at, pattern in patterns.items() if not pattern.argument}
    if unknown:
        pointed = tensors(program, [operation(i.decoded) for i in program.instructions], launch)
        patterns |= {
            at: replace(patterns[at], argument=name, arguments=(name,))
            for at, name in pointed.items()
            if at in unknown and _space(program, at) in (Space.GLOBAL, Space.FLAT)
        }
    return SassExecution(
        blocks=tuple(of_block.mean(axis=1).tolist()),
        most=tuple(of_block.max(axis=1).tolist()),
        trips={loop.index: _trips(program, paths, loop, run_of) for loop in program.loops},
        patterns=patterns,
        passes={
            at: _passes(pattern)
            for at, pattern in patterns.items()
            if _space(program, at) is Space.LDS and pattern.offsets is not None
        },
    )


def _trips(program: Program, paths: WarpPaths, loop: Loop, run_of: Mapping[int, int]) -> float:
    """Executions of the header over entries from outside, of the warps that enter the loop."""
    header = run_of[program.blocks[loop.header].start]
    inner = np.zeros(len(paths.starts), bool)
    for block in program.blocks:
        if block.index in loop.blocks:
            mask = (paths.starts >= block.start) & (paths.starts < block.stop)
            inner |= mask
    executions = entries = 0
    for warp in range(paths.members.shape[1]):
        runs = paths.of_warp(warp)
        at = np.flatnonzero(runs == header)
        executions += len(at)
        entries += int((~inner[runs[at - 1]] | (at == 0)).sum())
    return executions / entries if entries else 0.0


def _space(program: Program, instruction: int) -> Space | None:
    memory = program.instructions[instruction].memory
    return None if memory is None else memory.space


def _pattern(
    program: Program, access: WarpAccess, arrays: Mapping[str, ArrayOfLaunch]
) -> AddressPattern:
    """The lanes of the first warp of an access."""
    memory = program.instructions[access.instruction].memory
    width = memory.bytes if memory is not None else 0
    kind = memory.kind if memory is not None else MemoryKind.LOAD
    unknown = AddressPattern("unknown", None, "", (), None, False, width, 1, kind)
    if access.addresses is None or memory is None:
        return unknown
    lanes = access.lanes[0].tolist()
    addresses = [int(v) for v, on in zip(access.addresses[0], lanes, strict=True) if on]
    if not addresses:
        return unknown
    base, names = min(addresses), ()
    for name, array in arrays.items():
        if array.first <= base < array.first + array.bytes:
            base, names = array.first, (name,)
            break
    offsets = [
        int(value) - base if on else None
        for value, on in zip(access.addresses[0], lanes, strict=True)
    ]
    if len(addresses) == 1:
        pattern, stride = "broadcast", 0
    else:
        pattern, stride = classify(offsets, width)
    exact = bool(names)
    argument = names[0] if names else ""
    return AddressPattern(pattern, stride, argument, names, tuple(offsets), exact, width, 1, kind)


def _passes(pattern: AddressPattern) -> float:
    """Passes of shared memory over those that as many contiguous lanes take. Lanes of 8 bytes go
    in halves of a warp, lanes of 16 in quarters."""
    assert pattern.offsets is not None
    width = max(4, pattern.width)
    together = max(8, min(WARP, 4 * WARP // width))
    total = ideal = 0
    for first in range(0, WARP, together):
        words: dict[int, set[int]] = {}
        active = 0
        for offset in pattern.offsets[first : first + together]:
            if offset is not None:
                active += 1
                for word in range(offset // 4, offset // 4 + width // 4):
                    words.setdefault(word % BANKS, set()).add(word)
        total += max((len(bank_words) for bank_words in words.values()), default=0)
        ideal += -(-active * width // (4 * BANKS))
    return total / max(1, ideal)


__all__ = ["SassExecution", "execute_launch"]
