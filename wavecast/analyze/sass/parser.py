"""SASS text, as nvdisasm or cuobjdump print it, to a `Program`.

Read are instructions, labels, and the source markers of `nvdisasm -gi`. The result has blocks,
dominators and loops like an AMD program; register sets stay empty, because nothing here decodes
SASS operands beyond branch targets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from wavecast.analyze.sass import table
from wavecast.errors import InputError
from wavecast.isa.cfg import build_program
from wavecast.isa.instruction import (
    Decoded,
    Instruction,
    Operand,
    OperandClass,
    SourceLocation,
)
from wavecast.isa.opcode import Control
from wavecast.isa.program import Program

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^\s,]+)|^\s*Function\s*:\s*(\S+)")
_OTHER_SECTION = re.compile(r"^\s*\.section\s+")
_LABEL = re.compile(r"^([.$\w]+):\s*$")
_INSTRUCTION = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>(?:@(?P<predicate>!?U?P\w+)\s+)?"
    r"(?P<mnemonic>[A-Z][\w.]*)(?P<rest>[^;]*));"
)
_MARKER = re.compile(
    r'^\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)'
    r'(?: inlined at "(?P<outer>[^"]*)", line (?P<outer_line>\d+))?'
)
_TARGET_LABEL = re.compile(r"`\(([^)]+)\)")
_TARGET_ADDRESS = re.compile(r"0x([0-9a-f]+)\s*$")
_UNIFORM_CONDITION = re.compile(r"^\s*!?U?P\d")
_REGISTER = re.compile(r"\bR(\d+)\b")


def functions(text: str) -> tuple[str, ...]:
    """The names of the functions a SASS text holds, in order."""
    matches = (_SECTION.match(line) for line in text.splitlines())
    return tuple(dict.fromkeys(match[1] or match[2] for match in matches if match))


def parse(
    text: str, kernel: str, target: str, moved_files: Mapping[str, str] | None = None
) -> Program:
    """The program of one kernel; subroutines in its section are part of it.

    Source locations in a file of `moved_files` have the path it maps to. Raises InputError when the
    text has no code for `kernel`.
    """
    names = functions(text)
    if kernel not in names:
        hint = f"it holds {', '.join(names[:8])}" if names else "it holds no code section"
        raise InputError(f"no SASS for kernel {kernel!r}", hint=hint)
    reader = _Reader(moved_files or {})
    in_kernel = False
    for number, line in enumerate(text.splitlines(), 1):
        section = _SECTION.match(line)
        if section is not None:
            in_kernel = kernel in (section[1], section[2])
        elif _OTHER_SECTION.match(line):
            in_kernel = False
        elif in_kernel:
            reader.line(line, number)
    if not reader.instructions:
        raise InputError(f"the SASS of kernel {kernel!r} holds no instructions")
    return build_program(kernel, target, reader.instructions, reader.resolved_labels())


def highest_register(program: Program) -> int:
    """Registers per thread a program names: one more than the highest `R` register."""
    highest = -1
    for decoded in {id(i.decoded): i.decoded for i in program.instructions}.values():
        for match in _REGISTER.finditer(decoded.text):
            highest = max(highest, int(match[1]))
    return highest + 1


class _Reader:
    """Collects the instructions of one function line by line."""

    def __init__(self, moved_files: Mapping[str, str]) -> None:
        self._moved = moved_files
        self.instructions: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._addresses: dict[str, int] = {}
        self._location: SourceLocation | None = None
        self._chain: list[tuple[str, int]] = []

    def line(self, line: str, number: int) -> None:
        match = _INSTRUCTION.match(line)
        if match is not None:
            self._flush_chain()
            index = len(self.instructions)
            self._addresses[f"@{int(match['address'], 16):x}"] = index
            decoded = _decode(match["text"].strip(), match["mnemonic"], match["predicate"] or "")
            self.instructions.append(Instruction(decoded, index, number, self._location))
            return
        marker = _MARKER.match(line)
        if marker is not None:
            file = self._moved.get(marker["file"], marker["file"])
            self._chain.append((file, int(marker["line"])))
            return
        label = _LABEL.match(line)
        if label is not None:
            self._labels[label[1]] = len(self.instructions)

    def _flush_chain(self) -> None:
        """Consecutive markers run from the innermost line to the outermost call site."""
        if self._chain:
            location = None
            for file, line in reversed(self._chain):
                location = SourceLocation(file, line, 0, location)
            self._location = location
            self._chain = []

    def resolved_labels(self) -> dict[str, int]:
        """Labels and addresses branches name, those past the last instruction left out."""
        last = len(self.instructions)
        labels = {name: index for name, index in self._labels.items() if index < last}
        return labels | self._addresses


@lru_cache(maxsize=1 << 16)
def _decode(text: str, mnemonic: str, predicate: str) -> Decoded:
    rest = text.partition(mnemonic)[2]
    predicated = bool(predicate) and predicate != "PT"
    row = table.opcode(mnemonic, predicated)
    operands: tuple[Operand, ...] = ()
    if row.control in (Control.BRANCH, Control.CONDITIONAL, Control.CALL):
        if row.control is Control.BRANCH and _UNIFORM_CONDITION.match(rest):
            row = table.opcode(mnemonic, True)
        operands = _target(rest)
    return Decoded(
        text=text,
        opcode=row,
        mnemonic=mnemonic,
        encoding="",
        operands=operands,
        modifiers={},
        reads=0,
        writes=0,
        kills=0,
        memory=row.memory,
    )


def _target(rest: str) -> tuple[Operand, ...]:
    label = _TARGET_LABEL.search(rest)
    if label is not None:
        return (Operand(OperandClass.LABEL, label[1]),)
    address = _TARGET_ADDRESS.search(rest)
    if address is not None:
        return (Operand(OperandClass.LABEL, f"@{int(address[1], 16):x}"),)
    return ()
