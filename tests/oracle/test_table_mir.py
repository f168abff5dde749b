"""What instructions read and write, against LLVM's own machine code before it becomes text.

llc prints each function with explicit and implicit register operands (MIR) and then as assembly;
the instructions correspond one to one. The table's register sets must hold every operand MIR spells
out, nothing MIR does not mention, and agree exactly on SCC, VCC, EXEC and M0.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from wavecast import isa
from wavecast.isa.registers import (
    AGPR_BASE,
    EXEC,
    M0,
    SCC,
    SGPR_BASE,
    SPECIAL_REGISTERS,
    TTMP_BASE,
    VCC,
    VGPR_BASE,
    register_names,
    span,
    special,
)
from wavecast.isa.targets import TARGET_SETS, TARGETS

LLC = shutil.which("llc-22")
pytestmark = [
    pytest.mark.llvm,
    pytest.mark.skipif(LLC is None, reason="needs llc-22 (Debian package llvm-22)"),
]

SOURCE = Path(__file__).with_name("table_mir.ll")
PASS = "branch-relaxation"
EXACT = SCC | VCC | EXEC | M0
IGNORED = special("mode") | special("flat_scratch")
UPPER_MASKS = special("vcc_hi") | special("exec_hi")
"""MIR names the whole pair also where waves have 32 lanes."""

_BASES = {"vgpr": VGPR_BASE, "agpr": AGPR_BASE, "sgpr": SGPR_BASE, "ttmp": TTMP_BASE}
_REGISTER = re.compile(r"(?P<flags>(?:[a-z-]+ )*)\$(?P<name>\w+)")
_NO_INSTRUCTION = re.compile(r"BUNDLE|KILL|fi#|CFI_INSTRUCTION|WAVE_BARRIER|\}|$|.* = IMPLICIT_DEF")


@dataclass(frozen=True)
class Operands:
    """Register sets of one MIR instruction: named as operands, or by LLVM's implicit lists.

    An operand marked `undef` counts as implicit: its value does not matter.
    """

    text: str
    reads: int
    writes: int
    implicit_reads: int
    implicit_writes: int


def register_bits(name: str) -> int:
    """`vgpr0_vgpr1`, `vcc_lo`, `sgpr_null` as a register set."""
    if name in SPECIAL_REGISTERS:
        return special(name)
    bits = 0
    for part in re.findall(r"([a-z]+)(\d+)", name):
        if part[0] in _BASES:
            bits |= span(_BASES[part[0]], int(part[1]), 1)
    return bits


def parse_mir(line: str) -> Operands:
    """One instruction of an llc dump."""
    text = line.split(" :: ")[0]
    left, equals, right = text.partition(" = ")
    if not equals:
        left, right = "", text
    sets = {"reads": 0, "writes": 0, "implicit_reads": 0, "implicit_writes": 0}
    for found in _REGISTER.finditer(left):
        bits = register_bits(found["name"])
        sets["writes"] |= bits
        if found["name"].endswith(("_lo16", "_hi16")):
            sets["implicit_reads"] |= bits  # the other half stays
    for found in _REGISTER.finditer(right):
        flags = found["flags"].split()
        key = "reads"
        if "implicit-def" in flags:
            key = "implicit_writes"
        elif "implicit" in flags or "undef" in flags:
            key = "implicit_reads"
        sets[key] |= register_bits(found["name"])
    return Operands(text.strip(), **sets)


@cache
def compiled(target: str) -> tuple[dict[str, list[Operands]], str]:
    """For one target: MIR instructions per function, and the assembly made of them."""
    assert LLC is not None
    command = [LLC, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={target}", f"-print-after={PASS}"]
    run = subprocess.run(
        [*command, str(SOURCE), "-o", "-"], capture_output=True, text=True, check=True
    )
    functions: dict[str, list[Operands]] = {}
    name = ""
    for line in run.stderr.splitlines():
        header = re.match(r"# Machine code for function (\w+):", line)
        if header:
            name = header[1]
            functions[name] = []
        body = line.strip()
        plain = line.startswith("  ") and not re.match(r"(successors|liveins):", body)
        if plain and name and not _NO_INSTRUCTION.match(body):
            functions[name].append(parse_mir(body))
    return functions, run.stdout


def differences(mir: Operands, reads: int, writes: int, ignored: int = IGNORED) -> list[str]:
    """What the table's sets and MIR's disagree about."""
    found = []
    for label, named, implied, ours in (
        ("reads", mir.reads, mir.implicit_reads, reads),
        ("writes", mir.writes, mir.implicit_writes, writes),
    ):
        missing = named & ~ours | (implied & ~ours & EXACT)
        extra = ours & ~(named | implied)
        for what, bits in (("lacks", missing & ~ignored), ("adds", extra & ~ignored)):
            if bits:
                found.append(f"{label} {what} {register_names(bits)}: {mir.text}")
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_reads_and_writes_are_those_of_mir(target: str) -> None:
    functions, text = compiled(target)
    ignored = IGNORED if target in TARGET_SETS["gfx9"] else IGNORED | UPPER_MASKS
    module = isa.parse(text, target)
    programs = {name: kernel.program for name, kernel in module.kernels.items()}
    programs |= module.functions
    assert set(programs) == set(functions)
    found, seen = [], 0
    for name, program in programs.items():
        instructions = program.instructions
        assert len(instructions) == len(functions[name])
        for instruction, mir in zip(instructions, functions[name], strict=True):
            if "SI_CALL" in mir.text:  # lists the calling convention, not the instruction
                continue
            seen += 1
            found += differences(mir, instruction.reads, instruction.writes, ignored)
    assert not found
    assert seen > 440


def test_a_wrong_set_is_noticed() -> None:
    """The comparison itself: a forgotten carry, and a destination taken for a source."""
    mir = parse_mir("$sgpr0 = S_ADD_U32 $sgpr1, killed $sgpr2, implicit-def dead $scc")
    sgpr = [span(SGPR_BASE, n, 1) for n in range(3)]
    assert not differences(mir, sgpr[1] | sgpr[2], sgpr[0] | SCC)
    assert "lacks ['scc']" in differences(mir, sgpr[1] | sgpr[2], sgpr[0])[0]
    assert "adds ['s0']" in differences(mir, sgpr[0] | sgpr[1] | sgpr[2], sgpr[0] | SCC)[0]


def test_wave32_targets_were_compiled_for_wave32() -> None:
    """Otherwise the lane masks above were compared at the wrong width."""
    for target in TARGET_SETS["gfx11+"]:
        functions, _ = compiled(target)
        names = {o.text for operands in functions.values() for o in operands}
        assert any("$exec_lo" in text for text in names)
