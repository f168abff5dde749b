"""Integer SASS, evaluated: PTX arithmetic gives the numbers that Python computes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.perfmodel import sm_code
from wavecast.analyze import sass_program
from wavecast.analyze.sass.walk import follow

TARGETS = ("sm_80", "sm_90", "sm_100")
N = 1_000_003
X = np.arange(128, dtype=np.int64) + 7 * 128
"""The values of `x` in workgroup 7: its threads' numbers in the launch."""

CASES = {
    "add": ("add.u32 %r5, %r4, %r9;", X + N),
    "sub": ("sub.u32 %r5, %r9, %r4;", N - X),
    "mul": ("mul.lo.u32 %r5, %r4, %r4;", X * X),
    "mad": ("mad.lo.u32 %r5, %r4, %r9, %r4;", X * N + X),
    "high product": ("mul.hi.u32 %r6, %r4, %r9; add.u32 %r5, %r6, %r4;", (X * N >> 32) + X),
    "shift": ("shl.b32 %r6, %r4, 5; shr.u32 %r5, %r6, 2;", X * 8),
    "signed shift": ("sub.s32 %r6, 0, %r4; shr.s32 %r5, %r6, 3;", -X >> 3),
    "divide": ("div.u32 %r5, %r9, %r4;", N // X),
    "remainder": ("rem.u32 %r5, %r9, %r4;", N % X),
    "signed divide": (
        "sub.s32 %r6, 0, %r9; div.s32 %r5, %r6, %r4;",
        -(N // X),
    ),
    "logic": (
        "and.b32 %r6, %r4, 0x3c5; xor.b32 %r7, %r6, %r9; or.b32 %r5, %r7, 8;",
        (X & 0x3C5 ^ N) | 8,
    ),
    "minimum": ("min.u32 %r5, %r4, 950;", np.minimum(X, 950)),
    "select": (
        "setp.gt.u32 %p1, %r4, 960; selp.b32 %r5, %r9, %r4, %p1;",
        np.where(X > 960, N, X),
    ),
    "bits": ("popc.b32 %r5, %r4;", np.array([int(v).bit_count() for v in X])),
    "leading": ("bfind.u32 %r5, %r4;", np.floor(np.log2(X)).astype(np.int64)),
    "field": ("bfe.u32 %r5, %r4, 3, 6;", X >> 3 & 63),
    "bytes": ("prmt.b32 %r5, %r4, %r9, 0x5410;", X & 0xFFFF | (N & 0xFFFF) << 16),
    "wide": (
        "mul.wide.u32 %d8, %r9, %r4; add.s64 %d8, %d8, %d8; shr.u64 %d9, %d8, 7; "
        "cvt.u32.u64 %r5, %d9;",
        (X * N * 2) >> 7,
    ),
    "carry": (
        "cvt.u64.u32 %d8, %r9; mov.u64 %d9, 0xfffffffffff; add.s64 %d10, %d8, %d9; "
        "shr.u64 %d10, %d10, 32; cvt.u32.u64 %r6, %d10; add.u32 %r5, %r6, %r4;",
        X + ((N + 0xFFFFFFFFFFF) >> 32),
    ),
    "wide comparison": (
        "mul.wide.u32 %d8, %r9, %r4; mov.u64 %d9, 950002850; setp.lt.s64 %p1, %d8, %d9; "
        "selp.b32 %r5, 1, 0, %p1;",
        (X * N < 950002850).astype(np.int64),
    ),
    "float division": (
        "cvt.rn.f32.u32 %f1, %r4; cvt.rzi.u32.f32 %r5, %f1;",
        X,
    ),
    "shuffle": (
        "shfl.sync.bfly.b32 %r5, %r4, 3, 31, 0xffffffff;",
        X.reshape(4, 32)[:, np.arange(32) ^ 3].reshape(-1),
    ),
    "loop": (
        "mov.u32 %r5, 0; mov.u32 %r6, 0; AGAIN: add.u32 %r5, %r5, %r6; add.u32 %r6, %r6, 1; "
        "setp.lt.u32 %p1, %r6, %r1; @%p1 bra AGAIN;",
        np.maximum(0, (X - 896) * (X - 897) // 2),
    ),
    "shared": (
        "shl.b32 %r6, %r1, 2; mov.u32 %r7, room; add.u32 %r6, %r6, %r7; st.shared.u32 [%r6], %r4;"
        " bar.sync 0; xor.b32 %r6, %r6, 0x1f0; ld.shared.u32 %r5, [%r6];",
        X[np.arange(128) ^ 124],
    ),
}


CASE = 40
"""The bit of an address from which on it has the number of the case."""


@cache
def results(target: str) -> dict[str, list[int]]:
    """The result of every case and thread: the offset of a store, whose addresses the walk knows.
    All cases are one kernel, for the assembler takes its time."""
    parts = []
    for number, (body, _) in enumerate(CASES.values()):
        base = number << CASE
        store = f"cvt.u64.u32 %d20, %r5; add.s64 %d21, %d2, %d20; add.s64 %d21, %d21, {base};"
        parts.append(f"{{ {body} {store} st.global.u8 [%d21], %r1; }}")
    given = sm_code.launch("\n".join(parts) + " ret;", target, number=N)
    program = sass_program(given.code)
    paths = follow(program, given, np.array([[7, 0, 0]] * 4), np.arange(4))
    found = {name: np.full((4, 32), -1) for name in CASES}
    for access in paths.accesses:
        name = program.instructions[access.instruction].opcode.name
        if name == "STG" and access.addresses is not None:
            offsets = access.addresses.astype(np.int64) - 2 * sm_code.BASE
            (number,) = np.unique(offsets[access.lanes] >> CASE)
            own = found[list(CASES)[int(number)]]
            values = offsets & ((1 << CASE) - 1)
            own[access.warps] = np.where(access.lanes, values, own[access.warps])
    return {name: own.reshape(-1).tolist() for name, own in found.items()}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_a_result_is_that_of_the_machine(name: str, target: str) -> None:
    assert results(target)[name] == (CASES[name][1] & 0xFFFFFFFF).tolist()
