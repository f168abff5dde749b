"""Opcode numbers from LLVM's assembler: the contents of `wavecast/isa/encoding/opcodes.csv`.

For every row, target and suffix an example is assembled; its bits tell format and opcode number.
`python -m tests.oracle.encodings --write` rewrites the file.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.oracle.test_table_llvm import MC, _half, examples
from wavecast.isa import encoding, table
from wavecast.isa.encoding.formats import Format, format_of
from wavecast.isa.opcode import Opcode, OperandKind
from wavecast.isa.targets import TARGET_SETS, TARGETS

PATH = Path(encoding.__file__).parent / "opcodes.csv"
HEAD = """\
# The opcode number of each row of the opcode table, per format and target, as LLVM's assembler
# encodes it. suffix: what the mnemonic ends with in this format. words: `h0`, operand 0 is a 16-bit
# half of a register (gfx11 and later); `a0`, it is an AGPR; other words are properties of printing
# (the builders of plans in wavecast.isa.encoding). Written by
# `python -m tests.oracle.encodings --write`.
"""
GFX9 = TARGET_SETS["gfx9"]
_SUFFIXES = ("_e32", "_e64", "")
_ONE_WORD = ("VOP1", "VOP2", "VOPC")
_OTHER_NAMES = {("v_mul_lo_i32", target) for target in GFX9}
"""Names the assembler takes for the bits of another row."""


@dataclass(frozen=True)
class Encoded:
    """A line as LLVM encodes it, and as it prints it back."""

    line: str
    printed: str
    words: tuple[int, ...]

    @property
    def value(self) -> int:
        return sum(word << 32 * number for number, word in enumerate(self.words))


def assemble(target: str, lines: Sequence[str], attributes: str = "") -> list[Encoded | None]:
    """Each line's encoding; None where the assembler refuses it."""
    assert MC is not None
    command = [MC, "-triple=amdgcn", f"-mcpu={target}", f"-mattr={attributes}", "-show-encoding"]
    text = "\n".join(lines) + "\n"
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    refused = {int(n) for n in re.findall(r"<stdin>:(\d+):\d+: error:", run.stderr)}
    printed = (line for line in run.stdout.splitlines() if "encoding: [" in line)
    found: list[Encoded | None] = []
    for number, line in enumerate(lines, 1):
        if number in refused:
            found.append(None)
            continue
        shown, _, code = next(printed).partition("encoding: [")
        data = bytes(int(item, 16) for item in re.findall(r"0x([0-9a-f]{2})", code.split("]")[0]))
        words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
        found.append(Encoded(line, plain(re.sub(r"\s*(?://|;) *$", "", shown)), tuple(words)))
    return found


def disassemble(target: str, codes: Sequence[tuple[int, ...]], attributes: str = "") -> list[str]:
    """The text of each instruction; "" for one that LLVM does not know."""
    assert MC is not None
    lines = [" ".join(f"{byte:#04x}" for word in code for byte in word.to_bytes(4, "little"))
             for code in codes]  # fmt: skip
    command = [MC, "-triple=amdgcn", f"-mcpu={target}", f"-mattr={attributes}", "--disassemble"]
    command.append("-show-encoding")
    run = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    shown = [line.partition("encoding: [") for line in run.stdout.splitlines()]
    texts: dict[str, str] = {}
    for text, mark, code in shown:
        if mark:
            key = " ".join(re.findall(r"0x[0-9a-f]{2}", code.split("]")[0]))
            texts[key] = plain(re.sub(r"\s*(?://|;) *$", "", text))
    return [texts.get(line, "") for line in lines]


def plain(text: str) -> str:
    """Without comments, and with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text)).strip()


@cache
def encoded_examples(target: str) -> list[tuple[Opcode, Encoded]]:
    """Every row's examples that the assembler takes, with and without suffix."""
    rows = [row for row in table.rows() if target in row.mnemonics]
    wanted: list[tuple[Opcode, str]] = []
    for row in rows:
        if row.name.startswith("v_dual_"):
            continue
        mnemonic = row.mnemonics[target]
        for suffix in _SUFFIXES if row.form in _ONE_WORD else ("",):
            for text in examples(row, mnemonic, target):
                line = text.replace(mnemonic, mnemonic + suffix, 1)
                if suffix == "_e64":
                    mask = "s[14:15]" if target in GFX9 else "s14"
                    line = re.sub(r"\bvcc(_lo)?\b", mask, line)
                wanted.append((row, line))
    found = []
    features = ("",) if target in GFX9 else ("+real-true16", "-real-true16")
    for attributes in features:
        lines = [line for _, line in wanted]
        for (row, line), item in zip(wanted, assemble(target, lines, attributes), strict=True):
            suffix = line.split()[0][len(row.mnemonics[target]) :]
            if item is not None and item.printed.split()[0].endswith(suffix):
                found.append((row, item))
    return found


@cache
def encoded_pairs(target: str) -> list[tuple[Opcode, str, Encoded]]:
    """Every VOPD row as the X and as the Y half of pairs of both formats."""
    rows = [row for row in table.rows() if row.name.startswith("v_dual_")]
    lines, owners = [], []
    for row in rows:
        if target not in row.mnemonics:
            continue
        half = _half(row)
        for other in ("v_dual_mov_b32 v3, v5", "v_dual_fma_f32 v3, v5, v7, v9"):
            lines += [f"{half} :: {other}", f"{other} :: {half}"]
            owners += [(row, "x"), (row, "y")]
    return [
        (row, half, item)
        for (row, half), item in zip(owners, assemble(target, lines), strict=True)
        if item is not None
    ]


@dataclass
class _Found:
    numbers: dict[str, int] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)


def _halves(text: str) -> set[str]:
    operands = text.partition(" ")[2].split(", ")
    return {f"h{n}" for n, item in enumerate(operands) if re.match(r"v\d+\.[lh]", item)}


def _words(name: str, shape: str, suffix: str) -> Iterable[str]:
    """Properties of printing that neither the row nor the format has."""
    if name in ("v_accvgpr_mov_b32", "v_accvgpr_write_b32"):
        yield "a0"
    if name in ("v_accvgpr_mov_b32", "v_accvgpr_read_b32"):
        yield "a1"
    if name.startswith("v_bitop3") or "bitop2" in name:
        yield "bitop3"
    if "fma_mix" in name:
        yield "mix"
    if "swmmac" in name:
        yield "index_key"
    if name.startswith("v_permlane"):
        if "swap" in name and suffix != "e32":
            yield "swap"
        elif name.startswith(("v_permlane16_", "v_permlanex16_")) and "swap" not in name:
            yield "permlane"
    if re.fullmatch(r"v_cvt_(f32|f16)_(fp8|bf8)", name) and suffix == "e64":
        yield "byte_source"
    if re.fullmatch(r"v_cvt_sr_(fp8|bf8)_(f32|f16)", name):
        yield "byte_result"
    if name in ("v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32"):
        yield "op_sel4"
    if re.fullmatch(r"v_cvt_(pk_)?f32_(fp8|bf8)", name) and shape == "VOP1":
        yield "sdwa_source"
    if name.startswith("v_cvt_scale_pk"):
        yield "scale_sel"
    if "wmma" in name and "f8f6f4" in name:
        yield "fmt"
    if name == "s_delay_alu":
        yield "delay"


_DECIMAL = re.compile(r"\w+ 19")


def _decimal_rows(target: str) -> set[str]:
    """SOPP rows whose immediate LLVM prints decimal."""
    rows = [r for r in table.rows() if r.form == "SOPP" and r.operands and target in r.mnemonics]
    lines = [f"{row.mnemonics[target]} 19" for row in rows]
    return {
        row.name
        for row, item in zip(rows, assemble(target, lines), strict=True)
        if item is not None and _DECIMAL.fullmatch(item.printed)
        and not any(role.optional or role.kind is OperandKind.LABEL for role in row.operands)
    }  # fmt: skip


def _reused(row: Opcode, shape: Format, value: int) -> bool:
    """Whether bit 14 of a WMMA is free for `matrix_b_reuse`: it is not set in the example."""
    if row.form != "WMMA" or row.matrix is None:
        return False
    if shape.name.startswith("WMMA_SCALE"):
        return True
    return not value >> 14 & 1


def generate() -> str:
    """The text of opcodes.csv."""
    order = {row.name: number for number, row in enumerate(table.rows())}
    found: dict[tuple[str, str, str], _Found] = {}
    for target in TARGETS:
        items: list[tuple[Opcode, str, Encoded]] = [
            (row, "", item) for row, item in encoded_examples(target)
        ]
        items += encoded_pairs(target)
        printed = (
            [""] * len(items)
            if target in GFX9
            else disassemble(target, [item.words for _, _, item in items], "+real-true16")
        )
        decimal = _decimal_rows(target)
        for (row, half, item), shown in zip(items, printed, strict=True):
            if (row.name, target) in _OTHER_NAMES:
                continue
            shape = format_of(target, item.value, len(item.words))
            if shape is None:
                raise AssertionError(f"{target}: no format for {item.printed}: {item.words}")
            mnemonic = item.printed.split()[0]
            own = row.mnemonics[target]
            suffix = mnemonic[len(own) + 1 :] if mnemonic.startswith(f"{own}_") else ""
            if not half and mnemonic != own and suffix not in ("e32", "e64"):
                continue
            entry = found.setdefault((shape.name, row.name, "" if half else suffix), _Found())
            number = shape.fields[f"op{half}"].of(item.value)
            if entry.numbers.setdefault(target, number) != number:
                raise AssertionError(f"{target}: two numbers of {item.printed}")
            entry.words |= _halves(shown) | set(_words(row.name, shape.name, suffix))
            if target == "gfx1250" and "fmt" not in entry.words and _reused(row, shape, item.value):
                entry.words.add("reuse")
            if row.name in decimal:
                entry.words.add("decimal")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["format", "row", "suffix", "words", *TARGETS])
    for key in sorted(found, key=lambda key: (key[0], order[key[1]], key[2])):
        entry = found[key]
        numbers = [f"{entry.numbers[t]:x}" if t in entry.numbers else "" for t in TARGETS]
        writer.writerow([*key, " ".join(sorted(entry.words)), *numbers])
    return HEAD + out.getvalue()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PATH.write_text(generate(), encoding="utf-8")
    else:
        sys.exit("usage: python -m tests.oracle.encodings --write")
