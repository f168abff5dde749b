"""LLVM's machine IR as it is printed between passes: instructions by block, what they use, and the
registers that are live."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

_DUMP: Final = re.compile(r"^# \*\*\* IR Dump After (?P<title>.*) \((?P<name>[\w-]+)\) \*\*\*:$")
_BLOCK: Final = re.compile(r"^(?:\d+B\t)?bb\.(?P<number>\d+)")
_SUCCESSOR: Final = re.compile(r"%bb\.(\d+)\(0x")
_INSTRUCTION: Final = re.compile(r"^(?:(?:\d+B)?\t)?  (?P<text>.*)$")
_SKIPPED: Final = ("successors:", "liveins:", ";", "frame-setup CFI", "CFI_", "DBG_", "BUNDLE")
_OPCODE: Final = re.compile(r"\b(?P<opcode>[A-Z][A-Z0-9_]{2,}\w*)\b")
_VIRTUAL: Final = re.compile(
    r"(?P<undef>undef )?%(?P<number>\d+)(?P<sub>\.\w+)?(?::(?P<cls>[a-z]\w*))?"
)
_PHYSICAL: Final = re.compile(r"\$(?P<names>(?:[vas]gpr\d+_?)+)")
_NAME: Final = re.compile(r"([vas])gpr(\d+)")
_BITS: Final = re.compile(r"_(\d+)")
_LOCATION: Final = re.compile(r"debug-location !\d+; (?P<chain>.*)$")
_POSITION: Final = re.compile(r"(?P<file>[^\s:@\[]+):(?P<line>\d+):\d+")
_META: Final = frozenset({"KILL", "IMPLICIT_DEF", "PHI", "COPY", "ATOMIC_FENCE", "SCHED_BARRIER"})
_GROUPS: Final = (
    ("matrix", re.compile(r"^V_(?:MFMA|SMFMAC|WMMA|SWMMAC)")),
    ("lds", re.compile(r"^DS_")),
    ("load", re.compile(r"^(?:BUFFER|GLOBAL|FLAT)_LOAD")),
    ("store", re.compile(r"^(?:BUFFER|GLOBAL|FLAT)_STORE")),
    ("spill", re.compile(r"^(?:SI_SPILL|SCRATCH_)")),
    ("wait", re.compile(r"^S_WAIT")),
    ("barrier", re.compile(r"^S_BARRIER")),
)


@dataclass(frozen=True, slots=True)
class MachineLine:
    """One instruction of machine IR: its text without its location, its opcode, and the source
    line (`matmul.py:44`) it is from, "" for none."""

    text: str
    opcode: str
    source: str

    @property
    def group(self) -> str:
        """`matrix`, `lds`, `load`, `store`, `spill`, `wait`, `barrier`, or "" for others."""
        return _group(self.opcode)


@cache
def _group(opcode: str) -> str:
    return next((name for name, pattern in _GROUPS if pattern.match(opcode)), "")


@dataclass(frozen=True)
class MachineFunction:
    """A function of machine IR after a pass. `blocks` are lists of instructions by number."""

    title: str
    name: str
    text: str
    blocks: dict[int, list[MachineLine]]
    successors: dict[int, list[int]]

    @cached_property
    def lines(self) -> list[MachineLine]:
        """All instructions in order."""
        return [line for block in self.blocks.values() for line in block]

    @cached_property
    def groups(self) -> Counter[str]:
        """Instructions by group; `""` are the others."""
        return Counter(line.group for line in self.lines if line.opcode not in _META)

    @cached_property
    def pressure(self) -> tuple[int, int]:
        """The most 32-bit registers live at once, (vector, scalar). A virtual register counts whole
        as soon as a part of it is written."""
        units = _Units()
        steps = {
            number: [units.of(line.text) for line in block] for number, block in self.blocks.items()
        }
        entry = dict.fromkeys(steps, 0)
        changed = True
        while changed:
            changed = False
            for number in reversed(list(steps)):
                live = 0
                for successor in self.successors.get(number, ()):
                    live |= entry.get(successor, 0)
                for defined, uses in reversed(steps[number]):
                    live = live & ~defined | uses
                if live != entry[number]:
                    entry[number], changed = live, True
        most_vector = most_scalar = 0
        for number, block_steps in steps.items():
            live = 0
            for successor in self.successors.get(number, ()):
                live |= entry.get(successor, 0)
            for defined, uses in reversed(block_steps):
                vector, scalar = units.sizes(live | defined)
                most_vector, most_scalar = max(most_vector, vector), max(most_scalar, scalar)
                live = live & ~defined | uses
        return most_vector, most_scalar


class _Units:
    """Registers as bits, with their class and size."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._vector = 0
        self._weights: dict[int, int] = {}

    def of(self, text: str) -> tuple[int, int]:
        """(registers defined, registers used) of an instruction."""
        left, equals, right = text.partition(" = ")
        if not equals:
            left, right = "", text
        defined = uses = 0
        for match in _VIRTUAL.finditer(left):
            bit = self._virtual(match)
            defined |= bit
            if match["sub"] and not match["undef"]:
                uses |= bit
        for match in _VIRTUAL.finditer(right):
            if not match["undef"] and match["number"]:
                uses |= self._virtual(match)
        for match in _PHYSICAL.finditer(left):
            defined |= self._physical(match)
        for match in _PHYSICAL.finditer(right):
            before = right[: match.start()]
            if before.endswith(("implicit-def ", "implicit-def dead ", "implicit-def renamable ")):
                defined |= self._physical(match)
            elif not before.endswith(("undef ", "undef renamable ")):
                uses |= self._physical(match)
        return defined, uses

    def sizes(self, live: int) -> tuple[int, int]:
        """(vector, scalar) 32-bit registers of a set."""
        return self._sum(live & self._vector), self._sum(live & ~self._vector)

    def _sum(self, live: int) -> int:
        return sum(weight * (live & mask).bit_count() for weight, mask in self._weights.items())

    def _virtual(self, match: re.Match[str]) -> int:
        name, kind = match["number"], match["cls"] or ""
        if name not in self._bits:
            if not kind:
                return 0
            bits = _BITS.search(kind)
            return self._add(name, max(1, int(bits[1]) // 32) if bits else 1, kind[0] in "va")
        return self._bits[name]

    def _physical(self, match: re.Match[str]) -> int:
        mask = 0
        for kind, number in _NAME.findall(match["names"]):
            name = f"${kind}{number}"
            bit = self._bits.get(name)
            mask |= self._add(name, 1, kind in "va") if bit is None else bit
        return mask

    def _add(self, name: str, size: int, vector: bool) -> int:
        bit = self._bits[name] = 1 << len(self._bits)
        self._weights[size] = self._weights.get(size, 0) | bit
        if vector:
            self._vector |= bit
        return bit


def functions(dump: str) -> Iterator[MachineFunction]:
    """The functions of a dump, in the order of the passes."""
    title, name, lines = "", "", []
    for line in dump.split("\n"):
        header = _DUMP.match(line)
        if header is None:
            lines.append(line)
            continue
        if name:
            yield _function(title, name, lines)
        title, name, lines = header["title"], header["name"], []
    if name:
        yield _function(title, name, lines)


def _function(title: str, name: str, lines: list[str]) -> MachineFunction:
    blocks: dict[int, list[MachineLine]] = {}
    successors: dict[int, list[int]] = {}
    current: list[MachineLine] | None = None
    number = -1
    for line in lines:
        block = _BLOCK.match(line)
        if block is not None:
            number = int(block["number"])
            current = blocks[number] = []
            continue
        if line.startswith("# End machine code"):
            break
        match = _INSTRUCTION.match(line)
        if current is None or match is None:
            continue
        text = match["text"].strip()
        if text.startswith("successors:"):
            successors[number] = [int(successor) for successor in _SUCCESSOR.findall(text)]
        elif text and text != "}" and not text.startswith(_SKIPPED):
            current.append(_line(text))
    return MachineFunction(title, name, "\n".join(lines).strip("\n"), blocks, successors)


def _line(text: str) -> MachineLine:
    location = _LOCATION.search(text)
    plain = text[: location.start()].rstrip(", ") if location is not None else text
    source = ""
    if location is not None:
        positions = _POSITION.findall(location["chain"])
        if positions:
            source = f"{positions[-1][0].rsplit('/', 1)[-1]}:{positions[-1][1]}"
    _, equals, right = plain.partition(" = ")
    opcode = _OPCODE.search(right if equals else plain)
    return MachineLine(plain, opcode["opcode"] if opcode is not None else "", source)


__all__ = ["MachineFunction", "MachineLine", "functions"]
