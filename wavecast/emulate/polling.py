"""What a wave in a loop polls: the load or atomic operation of the loop, and its address.

Addresses are made from the registers the wave has where it paused. A register that the loop itself
computes may have its value of the pass before, which is that of a loop that polls one address.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.analyze.values.memory_step import constant_offset
from wavecast.emulate.lower import state
from wavecast.emulate.lower.state import WaveLayout
from wavecast.isa.instruction import Decoded, Instruction, Operand
from wavecast.isa.opcode import MemoryKind, OperandKind, Space
from wavecast.isa.program import Program
from wavecast.isa.registers import SGPR_BASE, special

_GLOBAL: Final = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_READS: Final = frozenset({MemoryKind.ATOMIC, MemoryKind.LOAD})
_BASE: Final = (1 << 48) - 1
"""The bits of a buffer's descriptor that hold its address."""
_ADDRESSES: Final = frozenset(
    {
        OperandKind.ADDRESS,
        OperandKind.SCALAR_ADDRESS,
        OperandKind.RESOURCE,
        OperandKind.OFFSET,
    }
)


@dataclass(frozen=True, slots=True)
class Poll:
    """An access that a loop repeats, and the address of its first active lane."""

    instruction: Instruction
    address: int


def polls(program: Program, wave: np.ndarray, layout: WaveLayout, index: int) -> list[Poll]:
    """The global loads and atomic operations of the innermost loop around instruction `index` that
    has any. `wave` is the memory of the wave (uint32)."""
    block = bisect_right([block.start for block in program.blocks], index) - 1
    number = program.innermost_loop[block] if block >= 0 else None
    while number is not None:
        loop = program.loops[number]
        loop_polls = [
            Poll(instruction, _address(instruction.decoded, wave, layout))
            for member in sorted(loop.blocks)
            for instruction in program.block_instructions(member)
            if instruction.memory is not None
            and instruction.memory.space in _GLOBAL
            and instruction.memory.kind in _READS
        ]
        if loop_polls:
            return loop_polls
        number = loop.parent
    return []


def _address(decoded: Decoded, wave: np.ndarray, layout: WaveLayout) -> int:
    lane = _first_lane(wave)
    total = constant_offset(decoded)
    for position, (operand, role) in enumerate(zip(decoded.operands, decoded.roles, strict=True)):
        base = decoded.opcode.form == "SMEM" and position == 1
        if not operand.bits or not (role.kind in _ADDRESSES or base):
            continue
        value = _value(operand, wave, layout, lane)
        total += value & _BASE if role.kind is OperandKind.RESOURCE else value
    return total % (1 << 64)


def _first_lane(wave: np.ndarray) -> int:
    mask = special("exec")
    word = state.scalar_word((mask & -mask).bit_length() - 1)
    active = int(wave[word]) | int(wave[word + 1]) << 32
    return (active & -active).bit_length() - 1 if active else 0


def _value(operand: Operand, wave: np.ndarray, layout: WaveLayout, lane: int) -> int:
    """The register, or the first two of several as 64 bits."""
    first = (operand.bits & -operand.bits).bit_length() - 1
    value = 0
    for number in range(min(2, operand.bits.bit_count())):
        position = first + number
        if position >= SGPR_BASE:
            word = state.scalar_word(position)
        else:
            word = state.VECTORS + layout.row(position) * layout.lanes + lane
        value |= int(wave[word]) << 32 * number
    return value


__all__ = ["Poll", "polls"]
