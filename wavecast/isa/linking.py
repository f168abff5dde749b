"""A kernel and the functions it can reach, as one sequence of instructions.

Calls go through addresses: code adds the distance of a symbol (`name@rel32@lo+4`) to the program
counter. Every function whose address is taken, directly or by a function that is reached, belongs
to the program. Source: LLVM "User Guide for AMDGPU Backend", sections on relocation records and the
calling convention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import Control
from wavecast.isa.quoting import QUOTED, unquote

_SYMBOL = re.compile(
    rf"({QUOTED}|[A-Za-z_.$][\w.$@]*?)"
    r"@(rel32@lo|rel32@hi|rel64|gotpcrel32@lo|gotpcrel32@hi|gotpcrel)([+-]\d+)?"
)


@dataclass
class AssemblyFunction:
    """Instructions and labels (name -> instruction index) of one function of a text."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def symbol_of(text: str) -> tuple[str, str, int] | None:
    """The symbol an operand's expression names, its relocation, and the bytes added to it; None
    for other expressions."""
    match = _SYMBOL.fullmatch(text)
    return (unquote(match[1]), match[2], int(match[3] or 0)) if match is not None else None


def link_functions(
    kernel: AssemblyFunction, functions: Mapping[str, AssemblyFunction]
) -> tuple[AssemblyFunction, dict[str, int]]:
    """The kernel followed by what it reaches, and where each function begins."""
    order = [kernel]
    for function in order:
        for name in _referenced_symbols(function):
            callee = functions.get(name)
            if callee is not None and callee not in order:
                order.append(callee)
    whole = AssemblyFunction(kernel.name)
    entries: dict[str, int] = {}
    for function in order:
        start = len(whole.instructions)
        entries[function.name] = start
        whole.labels.update({label: start + at for label, at in function.labels.items()})
        whole.instructions += [
            Instruction(item.decoded, start + item.index, item.line, item.location)
            for item in function.instructions
        ]
    whole.labels.update(entries)
    return whole, entries


def leaves(function: AssemblyFunction) -> bool:
    """Whether a function calls another or takes the address of something."""
    return bool(_referenced_symbols(function)) or any(
        item.decoded.opcode.control is Control.CALL for item in function.instructions
    )


def names_data(instructions: Iterable[Instruction], entries: Mapping[str, int]) -> bool:
    """Whether code takes the address of a symbol that is none of its functions."""
    expressions = (
        symbol_of(operand.text)
        for instruction in instructions
        for operand in instruction.operands
        if operand.kind is OperandClass.EXPRESSION
    )
    return any(symbol is not None and symbol[0] not in entries for symbol in expressions)


def _referenced_symbols(function: AssemblyFunction) -> list[str]:
    names: dict[str, None] = {}
    for instruction in function.instructions:
        calls = instruction.decoded.opcode.control is Control.CALL
        for operand in instruction.decoded.operands:
            if operand.kind is OperandClass.LABEL and calls:
                names[operand.text] = None
            elif operand.kind is OperandClass.EXPRESSION:
                symbol = symbol_of(operand.text)
                if symbol is not None:
                    names[symbol[0]] = None
    return list(names)


def called_function(
    decoded: Decoded, before: list[Instruction], entries: Mapping[str, int]
) -> str | None:
    """The function a call goes to, where the code just before it shows it."""
    for operand in decoded.operands:
        if operand.kind is OperandClass.LABEL and operand.text in entries:
            return operand.text
    source = decoded.operands[-1].bits
    for instruction in reversed(before):
        if not instruction.writes & source:
            continue
        for operand in instruction.operands:
            symbol = symbol_of(operand.text) if operand.kind is OperandClass.EXPRESSION else None
            if symbol is not None:
                return symbol[0] if symbol[0] in entries else None
        return None
    return None


__all__ = [
    "AssemblyFunction",
    "called_function",
    "leaves",
    "link_functions",
    "names_data",
    "symbol_of",
]
