"""What lanes tell each other: intrinsics of the target, and the same in numpy.

Source of the lane arithmetic: LLVM's AMDGPU usage guide and the instruction set architecture guides
("Data parallel processing", "DS_SWIZZLE_B32"). Every lane of the wave is active.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.emulate.differential.program import Exchange
from tests.emulate.differential.text import Writer

Waves = np.ndarray
"""`[wave][lane]` uint32."""


@dataclass(frozen=True, slots=True)
class LaneOperation:
    """`write` gives the name of the result, `model` computes it; `operands` are i32 values."""

    name: str
    write: Callable[[Writer, Exchange], str]
    model: Callable[[list[Waves], tuple[int, ...]], Waves]
    detail: Callable[[Random, str], tuple[int, ...]]
    operands: int = 1
    targets: tuple[str, ...] = ("gfx",)

    def exists(self, target: str) -> bool:
        return any(target.startswith(name) for name in self.targets)


def _nothing(random: Random, target: str) -> tuple[int, ...]:
    return ()


def _lane(random: Random, target: str) -> tuple[int, ...]:
    return (random.randrange(32),)


# one lane for all


def _write_first(w: Writer, e: Exchange) -> str:
    return w.intrinsic("amdgcn.readfirstlane", "i32", w.operand(e.arguments[0]))


def _first(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    return np.repeat(values[0][:, :1], values[0].shape[1], axis=1)


def _write_read(w: Writer, e: Exchange) -> str:
    value = ("i32", w.operand(e.arguments[0]))
    return w.call("llvm.amdgcn.readlane.i32", "i32", value, ("i32", str(e.detail[0])))


def _read(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    lane = detail[0]
    return np.repeat(values[0][:, lane : lane + 1], values[0].shape[1], axis=1)


def _write_write(w: Writer, e: Exchange) -> str:
    single = w.intrinsic("amdgcn.readfirstlane", "i32", w.operand(e.arguments[1]))
    old = ("i32", w.operand(e.arguments[0]))
    lane = ("i32", str(e.detail[0]))
    return w.call("llvm.amdgcn.writelane.i32", "i32", ("i32", single), lane, old)


def _write_lane(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    result = values[0].copy()
    result[:, detail[0]] = values[1][:, 0]
    return result


# any lane by number


def _write_permute(w: Writer, e: Exchange) -> str:
    value, lane = (w.operand(x) for x in e.arguments)
    where = w.set(f"shl i32 {lane}, 2")
    return w.call("llvm.amdgcn.ds.bpermute", "i32", ("i32", where), ("i32", value))


def _permute(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    data, where = values
    lanes = data.shape[1]
    return np.take_along_axis(data, (where % lanes).astype(np.int64), axis=1)


# data parallel processing


def _controls(target: str) -> list[int]:
    rows = [*range(0x101, 0x110), *range(0x111, 0x120), *range(0x121, 0x130), 0x140, 0x141]
    if target.startswith("gfx9"):
        rows += [0x130, 0x134, 0x138, 0x13C, 0x142, 0x143]
    else:
        rows += range(0x160, 0x170)
    return rows + list(range(0x150, 0x160))


def _pick_dpp(random: Random, target: str) -> tuple[int, ...]:
    control = random.randrange(256) if random.random() < 0.3 else random.choice(_controls(target))
    rows = 15 if random.random() < 0.6 else random.randrange(16)
    banks = 15 if random.random() < 0.6 else random.randrange(16)
    return control, rows, banks, random.randrange(2)


def _write_dpp(w: Writer, e: Exchange) -> str:
    old, value = (w.operand(x) for x in e.arguments)
    control, rows, banks, bound = e.detail
    flags = [("i32", str(item)) for item in (control, rows, banks)]
    flags.append(("i1", "true" if bound else "false"))
    name = "llvm.amdgcn.update.dpp.i32"
    return w.call(name, "i32", ("i32", old), ("i32", value), *flags)


def _source(control: int, lane: int, lanes: int) -> int | None:
    """The lane read by a lane, None outside of the row or wave."""
    row, place = lane & ~15, lane & 15
    amount = control & 15
    if control < 256:
        return lane & ~3 | control >> 2 * (lane & 3) & 3
    kind = control >> 4
    if kind == 0x10:
        return row + place + amount if place + amount < 16 else None
    if kind == 0x11:
        return row + place - amount if place >= amount else None
    if kind == 0x12:
        return row + (place - amount & 15)
    if control == 0x140:
        return row + 15 - place
    if control == 0x141:
        return lane ^ 7
    if kind == 0x15:
        return row + amount
    if kind == 0x16:
        return row + (place ^ amount)
    whole = {0x130: lane + 1, 0x134: (lane + 1) % lanes, 0x138: lane - 1, 0x13C: (lane - 1) % lanes}
    if control in whole:
        return whole[control] if 0 <= whole[control] < lanes else None
    if control == 0x142:
        return row - 1 if row else None
    return 31 if lane >= 32 else None


def _dpp(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    old, value = values
    control, rows, banks, bound = detail
    result = old.copy()
    lanes = old.shape[1]
    for lane in range(lanes):
        if not (rows >> lane // 16 & 1 and banks >> lane // 4 % 4 & 1):
            continue
        source = _source(control, lane, lanes)
        if source is not None:
            result[:, lane] = value[:, source]
        elif bound:
            result[:, lane] = 0
    return result


# swizzles and swaps


def _pick_swizzle(random: Random, target: str) -> tuple[int, ...]:
    if random.random() < 0.3:
        return (0x8000 | random.randrange(256),)
    return (random.randrange(0x8000),)


def _write_swizzle(w: Writer, e: Exchange) -> str:
    value = ("i32", w.operand(e.arguments[0]))
    return w.call("llvm.amdgcn.ds.swizzle", "i32", value, ("i32", str(e.detail[0])))


def _swizzle(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    (offset,) = detail
    lane = np.arange(values[0].shape[1])
    if offset & 0x8000:
        source = lane & ~3 | offset >> 2 * (lane & 3) & 3
    else:
        kept, ored, flipped = offset & 31, offset >> 5 & 31, offset >> 10 & 31
        source = lane & ~31 | ((lane & 31 & kept) | ored) ^ flipped
    return values[0][:, source]


def _write_halves(w: Writer, e: Exchange) -> str:
    return w.intrinsic("amdgcn.permlane64", "i32", w.operand(e.arguments[0]))


def _halves(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    lanes = values[0].shape[1]
    return values[0][:, np.arange(lanes) ^ 32] if lanes == 64 else values[0]


def _pick_row(random: Random, target: str) -> tuple[int, ...]:
    return random.getrandbits(32), random.getrandbits(32), random.randrange(2)


def _write_row(w: Writer, e: Exchange) -> str:
    value = w.operand(e.arguments[0])
    low, high, other = e.detail
    name = f"llvm.amdgcn.permlane{'x' if other else ''}16.i32"
    arguments = [("i32", item) for item in (value, value, str(low), str(high))]
    return w.call(name, "i32", *arguments, ("i1", "false"), ("i1", "false"))


def _row(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    low, high, other = detail
    selects = [(low | high << 32) >> 4 * place & 15 for place in range(16)]
    lane = np.arange(values[0].shape[1])
    source = (lane & ~15 | np.array(selects)[lane & 15]) ^ (16 if other else 0)
    return values[0][:, source]


def _pick_swap(random: Random, target: str) -> tuple[int, ...]:
    return random.choice((16, 32)), random.randrange(2)


def _write_swap(w: Writer, e: Exchange) -> str:
    a, b = (("i32", w.operand(x)) for x in e.arguments)
    name, pair = f"llvm.amdgcn.permlane{e.detail[0]}.swap", "{ i32, i32 }"
    found = w.call(name, pair, a, b, ("i1", "false"), ("i1", "false"))
    return w.set(f"extractvalue {pair} {found}, {e.detail[1]}")


def _swap(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    """Odd rows of the first operand change places with even rows of the second."""
    width, which = detail
    a, b = values
    odd = np.arange(a.shape[1]) & width != 0
    other = np.arange(a.shape[1]) ^ width
    return np.where(odd, b[:, other], a) if which == 0 else np.where(odd, b, a[:, other])


# the whole wave


def _write_ballot(w: Writer, e: Exchange) -> str:
    value, threshold = (w.operand(x) for x in e.arguments)
    flag = w.set(f"icmp ult i32 {value}, {threshold}")
    mask = w.call("llvm.amdgcn.ballot.i64", "i64", ("i1", flag))
    high = w.set(f"lshr i64 {mask}, {32 * e.detail[0]}")
    return w.set(f"trunc i64 {high} to i32")


def _pick_half(random: Random, target: str) -> tuple[int, ...]:
    return (random.randrange(2),)


def _ballot(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    flags = values[0] < values[1]
    lanes = flags.shape[1]
    half = (
        flags[:, 32 * detail[0] : 32 * detail[0] + 32] if 32 * detail[0] < lanes else flags[:, :0]
    )
    weights = np.uint64(1) << np.arange(half.shape[1], dtype=np.uint64)
    total = (half * weights).sum(axis=1).astype(np.uint32)
    return np.repeat(total[:, None], lanes, axis=1)


_REDUCTIONS: dict[str, Callable[[Waves], np.ndarray]] = {
    "umin": lambda a: a.min(axis=1),
    "umax": lambda a: a.max(axis=1),
    "min": lambda a: a.view(np.int32).min(axis=1).view(np.uint32),
    "max": lambda a: a.view(np.int32).max(axis=1).view(np.uint32),
    "and": lambda a: np.bitwise_and.reduce(a, axis=1),
    "or": lambda a: np.bitwise_or.reduce(a, axis=1),
}
"""Not sums: LLVM 22 folds those of a constant to the constant."""


def _pick_reduction(random: Random, target: str) -> tuple[int, ...]:
    return (random.randrange(len(_REDUCTIONS)),)


def _write_reduction(w: Writer, e: Exchange) -> str:
    name = list(_REDUCTIONS)[e.detail[0]]
    value = ("i32", w.operand(e.arguments[0]))
    return w.call(f"llvm.amdgcn.wave.reduce.{name}.i32", "i32", value, ("i32", "0"))


def _reduction(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    total = list(_REDUCTIONS.values())[detail[0]](np.ascontiguousarray(values[0]))
    return np.repeat(total[:, None], values[0].shape[1], axis=1)


# the whole workgroup


def _pick_shared(random: Random, target: str) -> tuple[int, ...]:
    return 2 * random.randrange(32) + 1, random.randrange(64)


def _write_shared(w: Writer, e: Exchange) -> str:
    """Through memory of the workgroup: lane i reads what lane i * factor + offset wrote."""
    factor, offset = e.detail
    name = f"@exchanged{len(w.globals)}"
    w.globals.append(f"{name} = internal addrspace(3) global [128 x i32] poison, align 16")
    lane = w.call("llvm.amdgcn.workitem.id.x", "i32")
    space = " addrspace(3)"
    own = w.at(name, w.set(f"mul i32 {lane}, 4"), space)
    w.do(f"store i32 {w.operand(e.arguments[0])}, ptr{space} {own}, align 4")
    w.do('fence syncscope("workgroup") release')
    w.declarations["llvm.amdgcn.s.barrier"] = "declare void @llvm.amdgcn.s.barrier()"
    w.do("call void @llvm.amdgcn.s.barrier()")
    w.do('fence syncscope("workgroup") acquire')
    source = w.set(f"add i32 {w.set(f'mul i32 {lane}, {factor}')}, {offset}")
    source = w.set(f"and i32 {source}, {2 * wave_lanes(w.dialect) - 1}")
    place = w.at(name, w.set(f"mul i32 {source}, 4"), space)
    return w.set(f"load i32, ptr{space} {place}, align 4")


def _shared(values: list[Waves], detail: tuple[int, ...]) -> Waves:
    flat = values[0].reshape(-1)
    source = (np.arange(flat.size) * detail[0] + detail[1]) % flat.size
    return flat[source].reshape(values[0].shape)


def wave_lanes(target: str) -> int:
    """Lanes of a wave as the target is compiled for here."""
    return 64 if target.startswith("gfx9") else 32


def _rows(*entries: LaneOperation) -> dict[str, LaneOperation]:
    return {entry.name: entry for entry in entries}


EXCHANGES = _rows(
    LaneOperation("first", _write_first, _first, _nothing),
    LaneOperation("read", _write_read, _read, _lane),
    LaneOperation("write", _write_write, _write_lane, _lane, 2),
    LaneOperation("permute", _write_permute, _permute, _nothing, 2),
    LaneOperation("dpp", _write_dpp, _dpp, _pick_dpp, 2),
    LaneOperation("swizzle", _write_swizzle, _swizzle, _pick_swizzle),
    LaneOperation("halves", _write_halves, _halves, _nothing, 1, ("gfx11", "gfx12")),
    LaneOperation("row", _write_row, _row, _pick_row, 1, ("gfx11", "gfx12")),
    LaneOperation("swap", _write_swap, _swap, _pick_swap, 2, ("gfx950",)),
    LaneOperation("ballot", _write_ballot, _ballot, _pick_half, 2),
    LaneOperation("reduce", _write_reduction, _reduction, _pick_reduction),
    LaneOperation("shared", _write_shared, _shared, _pick_shared),
)
