"""Which works of a HIP program have touched memory, and which of them nothing orders.

For each dword of an allocation the last work that has stored to it, and the last one of each stream
that has loaded it. Works are compared when they have ended. Accesses that are both atomic do not
race. What host and devices access may not be touched by the host before it has waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from wavecast.emulate.check.clocks.atomicity import ATOMIC
from wavecast.emulate.check.clocks.records import (
    ATOMICITY,
    BYTES,
    HIDES,
    INSTRUCTION,
    PART_WORDS,
    PARTS,
    SYSTEM,
    WRITES,
)
from wavecast.emulate.check.gpus.stream_order import Before
from wavecast.emulate.check.gpus.work_order import StreamWork, WorkOrder
from wavecast.emulate.check.shadow import DWORD_BYTES
from wavecast.emulate.hostmemory import nonzero, sparse_zeros
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import AddressInterval
from wavecast.isa.instruction import SourceLocation

_ATOMIC, _BYTES = 1 << 17, 18
"""Bits of a site: the instruction + 1 of a kernel below, the bytes of the dword above."""
_SYSTEM = 1 << _BYTES + DWORD_BYTES
"""Bit of a site of system scope."""
_WHOLE = 0xF << _BYTES
_MOST_RUNS = 1 << 10
"""Pieces of memory that a work has touched and the host must not: more are not followed."""


@dataclass(frozen=True, slots=True)
class PendingBytes:
    """Memory that the host may not touch (`written`) or not write before it has waited for a
    work."""

    first: int
    end: int
    written: bool
    work: StreamWork
    site: int


@dataclass(slots=True)
class _Memory:
    """The records of an allocation: two arrays per kind of access, works and sites. `parts` has the
    last stores of each byte of dwords that the last store of the dword has not stored, once there
    are any."""

    first: int
    end: int
    writers: tuple[np.ndarray, np.ndarray]
    readers: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    parts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    @classmethod
    def of(cls, memory: AddressInterval) -> _Memory:
        return cls(*memory, _arrays(memory))

    def readers_of(self, queue: int) -> tuple[np.ndarray, np.ndarray]:
        if queue not in self.readers:
            self.readers[queue] = _arrays((self.first, self.end))
        return self.readers[queue]

    def keep_parts(self, dwords: np.ndarray, sites: np.ndarray) -> None:
        """Keep what stores of `sites` to some dwords are about to hide of the last stores."""
        works, before = (array[dwords] for array in self.writers)
        left = (before & ~sites & _WHOLE) >> _BYTES
        if not self.parts and left.any():
            self.parts = [_arrays((self.first, self.end)) for _ in range(DWORD_BYTES)]
        for byte, (part_works, part_sites) in enumerate(self.parts):
            bit = np.uint32(1 << _BYTES + byte)
            part_works[dwords[sites & bit != 0]] = 0
            hidden = left >> np.uint32(byte) & np.uint32(1) != 0
            part_works[dwords[hidden]] = works[hidden]
            part_sites[dwords[hidden]] = before[hidden] & np.uint32(~_WHOLE & 0xFFFFFFFF) | bit


def _arrays(memory: AddressInterval) -> tuple[np.ndarray, np.ndarray]:
    dwords = (memory[1] - memory[0] + 3) // 4
    return sparse_zeros(dwords, np.uint32), sparse_zeros(dwords, np.uint32)


class WorkMemory:
    """The memory of one program, whose works `order` has. `active` once works can be unordered."""

    def __init__(self, order: WorkOrder, target: str) -> None:
        self.order, self.target = order, target
        self.active = False
        self.shared: list[AddressInterval] = []
        """Memory that host and devices access."""
        self.pending: list[PendingBytes] = []
        self._grains: dict[AddressInterval, bool] = {}
        self._memory: dict[int, _Memory] = {}

    def set_grain(self, memory: AddressInterval, coarse: bool | None) -> None:
        """Memory is coarse-grained or not, other than its kind; None as its kind is."""
        self._grains.pop(memory, None)
        if coarse is not None:
            self._grains[memory] = coarse

    def is_coarse(self, address: int) -> bool:
        """Whether memory is coarse-grained: coherent between devices, and with the host, where
        kernels end. That of `hipMalloc` is, that of the host is not (HIP programming guide,
        "Coherence control")."""
        for (first, end), coarse in reversed(self._grains.items()):
            if first <= address < end:
                return coarse
        return not any(first <= address < end for first, end in self.shared)

    def touch(
        self,
        work: StreamWork,
        memory: AddressInterval,
        accesses: Iterable[tuple[bool, np.ndarray, np.ndarray]],
        name_of: Callable[[int], str],
    ) -> list[Report]:
        """Compare and record accesses of a work to an allocation: whether they store, the dwords
        (sorted), and their sites. `name_of` is what an address is called."""
        reports: list[Report] = []
        allocation = self._memory.get(memory[0])
        if allocation is None or allocation.end != memory[1]:
            allocation = self._memory[memory[0]] = _Memory.of(memory)
        accesses = list(accesses)
        for stores, dwords, sites in accesses:
            other = [(arrays, True) for arrays in (allocation.writers, *allocation.parts)]
            if stores:
                other += [(reader, False) for queue, reader in allocation.readers.items()]
            for (works, theirs), stored in other:
                coarse = self.is_coarse(memory[0])
                pairs = self._racing_pairs(work, works[dwords], theirs[dwords], sites, coarse)
                for at, number, site, mine in pairs:
                    address = memory[0] + 4 * int(dwords[at])
                    how = (stores, stored)
                    report = self._report(work, mine, how, self.order.work(number), site)
                    reports.append(report(name_of(address), address))
        for stores, dwords, sites in accesses:
            if stores:
                allocation.keep_parts(dwords, sites)
            arrays = allocation.writers if stores else allocation.readers_of(work.queue)
            arrays[0][dwords], arrays[1][dwords] = work.number, sites
        self._keep_pending(work, memory, accesses)
        return reports

    def on_copy(
        self,
        work: StreamWork,
        rows: Sequence[AddressInterval],
        *,
        stores: bool,
        within: AddressInterval,
    ) -> list[Report]:
        """The same for rows of bytes that a copy or a fill touches."""
        parts = [
            np.arange((a - within[0]) // 4, (b - within[0] + 3) // 4) for a, b in rows if b > a
        ]
        if not parts:
            return []
        dwords = np.unique(np.concatenate(parts))
        sites = np.full(len(dwords), _WHOLE, np.uint32)
        return self.touch(work, within, [(stores, dwords, sites)], _hexadecimal)

    def on_launch(
        self,
        work: StreamWork,
        ranges: Sequence[AddressInterval],
        shadows: Sequence[tuple[np.ndarray, ...]],
        name_of: Callable[[int], str],
    ) -> list[Report]:
        """The same for what a kernel has touched, by its records of stores and loads."""
        reports: list[Report] = []
        for memory, arrays in zip(ranges, shadows, strict=True):
            if not arrays[0].size:
                continue
            accesses = [(True, *hidden) for hidden in _hidden_stores(arrays)]
            for stores, records in ((True, arrays[0]), (False, arrays[2])):
                dwords = nonzero(records)
                if len(dwords):
                    accesses.append((stores, dwords, _sites(records[dwords])))
            if accesses:
                reports += self.touch(work, memory, accesses, name_of)
        return reports

    def on_free(self, first: int) -> None:
        """Memory has been freed, behind all that may touch it."""
        self._memory.pop(first, None)

    def unwaited_accesses(self) -> list[PendingBytes]:
        """What the host may not touch now."""
        self.pending = [
            entry for entry in self.pending if not entry.work.is_before(self.order.host)
        ]
        return self.pending

    def host_access(self, address: int, location: SourceLocation | None) -> list[Report]:
        """The host has touched memory that a work may still access."""
        access = next((entry for entry in self.pending if entry.first <= address < entry.end), None)
        if access is None:
            return []
        work, (text, there) = access.work, _site_of(access.work, access.site)
        did = "writes" if access.written else "reads"
        how = "synchronise with the stream, an event behind it, or the device"
        if access.site & _ATOMIC and self.is_coarse(address):
            how += (
                ". The memory is coarse-grained: what a kernel stores there may be seen when "
                "it has ended; in hipHostMallocCoherent memory the host may wait for a flag"
            )
        return [
            Report(
                kind=Kind.HOST_RACE,
                kernel="the host",
                target=self.target,
                message=f"touches memory at {address:#x} that {work.description} {did}, and has "
                f"not waited for it: {how}",
                instruction=location.line if location is not None else 0,
                text="access of the host",
                location=location,
                addresses=(address,),
                other_text=text,
                other_location=there,
                other_kernel=work.name,
            )
        ]

    def _keep_pending(
        self,
        work: StreamWork,
        memory: AddressInterval,
        accesses: Sequence[tuple[bool, np.ndarray, np.ndarray]],
    ) -> None:
        if not any(first <= memory[0] < end for first, end in self.shared):
            return
        is_flag = any(stores and (sites & _ATOMIC).any() for stores, _, sites in accesses)
        if is_flag and not self.is_coarse(memory[0]):
            return  # for which the host may wait
        for stores, dwords, sites in accesses:
            runs = np.split(np.arange(len(dwords)), np.flatnonzero(np.diff(dwords) != 1) + 1)
            if len(runs) <= _MOST_RUNS:
                for run in runs:
                    first, last = memory[0] + 4 * int(dwords[run[0]]), int(dwords[run[-1]])
                    end = memory[0] + 4 * last + 4
                    site = int(sites[run[0]])
                    self.pending.append(PendingBytes(first, end, stores, work, site))

    def _racing_pairs(
        self,
        work: StreamWork,
        works: np.ndarray,
        sites: np.ndarray,
        mine: np.ndarray,
        coarse: bool,
    ) -> Iterator[tuple[int, int, int, int]]:
        """The first dword of each pair of sites that race: its index, the other work and site,
        and the site of this one."""
        numbers = [int(n) for n in np.unique(works) if n and int(n) != work.number]
        behind: Before = work.before
        numbers = [n for n in numbers if not self.order.work(n).is_before(behind)]
        if not numbers:
            return
        atomic = (sites & mine & _ATOMIC) != 0
        others = [n for n in numbers if self.order.work(n).device != work.device]
        if others:
            narrow = coarse | ((sites & mine & _SYSTEM) == 0)
            atomic &= ~(np.isin(works, others) & narrow)
        overlap = (sites & mine & _WHOLE) != 0
        clash = np.isin(works, numbers) & overlap & ~atomic
        indices = np.flatnonzero(clash)
        keys = np.stack([works[indices], sites[indices], mine[indices]], axis=1)
        _, firsts = np.unique(keys & ((1 << _BYTES) - 1), axis=0, return_index=True)
        for index in indices[np.sort(firsts)]:
            yield int(index), int(works[index]), int(sites[index]), int(mine[index])

    def _report(
        self,
        work: StreamWork,
        site: int,
        how: tuple[bool, bool],
        other: StreamWork,
        other_site: int,
    ) -> Callable[[str, int], Report]:
        text, location = _site_of(work, site)
        other_text, other_location = _site_of(other, other_site)
        verb = work.verb or ("overwrites" if how[0] else "reads")
        did = "writes" if how[1] else "reads"
        across = work.device != other.device
        lack = "no event or wait of the host orders the two"
        if site & other_site & _ATOMIC:
            lack += (
                ". Atomic operations of two GPUs are so at system scope (atomicAdd_system and its "
                "like, __HIP_MEMORY_SCOPE_SYSTEM) and in memory that is not coarse-grained "
                "(hipExtMallocWithFlags, hipMallocManaged, hipHostMalloc)"
            )

        def report_at(where: str, address: int) -> Report:
            return Report(
                kind=Kind.GPU_RACE if across else Kind.LAUNCH_RACE,
                kernel=work.name,
                target=self.target,
                message=f"in {work.where} {verb} what {other.description} {did} at {where}: {lack}",
                instruction=max(0, (site & 0xFFFF) - 1),
                text=text,
                location=location,
                addresses=(address,),
                other=max(0, (other_site & 0xFFFF) - 1),
                other_text=other_text,
                other_location=other_location,
                other_kernel=other.name,
                gpu=work.device if across else None,
                other_gpu=other.device if across else None,
            )

        return report_at


def _hidden_stores(arrays: tuple[np.ndarray, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The dwords of which a kernel's last store hides others, by byte, and the sites of these."""
    if not arrays[PARTS].size:
        return
    hiding = np.flatnonzero(arrays[WRITES] >> np.uint64(HIDES.first) & np.uint64(1))
    rows = arrays[PARTS].reshape(-1, PART_WORDS)[hiding]
    for byte in range(DWORD_BYTES):
        bit = np.uint64(1 << BYTES.first + byte)
        hidden = (rows[:, byte] != 0) & (arrays[WRITES][hiding] & bit == 0)
        if hidden.any():
            others = np.uint64(BYTES.mask << BYTES.first) ^ bit
            yield hiding[hidden], _sites(rows[hidden, byte] & ~others)


def _sites(records: np.ndarray) -> np.ndarray:
    """Places from first words of records (uint64)."""
    instruction = (records >> np.uint64(INSTRUCTION.first)) + np.uint64(1)
    atomicity = records >> np.uint64(ATOMICITY.first) & np.uint64(ATOMICITY.mask)
    atomic = np.isin(atomicity, [int(kind) for kind in ATOMIC])
    bytes_ = records >> np.uint64(BYTES.first) & np.uint64(BYTES.mask)
    system = records >> np.uint64(SYSTEM.first) & np.uint64(1)
    sites = instruction | bytes_ << np.uint64(_BYTES) | atomic * np.uint64(_ATOMIC)
    sites |= system * np.uint64(_SYSTEM)
    return sites.astype(np.uint32)


def _site_of(work: StreamWork, site: int) -> tuple[str, SourceLocation | None]:
    """The instruction and its source line, or the call of the host."""
    number = site & 0xFFFF
    if work.program is None or not number:
        return work.name, work.location
    instruction = work.program.instructions[number - 1]
    return instruction.decoded.text, instruction.location


def _hexadecimal(address: int) -> str:
    return f"the address {address:#x}"


__all__ = ["PendingBytes", "WorkMemory"]
