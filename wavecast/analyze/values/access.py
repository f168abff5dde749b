"""What the lanes of one memory instruction touch, and how regular that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from wavecast.analyze.values.banks import conflict_ways, phases
from wavecast.analyze.values.kinds import LaneOffsets, Value, is_known, signed_offsets
from wavecast.arch import Device
from wavecast.arch.lds import Phases
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Program
from wavecast.isa.semantics.integers import Unknown

_STORES = (MemoryKind.STORE, MemoryKind.STORE_FROM_LDS)


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """One memory instruction's addresses, the first time a wave executes it.

    `pattern` is `contiguous` (neighbouring lanes touch neighbouring bytes), `strided`, `broadcast`
    (one address for all lanes), `rows` (as many contiguous bytes again and again, as in a tile
    narrower than the wave), `irregular` (known, none of these) or `unknown`; `stride` is bytes
    between neighbouring lanes. `argument` names the kernel parameter the address comes from,
    "" when none or several could be. `offsets` holds one byte offset per lane, None for lanes that
    are off: relative to the argument's storage where that is known (`exact`), otherwise to the
    lowest lane's address. `width` is bytes per lane of one access; an instruction that accesses two
    places per lane (`ds_read2`) has `parts` 2.
    """

    pattern: str
    stride: int | None
    argument: str
    arguments: tuple[str, ...]
    offsets: tuple[int | None, ...] | None
    exact: bool
    width: int
    parts: int
    kind: MemoryKind

    @property
    def lanes(self) -> int | None:
        """Lanes that take part; None when the addresses are not known."""
        return None if self.offsets is None else len(self.offsets) - self.offsets.count(None)

    @property
    def row_bytes(self) -> int | None:
        """Contiguous bytes before the addresses jump; None where it is not always as
        many."""
        if self.offsets is None:
            return None
        rows = _rows([offset for offset in self.offsets if offset is not None], self.width)
        return rows[0] if len(set(rows)) == 1 else None

    def lines(self, line_bytes: int) -> int | None:
        """Cache lines of `line_bytes` a wave touches; the base is taken as aligned to a line
        unless `exact`. None when the addresses are not known."""
        if self.offsets is None:
            return None
        lines: set[int] = set()
        for offset in self.offsets:
            if offset is not None:
                first, last = offset // line_bytes, (offset + self.width - 1) // line_bytes
                lines.update(range(first, last + 1))
        return len(lines) or None

    def ideal_lines(self, line_bytes: int, lane_bytes: int | None = None) -> int | None:
        """Lines that as many active lanes need when their bytes follow one another."""
        if self.offsets is None:
            return None
        active = sum(offset is not None for offset in self.offsets)
        width = self.width if lane_bytes is None else lane_bytes
        return max(1, -(-active * width // line_bytes))

    def phases(self, device: Device) -> Phases:
        """The groups of lanes that the LDS serves together, in order. See `banks`."""
        return phases(
            device.target,
            self.width,
            self.kind in _STORES,
            len(self.offsets or ()),
            device.facts.integer("lds_banks"),
        )

    def conflict_ways(self, device: Device) -> float | None:
        """LDS passes over passes without bank conflicts; 1 means none. See `banks`."""
        if self.offsets is None:
            return None
        groups = self.phases(device)
        serial = self.kind is MemoryKind.ATOMIC
        conflicts = conflict_ways(self.offsets, self.width, groups, serial=serial)
        return conflicts[0] if conflicts is not None else None


def requested_bytes(
    program: Program,
    accesses: Mapping[int, AddressPattern],
    counts: Sequence[float | None],
    lanes: int,
) -> dict[str, tuple[float, float]]:
    """Bytes one wave loads from and stores to each argument, every access with all its lanes.

    An upper bound of what it touches. Arguments with an access in a block whose count is not known
    are left out.
    """
    totals: dict[str, tuple[float, float]] = {}
    unknown: set[str] = set()
    for block in program.blocks:
        count = counts[block.index]
        for index in range(block.start, block.stop):
            access = accesses.get(index)
            memory = program.instructions[index].decoded.memory
            if access is None or memory is None or not access.arguments:
                continue
            if count is None:
                unknown.update(access.arguments)
                continue
            wave = memory.bytes * (1 if memory.space is Space.SCALAR else lanes) * count
            both = memory.kind is MemoryKind.ATOMIC
            for name in access.arguments:
                loaded, stored = totals.get(name, (0.0, 0.0))
                writes = memory.kind in _STORES
                totals[name] = (
                    loaded + (wave if both or not writes else 0.0),
                    stored + (wave if both or writes else 0.0),
                )
    return {name: total for name, total in totals.items() if name not in unknown}


@dataclass(frozen=True, slots=True)
class Sighting:
    """The address of a memory instruction as the walk found it, and the lanes it was active in.

    `address` is in bytes, the instruction's constant offset included, and counts from the `base` of
    a buffer. `reach` is the first offset beyond the buffer.
    """

    address: Value
    mask: int | None
    reach: int | None
    base: Value = 0


def describe(
    sighting: Sighting | None,
    lanes: int,
    width: int,
    parts: int,
    kind: MemoryKind,
    arguments: tuple[str, ...],
    origin: int | None,
) -> AddressPattern:
    """The access of one instruction; `origin` is the address its argument's storage starts at."""
    argument = arguments[0] if len(arguments) == 1 else ""
    offsets: list[int | None] | None = None
    exact = False
    if sighting is not None:
        offsets, exact = _offsets(sighting, lanes, origin)
    if offsets is None or all(offset is None for offset in offsets):
        return AddressPattern("unknown", None, argument, arguments, None, False, width, parts, kind)
    pattern, stride = classify(offsets, width)
    return AddressPattern(
        pattern, stride, argument, arguments, tuple(offsets), exact, width, parts, kind
    )


def _offsets(
    sighting: Sighting, lanes: int, origin: int | None
) -> tuple[list[int | None] | None, bool]:
    """Byte offsets by lane, and whether they are relative to the argument's own storage."""
    address = sighting.address
    if isinstance(address, (Unknown, int)):
        values = [0 if isinstance(address, Unknown) else address] * lanes
    elif isinstance(address, np.ndarray):
        values = np.broadcast_to(address, (lanes,)).tolist()
    elif isinstance(address, LaneOffsets):
        values = np.broadcast_to(signed_offsets(address), (lanes,)).tolist()
    else:
        return None, False
    everywhere = (1 << lanes) - 1
    mask = everywhere if sighting.mask is None else sighting.mask & everywhere
    reach = sighting.reach
    active: list[int | None] = [*values]
    addresses: list[int] = values
    if mask != everywhere or (reach is not None and not 0 <= min(values) <= max(values) < reach):
        active = [
            value if mask >> lane & 1 and (reach is None or 0 <= value < reach) else None
            for lane, value in enumerate(values)
        ]
        addresses = [value for value in active if value is not None]
    lowest = min(addresses, default=0)
    exact = is_known(address) and origin is not None and (not addresses or lowest >= origin)
    start = origin if exact and origin is not None else lowest
    return (
        [None if value is None else value - start for value in active] if start else active
    ), exact


def _even_stride(offsets: list[int | None]) -> int | None:
    """Bytes from each lane to the next where all lanes are active and it is always the same."""
    if len(offsets) < 2:
        return None
    first, second = offsets[0], offsets[1]
    if first is None or second is None:
        return None
    stride = second - first
    if not stride:
        return 0 if offsets.count(first) == len(offsets) else None
    even = range(first, first + stride * len(offsets), stride)
    return stride if offsets == list(even) else None


def classify(offsets: list[int | None], width: int) -> tuple[str, int | None]:
    """Pattern and stride of byte offsets by lane; inactive lanes are skipped."""
    first, stride = offsets[0], _even_stride(offsets)
    if first is not None and stride is not None:
        if not stride:
            return "broadcast", 0
        return ("contiguous" if stride == width else "strided"), stride
    active = [(lane, offset) for lane, offset in enumerate(offsets) if offset is not None]
    if len({offset for _, offset in active}) == 1:
        return "broadcast", 0
    (lane, offset), (following, next_offset) = active[0], active[1]
    distance, steps = next_offset - offset, following - lane
    stride = distance // steps
    if any(value != offset + (number - lane) * stride for number, value in active):
        rows = set(_rows([offset for _, offset in active], width))
        return ("rows" if len(rows) == 1 and rows.pop() > width else "irregular"), None
    return ("contiguous" if stride == width else "strided"), stride


def _rows(offsets: Sequence[int], width: int) -> list[int]:
    """Bytes of the runs of lanes that follow each other in memory."""
    ends = [n for n in range(1, len(offsets)) if offsets[n] != offsets[n - 1] + width]
    bounds = [0, *ends, len(offsets)]
    return [width * (end - start) for start, end in pairwise(bounds)]
