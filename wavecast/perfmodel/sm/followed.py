"""What sampled workgroups of a SASS launch executed, as streams and traffic of a profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.analyze.result import CodeAnalysis
from wavecast.analyze.sass.launch_constants import arrays
from wavecast.analyze.sass.tensor_copies import BARRIER, COORDINATES, UNKNOWN
from wavecast.analyze.sass.walk import WarpAccess, WarpPaths, follow
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.errors import MissingFact, Unpredictable
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.perfmodel.atomics import at_one_address, executions_of
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.fold import Folded, fold
from wavecast.perfmodel.footprint import element_bytes
from wavecast.perfmodel.memory import residency
from wavecast.perfmodel.notes import Note
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.profile import LevelTraffic
from wavecast.perfmodel.sm import code as c
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.sm.repeats import renumber_phases
from wavecast.perfmodel.sm.requests import passes, repeats, sectors
from wavecast.perfmodel.sm.row_table import RowTable
from wavecast.perfmodel.sm.samples import workgroup_ids
from wavecast.perfmodel.sm.tensor_boxes import TensorBoxes
from wavecast.perfmodel.sm.traffic import LaunchArrays, Touched, shares
from wavecast.perfmodel.streams import (
    HBM,
    L2,
    PASSES,
    REQUEST,
    SERIAL,
    TAGS,
    Streams,
    expand_blocks,
)

Array = np.ndarray[Any, Any]

WIDE: Final = 256
"""Workgroups of which one warp is followed, to see what they share."""
UNFOLDED: Final = 100_000
"""Instructions of a warp that are simulated without shortening loops, where memory barriers order
warps."""
WARP: Final = 32
LINE: Final = 128.0
_FROM_SHARED: Final = MemoryKind.STORE_FROM_LDS


class FollowedWorkgroups:
    """Makes streams and traffic of what sampled workgroups executed."""

    def __init__(
        self,
        code: SmCode,
        paths: WarpPaths,
        placement: LaunchPlacement,
        device: Device,
        launch: Launch,
        analysis: CodeAnalysis,
    ) -> None:
        self._code, self._paths, self._placement = code, paths, placement
        self._chip, self._launch = Chip.of(device), launch
        self._shared_bytes = analysis.lds_bytes * min(placement.resident, placement.most_per_unit)
        self._stack_bytes = analysis.registers.scratch_bytes
        sizes = {a.name: element_bytes(a) for a in launch.arguments if a.bytes > 0}
        meeting = self._meeting()
        times = executions_of(code.program, analysis)
        self._atomics = max(meeting, at_one_address(analysis.memory, times, placement, sizes))
        self._rows = [np.zeros((len(a.warps), REQUEST), np.float32) for a in paths.accesses]
        self._boxes = TensorBoxes(code.program, launch, placement.waves)
        copies = {n: a for n, a in enumerate(paths.accesses) if self._is_bulk(a)}
        expecting = [a for a in paths.accesses if a.operands is not None and not self._is_bulk(a)]
        self._boxes.measure(copies, expecting)
        self._unknown = any(
            a.addresses is None and self._is_global(a)
            if a.operands is None
            else self._is_bulk(a) and bool((a.operands[:, COORDINATES:] == UNKNOWN).any())
            for a in paths.accesses
        )
        self._arrivals = self._barrier_rows()
        self._shared_rows()
        self.traffic = self._global_rows()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the profile assumes."""
        unknown = self._paths.unknown
        return (
            *((Note.UNKNOWN_ADDRESSES,) if self._unknown else ()),
            *(
                (Note.UNKNOWN_BRANCHES,)
                if any("branch" in n or "end" in n for n in unknown)
                else ()
            ),
            *((Note.UNKNOWN_GUARDS,) if "guards" in unknown else ()),
        )

    def streams(self) -> tuple[Streams, Array]:
        """The streams of all templates, and the arrivals per phase of memory barriers."""
        waves, firsts = self._placement.waves, self._paths.starts
        lengths = self._paths.stops - firsts
        slots = [
            np.flatnonzero(self._code.slots[start:stop]) + start
            for start, stop in zip(firsts.tolist(), self._paths.stops.tolist(), strict=True)
        ]
        table = RowTable.of(self._paths, self._rows, slots, self._defaults())
        steps, weights, rows = [], [], []
        for warp in range(self._paths.members.shape[1]):
            numbers = np.flatnonzero(self._paths.members[:, warp])
            blocks = self._paths.blocks[numbers]
            shorter = self._fold_loops(blocks, lengths)
            keep_mask = shorter.kept
            steps.append(expand_blocks(blocks[keep_mask], firsts, lengths))
            weights.append(np.repeat(shorter.weights[keep_mask], lengths[blocks[keep_mask]]))
            rows.append(table.of_warp(warp, numbers[keep_mask]))
        streams = Streams(
            waves=waves,
            steps=np.concatenate(steps).astype(np.int32),
            weights=np.concatenate(weights).astype(np.float32),
            start=_starts(steps),
            rows=np.concatenate(rows).astype(np.float32),
            rows_start=_starts(rows),
        )
        return replace(streams, rows=renumber_phases(self._code, streams)), self._arrivals

    def _fold_loops(self, blocks: Array, lengths: Array) -> Folded:
        """What a warp executed, with long loops shortened. Where memory barriers order warps, all
        iterations stay unless they are very many: the barriers form rings."""
        synchronised = bool((self._code.kind == c.PHASE_WAIT).any())
        if synchronised and lengths[blocks].sum() <= UNFOLDED:
            return Folded(np.ones(len(blocks), bool), np.ones(len(blocks)))
        return fold(blocks, lengths)

    def _defaults(self) -> Array:
        """The row of each instruction whose accesses are not recorded: the stack of a warp. As
        with other data, the L1 holds the stacks of the resident warps whole or not at all."""
        defaults = np.zeros((len(self._code.slots), REQUEST), np.float32)
        placement = self._placement
        resident = min(placement.resident, placement.most_per_unit)
        stacks = self._stack_bytes * placement.waves * WARP * resident
        usable = self._chip.l2_bytes * self._chip.coefficient("sm", "l2_usable")
        missed = stacks > self._l1_and_shared() - self._shared_bytes
        hit_share = float(np.asarray(residency(stacks * placement.active_units, usable)))
        for instruction in self._code.program.instructions:
            memory = instruction.memory
            if memory is not None and memory.space is Space.SCRATCH:
                bytes_moved = memory.bytes * WARP
                defaults[instruction.index, TAGS] = bytes_moved / LINE
                defaults[instruction.index, L2] = bytes_moved * missed
                defaults[instruction.index, HBM] = bytes_moved * missed * (1 - hit_share)
        return defaults

    def _is_global(self, access: WarpAccess) -> bool:
        memory = self._code.program.instructions[access.instruction].memory
        return memory is not None and memory.space in (Space.GLOBAL, Space.FLAT)

    def _is_bulk(self, access: WarpAccess) -> bool:
        return bool(self._code.kind[access.instruction] == c.TMA)

    def _global_rows(self) -> LevelTraffic:
        """Fill the rows of accesses to global memory; the bytes of the whole launch."""
        paths, program, waves = self._paths, self._code.program, self._placement.waves
        tensors = _arrays(self._launch)
        parts: list[tuple[int, Array, Array, Array]] = []
        for number, access in enumerate(paths.accesses):
            if not self._is_global(access):
                continue
            if self._is_bulk(access):
                parts.append((number, *self._boxes.sectors(number, access)))
                continue
            memory = program.instructions[access.instruction].memory
            assert memory is not None
            addresses, lanes = access.addresses, access.lanes
            if addresses is None:
                addresses, lanes = self._assume_contiguous(access, number, memory.bytes)
            parts.append((number, *sectors(addresses, lanes, memory.bytes)))
            if memory.kind is MemoryKind.ATOMIC:
                self._rows[number][:, SERIAL] = repeats(addresses, lanes)
        if not parts:
            return LevelTraffic(0.0, 0.0, 0.0)
        accesses = [paths.accesses[number] for number, *_ in parts]
        counts = [len(access.warps) for access in accesses]
        start = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p[2]) for p in parts]))])
        touched_sectors = np.concatenate([part[1] for part in parts])
        instruction = np.repeat([access.instruction for access in accesses], counts)
        warps = np.concatenate([access.warps for access in accesses])
        first = touched_sectors[np.minimum(start[:-1], max(0, len(touched_sectors) - 1))]
        sector_records = Touched.of(
            warps // waves,
            instruction,
            tensors.of(first << np.uint64(5)),
            touched_sectors,
            start,
            self._stores(instruction),
        )
        kinds = self._code.kind[instruction]
        names = [program.instructions[a.instruction].mnemonic for a in accesses]
        skips = np.repeat(["BYPASS" in name or ".STRONG" in name for name in names], counts)
        shared = self._shared_bytes
        level_shares = shares(
            sector_records,
            self._chip,
            tensors,
            stores=self._stores(instruction),
            bypass=skips | (kinds == c.ATOMIC) | (kinds == c.TMA),
            distinct=self._distinct(),
            workgroups=self._placement.workgroups,
            at_once=min(
                self._placement.workgroups, self._placement.resident * self._placement.units
            ),
            resident=min(self._placement.resident, self._placement.most_per_unit),
            l1_bytes=max(0.0, self._l1_and_shared() - shared),
        )
        lines = np.concatenate([part[3] for part in parts])
        position = 0
        for (number, *_), count in zip(parts, counts, strict=True):
            piece, rows = slice(position, position + count), self._rows[number]
            rows[:, TAGS] = lines[piece]
            rows[:, L2] = level_shares.l2[piece] * 32
            rows[:, HBM] = level_shares.hbm[piece] * 32
            if self._code.kind[paths.accesses[number].instruction] == c.TO_SHARED:
                rows[:, TAGS], rows[:, PASSES] = 1.0, lines[piece]
            elif self._is_bulk(paths.accesses[number]):
                rows[:, TAGS], rows[:, PASSES] = 0.0, lines[piece]
            position += count
        l2, hbm = level_shares.launch
        return LevelTraffic(l2, hbm, hbm, atomics=self._atomics)

    def _meeting(self) -> float:
        """Atomics of the launch at the address with the most of them, of those that every sampled
        workgroup updates."""
        waves, updates = self._placement.waves, []
        for access in self._paths.accesses:
            memory = self._code.program.instructions[access.instruction].memory
            atomic = memory is not None and memory.kind is MemoryKind.ATOMIC
            if atomic and access.addresses is not None and self._is_global(access):
                warp, _ = np.nonzero(access.lanes)
                groups = (access.warps // waves).astype(np.uint64)[warp]
                updates.append(np.stack([groups, access.addresses[access.lanes]], axis=1))
        if not updates:
            return 0.0
        pairs, counts = np.unique(np.concatenate(updates), axis=0, return_counts=True)
        addresses, address_index = np.unique(pairs[:, 1], return_inverse=True)
        groups = self._paths.members.shape[1] // waves
        everywhere = np.bincount(address_index, minlength=len(addresses)) == groups
        most = np.bincount(address_index, counts, len(addresses))[everywhere].max(initial=0.0)
        return float(most) * self._placement.workgroups / groups

    def _stores(self, instruction: Array) -> Array:
        """Which instructions (by number) write memory (bool)."""
        stored = np.array(
            [
                i.memory is not None and i.memory.kind in (MemoryKind.STORE, _FROM_SHARED)
                for i in self._code.program.instructions
            ]
        )
        return stored[instruction]

    def _l1_and_shared(self) -> float:
        """Bytes of the memory that L1 and shared memory divide."""
        device = self._chip.device
        value = device.get("l1v_size")
        if not isinstance(value, (int, float)):
            raise MissingFact(f"{device.id} has no known l1v_size")
        return float(value) * 1024

    def _assume_contiguous(
        self, access: WarpAccess, number: int, width: int
    ) -> tuple[Array, Array]:
        """Contiguous lanes in memory nothing else touches."""
        base = (np.uint64(1) << np.uint64(60)) + np.uint64(number) * np.uint64(1 << 32)
        warps = base + access.warps.astype(np.uint64) * np.uint64(WARP * width)
        return warps[:, None] + np.arange(WARP, dtype=np.uint64) * np.uint64(width), access.lanes

    def _distinct(self) -> Array:
        """Per instruction, the share of its addresses that differ between workgroups."""
        placement, launch = self._placement, self._launch
        distinct_shares = np.ones(len(self._code.program.instructions))
        count = min(placement.workgroups, WIDE)
        if count < 2:
            return distinct_shares
        first = (placement.workgroups - count) // 2
        numbers = np.arange(first, first + count)
        paths = follow(
            self._code.program, launch, workgroup_ids(launch, numbers), np.zeros(count, np.int64)
        )
        pairs_by_instruction: dict[int, list[Array]] = {}
        for access in paths.accesses:
            if self._is_bulk(access):
                pairs = [self._boxes.identities(access), access.warps.astype(np.uint64)]
                pairs_by_instruction.setdefault(access.instruction, []).append(
                    np.stack(pairs, axis=1)
                )
            elif access.addresses is not None and self._is_global(access):
                lane = access.lanes.argmax(axis=1)
                addresses = access.addresses[np.arange(len(access.warps)), lane]
                pairs_by_instruction.setdefault(access.instruction, []).append(
                    np.stack([addresses, access.warps.astype(np.uint64)], axis=1)
                )
        for instruction, parts in pairs_by_instruction.items():
            pairs = np.unique(np.concatenate(parts), axis=0)
            distinct_shares[instruction] = len(np.unique(pairs[:, 0])) / len(pairs)
        return distinct_shares

    def _shared_rows(self) -> None:
        program = self._code.program
        for number, access in enumerate(self._paths.accesses):
            memory = program.instructions[access.instruction].memory
            if memory is None or memory.space is not Space.LDS:
                continue
            name = program.instructions[access.instruction].opcode.name
            width, lanes = memory.bytes, access.lanes
            if name in ("LDSM", "STSM"):  # a lane gives the address of a row of 16 bytes
                lanes = access.lanes & (np.arange(WARP) < 8 * (width // 4))
                width = 16
            if access.addresses is None:
                self._rows[number][:, PASSES] = max(1.0, memory.bytes * WARP / LINE)
            else:
                self._rows[number][:, PASSES] = passes(access.addresses, lanes, width)
                if memory.kind is MemoryKind.ATOMIC:
                    self._rows[number][:, PASSES] += repeats(access.addresses, lanes)

    def _barrier_rows(self) -> Array:
        """Number memory barriers by their addresses; the arrivals per phase of each."""
        numbers: dict[int, int] = {}
        arrivals: dict[int, int] = {}
        waits: dict[tuple[int, int], int] = {}
        waves = self._placement.waves
        for number, access in enumerate(self._paths.accesses):
            kind = self._code.kind[access.instruction]
            if kind not in (c.ARRIVAL, c.PHASE_WAIT, c.COMMIT, c.TMA):
                continue
            addresses = self._barriers(access)
            if addresses is None:
                continue
            for position, (warp, at) in enumerate(
                zip(access.warps.tolist(), addresses.tolist(), strict=True)
            ):
                barrier = numbers.setdefault(int(at), len(numbers))
                if kind == c.PHASE_WAIT:
                    self._rows[number][position, TAGS] = barrier
                else:
                    self._rows[number][position, SERIAL] = barrier + 1
                if warp >= waves:
                    continue
                if kind == c.PHASE_WAIT:
                    waits[warp, barrier] = waits.get((warp, barrier), 0) + 1
                else:
                    arrivals[barrier] = arrivals.get(barrier, 0) + 1
        per_phase = np.ones(max(1, len(numbers)), np.int64)
        for barrier, count in arrivals.items():
            most = max((n for (_, b), n in waits.items() if b == barrier), default=count)
            per_phase[barrier] = max(1, round(count / max(1, most)))
        return per_phase

    def _barriers(self, access: WarpAccess) -> Array | None:
        """The addresses of the memory barriers of an access (i64[w]), None for copies without."""
        if self._is_bulk(access):
            assert access.operands is not None
            if self._stores(np.array([access.instruction])).all():
                return None
            addresses = access.operands[:, BARRIER]
            if (addresses != UNKNOWN).all():
                return addresses
        elif access.addresses is not None:
            return access.addresses[np.arange(len(access.warps)), access.lanes.argmax(axis=1)]
        raise Unpredictable("the address of a memory barrier depends on data")


def _arrays(launch: Launch) -> LaunchArrays:
    """The tensors among the arguments of a launch."""
    tensor_arguments = arrays(launch)
    first = np.array([array.first for array in tensor_arguments], np.uint64)
    return LaunchArrays(
        first, first + np.array([array.bytes for array in tensor_arguments], np.uint64)
    )


def _starts(parts: list[Array]) -> Array:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


__all__ = ["WARP", "FollowedWorkgroups"]
