"""One instruction's text to `Decoded`: its row, operands matched to roles, register sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Final

from wavecast.arch import capabilities
from wavecast.errors import nearest_names
from wavecast.isa import table
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import (
    MemoryEffect,
    MemoryKind,
    Opcode,
    OperandAccess,
    OperandKind,
    OperandRole,
)
from wavecast.isa.operand import OperandError, parse_operand, print_operand
from wavecast.isa.quoting import split
from wavecast.isa.registers import SPECIAL_REGISTERS, special
from wavecast.isa.targets import isa_target

# bound once: looking an enum member up costs ten times what comparing it does
_READ_WRITE = OperandAccess.READ_WRITE
_READ = OperandAccess.READ
_RETURN = OperandAccess.RETURN

_WHOLE = frozenset({"", "e32", "e64"})
"""Encodings that write every byte of every active lane."""

_SUFFIX = re.compile(r"(?P<base>.+?)_(?P<encoding>e64_dpp8|e64_dpp|e32|e64|e96|dpp8|dpp|sdwa)")
_RETURNING = ("glc", "sc0")
_CACHE_LIMIT = 60_000


class DecodeError(ValueError):
    """An instruction that does not fit its row."""


class UnknownMnemonic(DecodeError):
    """A mnemonic with no row for the target; `nearest` are the closest known ones."""

    def __init__(self, mnemonic: str, target: str, nearest: list[str]) -> None:
        super().__init__(f"unknown instruction {mnemonic!r} for {target}")
        self.nearest = nearest


class Decoder:
    """Decodes instruction texts of one target. Equal texts give the same object."""

    def __init__(self, target: str, wave_lanes: int) -> None:
        self.target = isa_target(target)
        self.wave_lanes = wave_lanes
        self._rows = table.by_mnemonic(self.target)
        self._mnemonics: dict[str, tuple[tuple[Opcode, ...], str]] = {}
        self._decoded: dict[str, Decoded] = {}
        self._implicit: dict[str, tuple[int, int]] = {}

    @property
    def cache(self) -> dict[str, Decoded]:
        """Texts decoded so far; the parser looks here first. Bounded by `decode`."""
        return self._decoded

    def decode(self, text: str) -> Decoded:
        """Decode one instruction without comment or surrounding space.

        Raises DecodeError (UnknownMnemonic when there is no row).
        """
        instruction = self._decoded.get(text)
        if instruction is None:
            if len(self._decoded) > _CACHE_LIMIT:
                self._decoded.clear()
            instruction = (
                self._pair(text) if "::" in text and '"' not in text else self._single(text)
            )
            self._decoded[text] = instruction
        return instruction

    def _pair(self, text: str) -> Decoded:
        x_text, _, y_text = text.partition("::")
        x, y = self._single(x_text.strip()), self._single(y_text.strip())
        x.text = text
        x.second = y
        x.reads |= y.reads
        x.writes |= y.writes
        x.kills |= y.kills
        return x

    def _single(self, text: str) -> Decoded:
        mnemonic, _, rest = text.partition(" ")
        rows, encoding = self._lookup(mnemonic)
        rest = rest.strip()
        operand_texts, modifiers = _split(rows[0], rest)
        try:
            operands = tuple([parse_operand(item) for item in operand_texts])
        except OperandError as error:
            raise DecodeError(f"{error} in {text!r}") from None
        opcode, roles = _match(rows, operands, text)
        for role, operand in zip(roles, operands, strict=True):
            _check_registers(opcode, role, operand, text)
        return self._build(text, opcode, mnemonic, encoding, operands, roles, modifiers)

    def _lookup(self, mnemonic: str) -> tuple[tuple[Opcode, ...], str]:
        entry = self._mnemonics.get(mnemonic)
        if entry is not None:
            return entry
        rows, encoding = self._rows.get(mnemonic), ""
        match = _SUFFIX.fullmatch(mnemonic) if rows is None else None
        if match is not None:
            rows, encoding = self._rows.get(match["base"]), match["encoding"]
        if rows is None:
            older = table.older_names(self.target)
            rows = older.get(mnemonic) or older.get(match["base"] if match else "")
        if rows is None:
            raise UnknownMnemonic(mnemonic, self.target, nearest_names(mnemonic, self._rows))
        self._mnemonics[mnemonic] = rows, encoding
        return rows, encoding

    def _build(
        self,
        text: str,
        opcode: Opcode,
        mnemonic: str,
        encoding: str,
        operands: tuple[Operand, ...],
        roles: tuple[OperandRole, ...],
        modifiers: dict[str, str],
    ) -> Decoded:
        reads, writes = self._implicit_sets(opcode)
        kills = writes
        for operand, role in zip(operands, roles, strict=True):
            bits = operand.bits
            if not bits:
                continue
            access = role.access
            if access is _READ:
                reads |= bits
                continue
            if access is _RETURN:
                reads |= bits
                if _returns(modifiers):
                    writes |= bits
                    kills |= bits
                continue
            writes |= bits
            if access is _READ_WRITE:
                reads |= bits
                kills |= bits
            elif operand.half or (encoding not in _WHOLE and _keeps_old(modifiers, encoding)):
                reads |= bits
            else:
                kills |= bits
        memory = opcode.memory
        if memory is not None and "lds" in modifiers:
            memory = MemoryEffect(memory.space, MemoryKind.LOAD_TO_LDS, memory.bytes)
            reads |= special("m0")
        return Decoded(
            text, opcode, mnemonic, encoding, operands, modifiers, reads, writes, kills,
            roles, memory,
        )  # fmt: skip

    def _implicit_sets(self, opcode: Opcode) -> tuple[int, int]:
        sets = self._implicit.get(opcode.name)
        if sets is None:
            sets = self._bits(opcode.implicit_reads), self._bits(opcode.implicit_writes)
            self._implicit[opcode.name] = sets
        return sets

    def _bits(self, names: tuple[str, ...]) -> int:
        bits = 0
        for name in names:
            if self.wave_lanes == 32 and f"{name}_lo" in SPECIAL_REGISTERS:
                name = f"{name}_lo"
            bits |= special(name)
        return bits


def wave_lanes_of(target: str) -> int:
    """The wave size code of `target` has unless its descriptor says otherwise."""
    return capabilities(isa_target(target)).default_wave_size


def _returns(modifiers: dict[str, str]) -> bool:
    if any(flag in modifiers for flag in _RETURNING):
        return True
    return "RETURN" in modifiers.get("th", "")


def _keeps_old(modifiers: dict[str, str], encoding: str) -> bool:
    """True when lanes or bytes that the instruction does not write keep their old value."""
    if encoding == "sdwa":
        return modifiers.get("dst_unused") == "UNUSED_PRESERVE"
    if encoding.endswith("dpp"):
        full = modifiers.get("row_mask", "0xf") == "0xf" == modifiers.get("bank_mask", "0xf")
        return not (full and "bound_ctrl" in modifiers)
    return False


def _split(opcode: Opcode, rest: str) -> tuple[list[str], dict[str, str]]:
    """Operand texts and modifiers of what follows the mnemonic."""
    if not rest:
        return [], {}
    roles = opcode.operands
    if not roles:
        return [], _modifiers(rest.split())
    if len(roles) == 1 and roles[0].kind is OperandKind.IMMEDIATE and opcode.form == "SOPP":
        return [rest], {}
    chunks = _chunks(rest)
    last = chunks[-1].split()
    if len(last) > 1 and ("(" in chunks[-1] or '"' in chunks[-1]):
        last = [word for word in split(chunks[-1], " ") if word]
    if not last:
        return chunks, {}
    chunks[-1] = last[0]
    return chunks, _modifiers(last[1:])


def _chunks(rest: str) -> list[str]:
    """Operand texts, the last one with the modifiers behind it."""
    if "(" not in rest and ":[" not in rest and '"' not in rest:
        chunks = rest.split(", ")
        return [c.strip() for c in rest.split(",")] if rest.count(",") >= len(chunks) else chunks
    return [chunk.strip() for chunk in split(rest, ",")]


def _modifiers(words: list[str]) -> dict[str, str]:
    modifiers = {}
    for word in words:
        name, _, value = word.partition(":")
        modifiers[name] = value
    return modifiers


_VECTORS = frozenset({OperandClass.VGPR, OperandClass.AGPR})
_NEVER: Final[Mapping[OperandKind, frozenset[OperandClass]]] = {
    OperandKind.VECTOR: frozenset({OperandClass.SGPR}),
    OperandKind.ADDRESS: frozenset({OperandClass.SGPR}),
    OperandKind.SCALAR: _VECTORS,
    OperandKind.SCALAR_SOURCE: _VECTORS,
    OperandKind.SCALAR_ADDRESS: _VECTORS,
    OperandKind.RESOURCE: _VECTORS,
    OperandKind.OFFSET: _VECTORS,
}
"""Registers of the other file, which scalar and memory instructions have no code for. Those that
compute on vectors have one for any register, and LLVM prints it."""


def _check_registers(opcode: Opcode, role: OperandRole, operand: Operand, text: str) -> None:
    """Raises DecodeError for registers that no code of the instruction can name, and for as many
    as it has no use for. How wide operands of memory and matrix instructions are depends on
    modifiers."""
    if not operand.count or operand.kind is OperandClass.SPECIAL:
        return
    other_file = opcode.memory is not None or opcode.form.startswith("S")
    if other_file and operand.kind in _NEVER.get(role.kind, ()):
        raise DecodeError(f"{operand.text} cannot be this operand in {text!r}")
    by_modifiers = opcode.memory is not None or opcode.matrix is not None
    if not by_modifiers and role.dwords not in (0, operand.count):
        raise DecodeError(f"{operand.text} is not {role.dwords} wide, in {text!r}")


def _match(
    rows: tuple[Opcode, ...], operands: tuple[Operand, ...], text: str
) -> tuple[Opcode, tuple[OperandRole, ...]]:
    """The row whose roles fit the operands printed; optional roles may be left out."""
    count = len(operands)
    for row in rows:
        if len(row.operands) == count:
            return row, row.operands
    for row in rows:
        missing = len(row.operands) - count
        if missing > 0 and sum(role.optional for role in row.operands) >= missing:
            return row, _drop_optional(row.operands, missing, operands)
    counts = " or ".join(str(len(row.operands)) for row in rows)
    raise DecodeError(f"{text!r} has {count} operands, expected {counts}")


def _drop_optional(
    roles: tuple[OperandRole, ...], missing: int, operands: tuple[Operand, ...]
) -> tuple[OperandRole, ...]:
    """The roles without `missing` optional ones: the first choice that fits what was printed."""
    optional = [index for index, role in enumerate(roles) if role.optional]
    choices = [
        tuple(role for index, role in enumerate(roles) if index not in dropped)
        for dropped in combinations(optional, missing)
    ]
    for choice in choices:
        if all(_fits(role, operand) for role, operand in zip(choice, operands, strict=True)):
            return choice
    return choices[0]


def _fits(role: OperandRole, operand: Operand) -> bool:
    """False for a vector register where only scalars go, or the reverse."""
    if role.kind is OperandKind.SCALAR_ADDRESS:
        return operand.kind in (OperandClass.SGPR, OperandClass.OFF, OperandClass.SPECIAL)
    if role.kind is OperandKind.VECTOR:
        return operand.kind in (OperandClass.VGPR, OperandClass.AGPR)
    return True


def print_instruction(decoded: Decoded) -> str:
    """The instruction as assembly text, built from its parts."""
    text = _print_one(decoded)
    if decoded.second is not None:
        text += f" :: {_print_one(decoded.second)}"
    return text


def _print_one(decoded: Decoded) -> str:
    text = decoded.mnemonic
    if decoded.operands:
        text += " " + ", ".join([print_operand(operand) for operand in decoded.operands])
    for name, value in decoded.modifiers.items():
        text += f" {name}:{value}" if value else f" {name}"
    return text


__all__ = [
    "DecodeError",
    "Decoder",
    "UnknownMnemonic",
    "print_instruction",
    "wave_lanes_of",
]
