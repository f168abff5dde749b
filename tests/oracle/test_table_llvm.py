"""The opcode table against LLVM's assembler: every row, on every target, in both directions.

For each row and target an example is made from the operand roles alone. llvm-mc must take it where
the table claims the instruction and print it back under the same mnemonic; where the table knows no
such mnemonic, llvm-mc must refuse it or print it under another one (it reads old names).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import pytest

from wavecast.isa import table
from wavecast.isa.opcode import (
    MemoryKind,
    Opcode,
    OperandAccess,
    OperandKind,
    OperandRole,
    Role,
    Space,
)
from wavecast.isa.targets import TARGET_SETS, TARGETS

MC = shutil.which("llvm-mc-22")
pytestmark = [
    pytest.mark.llvm,
    pytest.mark.skipif(MC is None, reason="needs llvm-mc-22 (Debian package llvm-22)"),
]

GFX9 = TARGET_SETS["gfx9"]
LDS_BY_MODIFIER = ("gfx908", "gfx90a", "gfx1030")
_ENCODINGS = re.compile(r"_(e32|e64|e96)$")
_NARROW_VGPR = re.compile(r"[a-z]+(4|8|16)$")
_RETURN_FLAG = {
    **dict.fromkeys(("gfx908", "gfx90a", "gfx1030", "gfx1100", "gfx1151"), "glc"),
    **dict.fromkeys(("gfx942", "gfx950"), "sc0"),
    **dict.fromkeys(("gfx1201", "gfx1250"), "th:TH_ATOMIC_RETURN"),
}

FIXED_OPERANDS = {
    "s_getreg_b32": "s8, hwreg(HW_REG_MODE)",
    "s_setreg_b32": "hwreg(HW_REG_MODE), s8",
    "s_setreg_imm32_b32": "hwreg(HW_REG_MODE), 3",
    "s_waitcnt_vscnt": "null, 0",
    "s_waitcnt_vmcnt": "null, 0",
    "s_waitcnt_expcnt": "null, 0",
    "s_waitcnt_lgkmcnt": "null, 0",
    "s_set_gpr_idx_on": "s8, gpr_idx()",
    "s_set_gpr_idx_mode": "gpr_idx()",
    "s_barrier_init": "m0",
    "s_barrier_join": "m0",
    "s_barrier_signal": "-1",
    "s_barrier_signal_isfirst": "-1",
    "s_wakeup_barrier": "m0",
    "s_get_barrier_state": "s8, m0",
    "v_accvgpr_mov_b32": "a8, a10",
    "v_accvgpr_read_b32": "v8, a10",
    "v_accvgpr_write_b32": "a8, v10",
    "v_readlane_b32": "s8, v8, s10",
    "v_writelane_b32": "v8, s10, 3",
}
"""Operands with a syntax or a limit the roles do not express."""

LATER_REFUSED = {
    ("gfx1250", name)
    for name in (
        "v_wmma_bf16_16x16x16_bf16",
        "v_wmma_f16_16x16x16_f16",
        "v_wmma_f32_16x16x16_bf16",
        "v_wmma_f32_16x16x16_bf8_bf8",
        "v_wmma_f32_16x16x16_bf8_fp8",
        "v_wmma_f32_16x16x16_f16",
        "v_wmma_f32_16x16x16_fp8_bf8",
        "v_wmma_f32_16x16x16_fp8_fp8",
        "v_wmma_i32_16x16x16_iu4",
        "v_wmma_i32_16x16x16_iu8",
        "v_wmma_i32_16x16x32_iu4",
    )
}
"""LLVM 22 still takes gfx1201's WMMA shapes on gfx1250; LLVM 24 (in Triton 3.9) refuses them."""


class Registers:
    """Hands out registers that do not overlap, each tuple aligned to what any target asks."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.vgpr, self.sgpr = 8, 8

    def take(self, letter: str, dwords: int) -> str:
        if letter == "s":
            step = min(4, 1 << (dwords - 1).bit_length())
            first = -(-self.sgpr // step) * step
            self.sgpr = first + dwords
        else:
            first = self.vgpr + self.vgpr % 2
            self.vgpr = first + dwords
        return f"{letter}{first}" if dwords == 1 else f"{letter}[{first}:{first + dwords - 1}]"

    def operand(self, role: OperandRole, row: Opcode, narrow: bool) -> str:
        kind = role.kind
        if row.form == "MFMA" and self.target == "gfx908" and "32x" in role.type:
            return self.take("a", role.dwords)  # sums are in accumulation registers only
        if kind in (OperandKind.VECTOR, OperandKind.SOURCE):
            half = narrow and _NARROW_VGPR.fullmatch(role.type) is not None
            return self.take("v", role.dwords) + (".l" if half else "")
        if kind in (OperandKind.SCALAR, OperandKind.SCALAR_SOURCE):
            return self.take("s", role.dwords)
        if kind is OperandKind.LANE_MASK:
            return "vcc" if self.target in GFX9 else "vcc_lo"
        if kind is OperandKind.ADDRESS:
            return self._address(row)
        if kind is OperandKind.SCALAR_ADDRESS:
            return "off"
        if kind is OperandKind.RESOURCE:
            return self.take("s", 4)
        if kind is OperandKind.OFFSET:
            buffer = row.form == "MUBUF" or row.role is Role.PREFETCH
            return self.take("s", 1) if buffer else "0x0"
        return "0"

    def _address(self, row: Opcode) -> str:
        if row.form == "MUBUF":
            return "off"
        return self.take("v", 1 if row.form in ("DS", "SCRATCH") else 2)


def examples(row: Opcode, mnemonic: str, target: str) -> list[str]:
    """Texts of which one must assemble: 16-bit operands are whole registers or halves of them."""
    if row.name in FIXED_OPERANDS:
        return [f"{mnemonic} {FIXED_OPERANDS[row.name]}"]
    optional = sum(role.optional for role in row.operands)
    found = []
    for narrow in (False, True):
        for dropped in sorted({0, optional}):
            registers, left = Registers(target), dropped
            texts = []
            for role in row.operands:
                if role.optional and left:
                    left -= 1
                else:
                    texts.append(registers.operand(role, row, narrow))
            words = f"{mnemonic} {', '.join(texts)} {_modifiers(row, target, not dropped)}"
            found.append(words.strip())
    return list(dict.fromkeys(found))


def _modifiers(row: Opcode, target: str, full: bool) -> str:
    memory = row.memory
    if row.form == "DS" and row.role is Role.BARRIER:
        return "gds"
    if memory is None:
        return ""
    returning = row.operands[0].access is OperandAccess.WRITE and row.operands[0].optional
    if memory.kind is MemoryKind.ATOMIC and returning and full:
        return _RETURN_FLAG[target]
    by_modifier = row.form == "MUBUF" or target in LDS_BY_MODIFIER
    if memory.kind in (MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS) and by_modifier:
        return "lds"
    return ""


@cache
def printed_mnemonics(target: str, lines: tuple[str, ...]) -> tuple[str | None, ...]:
    """For each line the mnemonic llvm-mc prints it back under, None where it is refused."""
    found: list[str | None] = [None] * len(lines)
    features = ("", "+real-true16", "-real-true16") if target not in GFX9 else ("",)
    for attribute in features:
        for index, mnemonic in enumerate(_assemble(target, attribute, lines)):
            found[index] = found[index] or mnemonic
    return tuple(found)


def _assemble(target: str, attribute: str, lines: tuple[str, ...]) -> list[str | None]:
    assert MC is not None
    command = [MC, "-triple=amdgcn", f"-mcpu={target}", f"-mattr={attribute}", "-show-encoding"]
    run = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    refused = {int(n) for n in re.findall(r"<stdin>:(\d+):\d+: error:", run.stderr)}
    printed = iter(line.split()[0] for line in run.stdout.splitlines() if "encoding:" in line)
    return [
        None if number in refused else _ENCODINGS.sub("", next(printed))
        for number in range(1, len(lines) + 1)
    ]


def _check(target: str, wanted: list[tuple[Opcode, str]]) -> list[tuple[Opcode, str, bool]]:
    """For each row and mnemonic: whether llvm-mc knows one of its examples by that mnemonic."""
    texts = [examples(row, mnemonic, target) for row, mnemonic in wanted]
    printed = printed_mnemonics(target, tuple(text for group in texts for text in group))
    found, position = [], 0
    for (row, mnemonic), group in zip(wanted, texts, strict=True):
        answers = printed[position : position + len(group)]
        position += len(group)
        found.append((row, mnemonic, mnemonic in answers))
    return found


def _single_rows() -> list[Opcode]:
    return [row for row in table.rows() if not row.name.startswith("v_dual_")]


@pytest.mark.parametrize("target", TARGETS)
def test_claimed_instructions_assemble(target: str) -> None:
    wanted = [(row, row.mnemonics[target]) for row in _single_rows() if target in row.mnemonics]
    failed = [row.name for row, _, accepted in _check(target, wanted) if not accepted]
    assert not failed


@pytest.mark.parametrize("target", TARGETS)
def test_mnemonics_not_claimed_are_unknown(target: str) -> None:
    known = table.by_mnemonic(target)
    wanted = [
        (row, mnemonic)
        for row in _single_rows()
        for mnemonic in set(row.mnemonics.values())
        if mnemonic not in known and (target, mnemonic) not in LATER_REFUSED
    ]
    surprising = {mnemonic for _, mnemonic, accepted in _check(target, wanted) if accepted}
    assert not surprising


@pytest.mark.parametrize("target", sorted(TARGET_SETS["gfx11+"]))
def test_dual_components_assemble_in_a_pair(target: str) -> None:
    """As the first or the second half, beside a v_dual_mov_b32."""
    rows = [
        row for row in table.rows() if row.name.startswith("v_dual_") and target in row.mnemonics
    ]
    lines, owners = [], []
    for row in rows:
        half = _half(row)
        pairs = (f"{half} :: v_dual_mov_b32 v3, v5", f"v_dual_mov_b32 v3, v5 :: {half}")
        lines += pairs
        owners += [row.name] * len(pairs)
    printed = printed_mnemonics(target, tuple(lines))
    accepted = {name for name, mnemonic in zip(owners, printed, strict=True) if mnemonic}
    assert not {row.name for row in rows} - accepted


def _half(row: Opcode) -> str:
    """One half of a pair, in registers of other banks and parity than the v_dual_mov_b32's."""
    numbers = iter((8, 10, 14, 20))
    texts = []
    for role in row.operands:
        if role.kind is OperandKind.LANE_MASK:
            texts.append("s2")
        elif role.kind is OperandKind.IMMEDIATE:
            texts.append("0x11223344")
        else:
            number = next(numbers)
            texts.append(f"v[{number}:{number + 1}]" if role.dwords == 2 else f"v{number}")
    mnemonic = row.name.removesuffix("_mask")
    modifier = " bitop3:0x14" if "bitop2" in row.name else ""
    return f"{mnemonic} {', '.join(texts)}{modifier}"


def test_memory_rows_name_the_space_of_their_form() -> None:
    spaces = {
        "GLOBAL": {Space.GLOBAL},
        "FLAT": {Space.FLAT},
        "SCRATCH": {Space.SCRATCH},
        "MUBUF": {Space.BUFFER},
        "DS": {Space.LDS},
        "SMEM": {Space.SCALAR},
    }
    wrong = [
        row.name
        for row in table.rows()
        if row.memory is not None and row.memory.space not in spaces.get(row.form, {Space.GLOBAL})
    ]
    assert not wrong
