"""Matrix instructions that run together give what they give one by one.

What one instruction gives is proved elsewhere; here every program runs a second time with each of
its instructions in a basic block of its own.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import lanes_of, run

FIRST, ROWS = 4, 24
NAMES = {
    "D0": "v[4:7]",
    "D1": "v[8:11]",
    "A0": "v[12:13]",
    "B0": "v[14:15]",
    "A1": "v[16:17]",
    "B1": "v[18:19]",
    "C0": "v[20:23]",
    "LOW": "v[4:5]",
}
ROTATE = ("v_mov_b32 v3, v12", "v_mov_b32 v12, v24", "v_mov_b32 v24, v25", "v_mov_b32 v25, v3")
PROGRAMS = {
    "in a row": ("D0 A0 B0 D0", "D0 A1 B1 D0", "D1 A0 B1 D1", "D0 A0 B0 D0"),
    "operand overwritten": ("D0 A0 B0 D0", "v_mov_b32 v12, v24", "D0 A0 B0 D0"),
    "operand loaded": (
        "D0 A0 B0 D0", "global_load_dword v12, v2, s[8:9]", "s_waitcnt vmcnt(0)", "D0 A0 B0 D0",
    ),
    "result is an operand": ("D0 A0 B0 D0", "D1 LOW B0 D1", "D0 A0 B0 D0"),
    "its own operand": ("D0 A0 B0 D0", "D0 LOW B1 D0", "D0 LOW B0 D0"),
    "result read": ("D0 A0 B0 D0", "v_add_f32 v24, v4, v5", "D0 A0 B0 D0"),
    "result read across lanes": ("D0 A0 B0 D0", "v_readlane_b32 s20, v4, 3", "v_mov_b32 v24, s20"),
    "result stored": ("D0 A0 B0 D0", "global_store_dword v2, v4, s[12:13]", "D0 A0 B0 D0"),
    "result overwritten": ("D0 A0 B0 D0", "v_mov_b32 v5, v24", "D0 A0 B0 D0"),
    "C elsewhere": ("D0 A0 B0 C0", "v_mov_b32 v20, v24", "D0 A1 B1 D0", "D1 A0 B0 C0"),
    "C is a result": ("D0 A0 B0 D0", "D1 A1 B1 D0", "D0 A1 B0 D0"),
    "C is a D that follows": ("D1 A0 B0 C0", "C0 A1 B1 C0", "D1 A1 B0 D1"),
    "constants": ("D0 A0 B0 0", "D0 A1 B1 D0", "D1 A0 B0 1.0", "D1 A1 B1 D1", "D0 A0 B0 1.0"),
    "other shapes": ("D0 A0 B0 D0", "f16 D0 A0 B0 D0", "D0 A1 B1 D0"),
    "barrier": ("D0 A0 B0 D0", "s_barrier", "D0 A0 B1 D0"),
    "more operands than fit": ("D0 A0 B0 D0", *ROTATE) * 140,
}  # fmt: skip


def instruction(line: str) -> str:
    """`D A B C` by the names above, anything else as it is."""
    words = line.split()
    kind = words.pop(0) if words[0] == "f16" else "bf16"
    if words[0] not in NAMES:
        return line
    operands = ", ".join(NAMES.get(word, word) for word in words)
    return f"v_mfma_f32_16x16x16_{kind} {operands}"


def body(lines: tuple[str, ...], *, apart: bool) -> str:
    """Registers from memory, the program, registers to memory."""
    text = ["\tv_lshlrev_b32_e32 v2, 2, v0"]
    for row in range(ROWS):
        text.append(f"\tglobal_load_dword v{FIRST + row}, v1, s[8:9]")
        text.append("\tv_add_u32_e32 v1, 0x100, v1")
    text.append("\ts_waitcnt vmcnt(0)")
    for number, line in enumerate(lines):
        text.append(f"\t{instruction(line)}")
        if apart:
            text += [f"\ts_branch .Lnext{number}", f".Lnext{number}:"]
    text.append("\tv_lshlrev_b32_e32 v1, 2, v0")
    for row in range(ROWS):
        text.append(f"\tglobal_store_dword v1, v{FIRST + row}, s[10:11]")
        text.append("\tv_add_u32_e32 v1, 0x100, v1")
    return "\n".join(text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_together_as_one_by_one(name: str) -> None:
    for denormals in (False, True):  # the same native code
        _compare(name, denormals=denormals)


def _compare(name: str, *, denormals: bool) -> None:
    random = np.random.default_rng(sum(name.encode()))
    pairs = random.standard_normal((ROWS, lanes_of("gfx942"), 2)).astype(np.float32)
    if denormals:
        pairs[random.random(pairs.shape) < 0.001] *= 2.0**-130
    halves = pairs.view(np.uint32) >> 16
    rows = np.ascontiguousarray(halves[..., 0] | halves[..., 1] << 16)
    found = []
    for apart in (False, True):
        after, stored = np.zeros_like(rows), np.zeros(64, np.uint32)
        run("gfx942", body(PROGRAMS[name], apart=apart), rows.copy(), after, stored)
        found.append((after, stored))
    (together, stored), (alone, wanted) = found
    assert not np.array_equal(alone, rows)
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(stored, wanted)


def test_programs_are_of_known_names() -> None:
    """A misspelt name would reach the assembler's parser as an instruction."""
    for lines in PROGRAMS.values():
        for line in lines:
            assert re.match(r"v_mfma|v_|s_|global_", instruction(line))
