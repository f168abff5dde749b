"""Shapes of Blackwell's tcgen05 matrix instructions.

SASS names only the uniform register that holds the instruction descriptor, so constants are
propagated through the uniform registers of the program. Layout of the descriptor: PTX ISA,
"Instruction descriptor" of the tcgen05 family: bits 7-9 and 10-12 are the formats of A and B,
17-22 N / 8, 24-28 M / 16, bit 2 sparsity. K follows from the opcode and the format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MatrixShape
from wavecast.isa.program import Program

Constants = dict[int, int]
"""Uniform register -> its value, where that is one constant."""

_DESCRIPTOR = re.compile(r"idesc\[UR(\d+)\]")
_WRITE = re.compile(
    r"^(?P<predicate>@\S+\s+)?(?P<opcode>\w+)(?P<width>[.\w]*)\s+"
    r"UR(?P<register>\d+)\b(?P<rest>.*)"
)
_CONSTANT = re.compile(r"^,\s*(0x[0-9a-f]+)$")
_FORMATS = {
    "UTCHMMA": {0: ("fp16", 16), 1: ("bf16", 16), 2: ("tf32", 8)},
    "UTCIMMA": {0: ("int8", 32), 1: ("int8", 32)},
    "UTCQMMA": {0: ("fp8", 32), 1: ("fp8", 32), 3: ("fp6", 32), 4: ("fp6", 32), 5: ("fp4", 32)},
    "UTCOMMA": {1: ("fp4", 64)},
}
_FORMATS["UTCMXQMMA"] = _FORMATS["UTCQMMA"]
"""Opcode -> descriptor's format of A -> element type and K of one instruction."""


def shapes(program: Program) -> dict[int, MatrixShape]:
    """Instruction index -> shape, for the tcgen05 instructions whose descriptor is a constant."""
    if not any(i.opcode.cost_class == "tcgen05" for i in program.instructions):
        return {}
    by_index: dict[int, MatrixShape] = {}
    blocks = [program.block_instructions(number) for number in range(len(program.blocks))]
    entry = _at_entry(program, blocks)
    for number, entry_constants in entry.items():
        constants = dict(entry_constants)
        for instruction in blocks[number]:
            if instruction.opcode.cost_class == "tcgen05":
                shape = _shape(instruction, constants)
                if shape is not None:
                    by_index[instruction.index] = shape
            _apply(instruction, constants)
    return by_index


def _at_entry(program: Program, blocks: Sequence[Sequence[Instruction]]) -> dict[int, Constants]:
    """Constants at the start of every reachable block: those all its predecessors agree on."""
    entry: dict[int, Constants] = {0: {}}
    leaving: dict[int, Constants] = {}
    changed = True
    while changed:
        changed = False
        for number in program.reverse_postorder:
            block = program.blocks[number]
            incoming = [leaving[p] for p in block.predecessors if p in leaving]
            common = dict(incoming[0].items()) if incoming and number != 0 else {}
            for other in incoming[1:]:
                common = {r: v for r, v in common.items() if other.get(r) == v}
            entry[number] = common
            after = dict(common)
            for instruction in blocks[number]:
                _apply(instruction, after)
            if leaving.get(number) != after:
                leaving[number] = after
                changed = True
    return entry


def _apply(instruction: Instruction, constants: Constants) -> None:
    """What an instruction leaves of the known constants."""
    match = _WRITE.match(instruction.decoded.text)
    if match is None:
        return
    register = int(match["register"])
    modifiers = match["width"].split(".")
    count = 4 if "128" in modifiers else 2 if {"64", "WIDE"} & set(modifiers) else 1
    for written in range(register, register + count):
        constants.pop(written, None)
    value = _CONSTANT.match(match["rest"])
    if match["opcode"] == "UMOV" and value is not None and not match["predicate"]:
        constants[register] = int(value[1], 16)


def _shape(instruction: Instruction, constants: Constants) -> MatrixShape | None:
    register = _DESCRIPTOR.search(instruction.decoded.text)
    value = constants.get(int(register[1])) if register is not None else None
    if value is None:
        return None
    formats = _FORMATS[instruction.opcode.name]
    first, second = formats.get(value >> 7 & 7), formats.get(value >> 10 & 7)
    if first is None or second is None:
        return None
    n, m = (value >> 17 & 0x3F) * 8, (value >> 24 & 0x1F) * 16
    return MatrixShape(m, n, first[1], 1, first[0], second[0], "", sparse=bool(value >> 2 & 1))
