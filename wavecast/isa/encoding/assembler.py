"""A function as machine code: instructions one behind the other, branches with their distances."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

from wavecast.isa.decode import wave_lanes_of
from wavecast.isa.encoding.encoder import EncodeError, machine_encoder
from wavecast.isa.instruction import Decoded, OperandClass
from wavecast.isa.opcode import Control
from wavecast.isa.program import Program
from wavecast.isa.symbols import evaluate

_LABEL: Final = re.compile(r"\.?[A-Za-z_$][\w$.]*")
_JUMPS: Final = (Control.BRANCH, Control.CONDITIONAL)


def machine_code(program: Program, wave_lanes: int | None = None) -> bytes:
    """The bytes of a function without alignment between its blocks.

    Raises EncodeError for an instruction without an encoding, for a branch that is too far, and for
    a symbol that only a linker knows.
    """
    encoder = machine_encoder(program.target, wave_lanes or wave_lanes_of(program.target))
    sizes = []
    for instruction in program.instructions:
        decoded = instruction.decoded
        sizes.append(encoder.machine_code(decoded, dict.fromkeys(_symbolic(decoded), "0")).words)
    starts = [0, *accumulate(sizes)]
    labels = {block.label: 4 * starts[block.start] for block in program.blocks if block.label}
    targets = _targets(program)
    code = bytearray()
    for instruction, end in zip(program.instructions, starts[1:], strict=True):
        decoded = instruction.decoded
        texts: dict[int, str] = {}
        for position in _symbolic(decoded):
            if decoded.opcode.control in _JUMPS:
                distance = starts[targets[instruction.index]] - end
                if not -0x8000 <= distance < 0x8000:
                    raise EncodeError(f"{decoded.text!r} goes {distance} words far")
                texts[position] = str(distance & 0xFFFF)
            else:
                texts[position] = _value(decoded, position, labels)
        code += encoder.machine_code(decoded, texts).content
    return bytes(code)


def _symbolic(decoded: Decoded) -> list[int]:
    """The positions of operands that name addresses of the code."""
    return [
        position
        for position, operand in enumerate(decoded.operands)
        if operand.kind is OperandClass.LABEL
        or (operand.kind is OperandClass.EXPRESSION and "-." in operand.text)
        or (operand.kind is OperandClass.EXPRESSION and "@" in operand.text)
    ]


def _targets(program: Program) -> dict[int, int]:
    """Branch -> the instruction it goes to; behind the last one is the function's end."""
    targets = {}
    for block in program.blocks:
        last = program.instructions[block.stop - 1]
        if last.opcode.control in _JUMPS:
            following = block.successors
            goes = following[-1] if following else None
            targets[last.index] = (
                program.blocks[goes].start if goes is not None else len(program.instructions)
            )
    return targets


def _value(decoded: Decoded, position: int, labels: Mapping[str, int]) -> str:
    """The value of an expression of labels."""
    text = _LABEL.sub(
        lambda name: str(labels[name[0]]) if name[0] in labels else name[0],
        decoded.operands[position].text,
    )
    value = evaluate(text, "")
    if value is None:
        raise EncodeError(f"{decoded.text!r} has a symbol that only a linker knows")
    return f"{value & 0xFFFFFFFF:#x}"
