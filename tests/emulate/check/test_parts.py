"""Races on bytes and halves of dwords: stores of other parts by third waves hide none.

Each wave, or workgroup, executes accesses of its own, one behind the other, with nothing that
orders them. Reports are compared with sets of who has stored and loaded each byte.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.check.support import checked
from tests.emulate.memory_support import kernel_of, lanes_of
from tests.targets import swept
from wavecast.emulate.check.gpus.work_memory import WorkMemory
from wavecast.emulate.check.gpus.work_order import WorkOrder
from wavecast.emulate.reports import Kind, Report
from wavecast.isa.opcode import MemoryKind, Space

_BYTES = 8
_LDS = {1: "b8", 2: "b16", 4: "b32"}
_GLOBAL = {1: "byte", 2: "short", 4: "dword"}
_GFX11 = {1: "b8", 2: "b16", 4: "b32"}


@dataclass(frozen=True)
class Access:
    """One access by a wave or a workgroup: `stores` a byte `value` to `size` bytes at `offset`."""

    author: int
    stores: bool
    offset: int
    size: int
    value: int

    @property
    def bytes(self) -> range:
        return range(self.offset, self.offset + self.size)


def _accesses(seed: int, authors: int, *, whole: bool) -> list[Access]:
    random_ = random.Random(seed)
    sizes = (1, 2, 4) if whole else (1, 2)
    accesses = []
    for author in range(authors):
        for _ in range(random_.randint(1, 3)):
            size = random_.choice(sizes)
            offset = random_.randrange(0, _BYTES, size)
            stores = random_.random() < 0.7
            accesses.append(Access(author, stores, offset, size, len(accesses) + 1))
    return accesses


def _text(target: str, access: Access, space: str) -> str:
    new = target.startswith("gfx11")
    if space == "lds":
        name = (
            {False: "write", True: "store"}[new] if access.stores else ("load" if new else "read")
        )
        suffix = _LDS[access.size]
        if not access.stores and access.size < 4:
            suffix = {1: "u8", 2: "u16"}[access.size]
        operands = "v9, v4" if access.stores else "v5, v9"
        line = f"ds_{name}_{suffix} {operands} offset:{access.offset}"
        wait = "s_waitcnt lgkmcnt(0)"
    else:
        names = _GFX11 if new else _GLOBAL
        suffix = names[access.size]
        if not access.stores and access.size < 4:
            suffix = (
                {1: "u8", 2: "u16"}[access.size] if new else {1: "ubyte", 2: "ushort"}[access.size]
            )
        operands = "v9, v4, s[8:9]" if access.stores else "v5, v9, s[8:9]"
        line = f"global_{'store' if access.stores else 'load'}_{suffix} {operands} "
        line += f"offset:{access.offset}"
        wait = "s_waitcnt vmcnt(0)"
    return f"v_mov_b32 v4, {0x01010101 * access.value:#x}\n{line}\n{wait}\n"


def _body(target: str, accesses: Sequence[Access], space: str) -> str:
    """`space`: lds, or global with authors that are waves (`global`) or workgroups (`groups`)."""
    lanes = lanes_of(target)
    lines = ["s_waitcnt lgkmcnt(0)", "v_mov_b32 v9, 0"]
    lines += [
        f"v_lshrrev_b32 v8, {lanes.bit_length() - 1}, v0",
        "s_nop 0",
        "v_readfirstlane_b32 s20, v8",
    ]
    lines += ["s_mov_b32 s20, s2"] if space == "groups" else []
    lines += ["s_mov_b64 exec, 1" if lanes == 64 else "s_mov_b32 exec_lo, 1"]
    for author in range(max(access.author for access in accesses) + 1):
        lines += [f"s_cmp_eq_u32 s20, {author}", f"s_cbranch_scc0 .Lskip{author}"]
        lines += [_text(target, access, space) for access in accesses if access.author == author]
        lines.append(f".Lskip{author}:")
    return "\n".join(lines) + "\n"


def _expected(accesses: Sequence[Access], *, every_reader: bool) -> set[int]:
    """The accesses that race. Of the loads of a dword the last is kept unless `every_reader`."""
    stored: dict[int, int] = {}
    loaded: dict[int, set[int]] = {}
    racing = set()
    for number, access in enumerate(accesses):
        for byte in access.bytes:
            others = {stored[byte]} if byte in stored else set()
            if access.stores:
                others |= loaded.get(byte, set())
            if others - {access.author}:
                racing.add(number)
        if access.stores:
            stored |= dict.fromkeys(access.bytes, access.author)
            continue
        for byte in access.bytes:
            if not every_reader:
                for other in range(byte // 4 * 4, byte // 4 * 4 + 4):
                    if other not in access.bytes:
                        loaded[other] = set()
                loaded[byte] = set()
            loaded.setdefault(byte, set()).add(access.author)
    return racing


def _reported(target: str, accesses: Sequence[Access], space: str) -> tuple[set[int], list[Report]]:
    body = _body(target, accesses, space)
    authors = max(access.author for access in accesses) + 1
    waves, groups = (1, authors) if space == "groups" else (authors, 1)
    reports = checked(
        target, body, np.zeros(_BYTES, np.uint8), threads=waves * lanes_of(target), groups=groups,
        lds=_BYTES if space == "lds" else 0,
    )  # fmt: skip
    program = kernel_of(target, body, lds=_BYTES).program
    order = [
        instruction.index
        for instruction in program.instructions
        if instruction.memory is not None
        and instruction.memory.space in (Space.LDS, Space.GLOBAL)
        and instruction.memory.kind in (MemoryKind.LOAD, MemoryKind.STORE)
    ]
    kinds = {"lds": Kind.LDS_RACE, "global": Kind.GLOBAL_RACE, "groups": Kind.WORKGROUP_RACE}
    # a wave that stores twice to a dword may look as if it stored what its replica has read
    found = (kinds[space], Kind.REPLICATED_READ)
    races = [report for report in reports if report.kind in found]
    return {order.index(report.instruction) for report in races}, races


@pytest.mark.parametrize("target", swept(("gfx942", "gfx1100")))
@pytest.mark.parametrize("space", ["lds", "global", "groups"])
def test_the_other_part_hides_no_store(space: str, target: str) -> None:
    first = Access(0, True, 0, 2, 1)
    other = Access(1, True, 2, 2, 2)
    for last in (Access(2, True, 0, 2, 3), Access(2, False, 0, 2, 3), Access(2, True, 0, 1, 3)):
        racing, reports = _reported(target, [first, other, last], space)
        assert racing == {2}
        assert len(reports) == 1
    for last in (Access(0, True, 0, 2, 3), Access(0, False, 0, 2, 3)):
        assert _reported(target, [first, other, last], space)[0] == set()
    byte = [Access(number, True, number, 1, number + 1) for number in range(4)]
    assert _reported(target, [*byte, Access(4, False, 1, 1, 5)], space)[0] == {4}
    assert _reported(target, [*byte, Access(1, True, 1, 1, 5)], space)[0] == set()


@pytest.mark.parametrize("space", ["lds", "global", "groups"])
def test_random_accesses_of_parts(space: str) -> None:
    target = "gfx942"
    races = 0
    for seed in range(40):
        accesses = _accesses(seed, 4, whole=seed % 2 == 0)
        accesses.sort(key=lambda access: access.author)
        expected = _expected(accesses, every_reader=space == "lds")
        assert _reported(target, accesses, space)[0] == expected, (seed, accesses)
        races += len(expected)
    assert races > 40


@pytest.mark.parametrize("ordered", [False, True])
def test_works_of_streams(ordered: bool) -> None:
    """Two streams store the halves of dwords, a third one loads the first half."""
    order = WorkOrder()
    memory, interval, dwords = WorkMemory(order, "gfx942"), (4096, 4096 + 64), np.arange(4, 8)
    for stream in (1, 2, 3):
        order.create(0, stream, blocking=False)
    found: list[Report] = []
    for stream, stores, bytes_ in ((1, True, 0x3), (2, True, 0xC), (3, False, 0x3)):
        if stream == 3 and ordered:
            order.record(0, 7, 1)
            order.wait(0, 3, 7)
        work = order.submit(0, stream, f"work {stream}", None)
        sites = np.full(len(dwords), bytes_ << 18, np.uint32)
        found += memory.touch(work, interval, [(stores, dwords, sites)], hex)
    names = {(report.kernel, report.other_kernel) for report in found}
    assert names == (set() if ordered else {("work 3", "work 1")})
