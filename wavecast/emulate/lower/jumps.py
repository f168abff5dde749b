"""Addresses of code: the program counter, calls, returns, and symbols relative to it.

Instruction i of a program has the address `CODE + SIZE * i`, whatever its encoding: no access can
reach it, and only differences to symbols (`name@rel32@lo+4`) and jumps to functions and behind
calls mean something. A computed jump to anything else breaks the launch off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.values import I64, context_word
from wavecast.isa.instruction import Instruction, Operand, OperandClass
from wavecast.isa.linking import symbol_of
from wavecast.isa.opcode import Control, OpcodeFlag
from wavecast.isa.program import Block

CODE = 1 << 46
"""Address of the first instruction; positive as a number of 48 bits."""
SIZE = 8
_LITERAL = 4
"""Bytes of a literal, and of the first word of a scalar instruction before it."""
_DIFFERENCE = re.compile(r"\(?(?P<label>[\w.$]+)-[\w.$]+\)?(?:(?P<part>&|>>)(?:4294967295|32))?")
"""What far branches add: `(.LBB0_3-.Lpost_getpc0)&4294967295`."""
_PARTS = {
    "rel32@lo": (False, "low"),
    "rel32@hi": (False, "high"),
    "rel64": (False, "whole"),
    "gotpcrel32@lo": (True, "low"),
    "gotpcrel32@hi": (True, "high"),
    "gotpcrel": (True, "whole"),
}
"""Relocation -> whether it is of the word that holds the symbol's address, and which half it is."""


def address_of(index: int) -> int:
    """The address of an instruction."""
    return CODE + SIZE * index


def read_counter(emitter: WaveEmitter, instruction: Instruction) -> None:
    """The address of the following instruction."""
    value = I64(address_of(instruction.index + 1))
    emitter.set_scalar_bits(_first(instruction.operands[0]), value)


def symbol_value(emitter: WaveEmitter, index: int, text: str, bits: int) -> Any:
    """What an expression of instruction `index` adds to the program counter read last before it:
    a distance in bytes or a half of it, as an integer of `bits`.

    Raises Unsupported for symbols that are neither functions nor data of the program.
    """
    instructions = emitter.input.program.instructions
    for before in range(index - 1, -1, -1):
        if OpcodeFlag.GETPC in instructions[before].opcode.flags:
            break
    else:
        raise Unsupported(f"{text!r} without a program counter to add it to")
    address, part = _address(emitter, text, _bytes(instructions[before + 1 : index]) + _LITERAL)
    builder = emitter.builder
    distance = builder.sub(address, I64(address_of(before + 1)))
    if part == "whole":
        return distance if bits == 64 else builder.trunc(distance, ir.IntType(bits))
    half = builder.and_(builder.lshr(distance, I64(32 if part == "high" else 0)), I64(0xFFFFFFFF))
    return half if bits == 64 else builder.trunc(half, ir.IntType(bits))


def _bytes(instructions: Sequence[Instruction]) -> int:
    """The encoded size of scalar instructions. Raises Unsupported for others."""
    total = 0
    for instruction in instructions:
        form, operands = instruction.opcode.form, instruction.operands
        if form not in ("SOP1", "SOP2", "SOPP"):
            raise Unsupported(f"{instruction.mnemonic} between the program counter and its use")
        literal = form != "SOPP" and any(
            operand.kind is OperandClass.EXPRESSION
            or (operand.kind is OperandClass.CONSTANT and not -16 <= (operand.value or 0) <= 64)
            for operand in operands
        )
        total += 4 + (_LITERAL if literal else 0)
    return total


def _address(emitter: WaveEmitter, text: str, ahead: int) -> tuple[Any, str]:
    """The address an expression points to, and the part of the distance it takes. A label alone is
    the distance from its literal, as hand-written code uses it: `s_add_i32 s2, label, 4`.

    `ahead`: the bytes from the program counter to the literal with the distance, which relocations
    count from and expressions therefore add.
    """
    program = emitter.input.program
    jump = _DIFFERENCE.fullmatch(text)
    if jump is not None:
        labelled = [b.start for b in program.blocks if b.label == jump["label"]]
        if labelled:
            part = {"&": "low", ">>": "high"}.get(jump["part"] or "", "whole")
            return I64(address_of(labelled[0])), part
    name, relocation, addend = symbol_of(text) or (text, "rel32@lo", 0)
    indirect, part = _PARTS[relocation]
    beyond = addend - ahead
    starts = {block.label: block.start for block in program.blocks} | dict(program.entries)
    if name in starts and not indirect:
        return I64(address_of(starts[name]) + beyond), part
    offsets = (
        {} if program.data is None else program.data.words if indirect else program.data.symbols
    )
    if name not in offsets or (indirect and beyond):
        raise Unsupported(f"the symbol {name!r}, which is not in the code object")
    builder = emitter.builder
    base = context_word(builder, emitter.context, state.DATA_BASE)
    return builder.add(base, I64(offsets[name] + beyond)), part


def lower(emitter: WaveEmitter, instruction: Instruction, block: Block) -> None:
    """A call, or a jump to an address in registers."""
    builder, decoded = emitter.builder, instruction.decoded
    calls = decoded.opcode.control is Control.CALL
    target = decoded.operands[-1]
    if target.kind is OperandClass.LABEL:
        where = None
    else:
        where = scalar_operand(emitter, target, decoded.roles[-1], 64)
    if calls:
        back = I64(address_of(instruction.index + 1))
        emitter.set_scalar_bits(_first(decoded.operands[0]), back)
    if where is None:
        builder.branch(emitter.blocks[block.successors[0]])
        return
    _jump(emitter, instruction, block, where)


def _jump(emitter: WaveEmitter, instruction: Instruction, block: Block, where: Any) -> None:
    """Go to the block at an address, if it is one this may lead to."""
    builder = emitter.builder
    nowhere = emitter.function.append_basic_block("nowhere")
    choice = builder.switch(where, nowhere)
    for successor in block.successors:
        start = emitter.input.program.blocks[successor].start
        choice.add_case(I64(address_of(start)), emitter.blocks[successor])
    builder.position_at_end(nowhere)
    emitter.stop(state.BAD_JUMP, instruction.index)


def _first(operand: Operand) -> int:
    """The position of an operand's first register."""
    return operand.bits.bit_length() - operand.bits.bit_count()


__all__ = ["address_of", "lower", "read_counter", "symbol_value"]
