"""Scratch memory at constant offsets, as registers: where the compiler keeps what it spilled.

Every dword has a bit position above those of real registers, so that slices and the state of a wave
treat a spilled value like one in a register. Scratch at computed addresses is not followed.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import MemoryKind, OperandKind, Space
from wavecast.isa.program import KernelDescriptor

SLOT_BASE = 2048
"""Bit position of the first scratch dword; above every register of `wavecast.isa.registers`."""


@dataclass(frozen=True, slots=True)
class ScratchDwords:
    """A run of scratch dwords an instruction loads or stores, and the first register it pairs."""

    first: int
    count: int
    register: int
    load: bool

    @property
    def bits(self) -> int:
        return ((1 << self.count) - 1) << self.first


def scratch_slots(decoded: Decoded, descriptor: KernelDescriptor) -> ScratchDwords | None:
    """The scratch dwords of a spill or reload; None for any other instruction."""
    memory = decoded.memory
    if memory is None or memory.kind not in (MemoryKind.LOAD, MemoryKind.STORE):
        return None
    if memory.space not in (Space.SCRATCH, Space.BUFFER) or memory.bytes % 4:
        return None
    roles = dict(zip((role.kind for role in decoded.roles), decoded.operands, strict=False))
    if not _is_constant_address(roles, memory.space, descriptor):
        return None
    data = next((o for o in decoded.operands if _is_vector(o)), None)
    offset = int(decoded.modifiers.get("offset") or "0", 0)
    if data is None or offset % 4 or not 0 <= offset < max(descriptor.scratch_bytes, 1):
        return None
    register = (data.bits & -data.bits).bit_length() - 1
    load = memory.kind is MemoryKind.LOAD
    return ScratchDwords(SLOT_BASE + offset // 4, memory.bytes // 4, register, load)


def _is_vector(operand: Operand) -> bool:
    return operand.kind in (OperandClass.VGPR, OperandClass.AGPR)


def _is_constant_address(
    roles: dict[OperandKind, Operand], space: Space, descriptor: KernelDescriptor
) -> bool:
    address = roles.get(OperandKind.ADDRESS)
    if address is None or address.kind is not OperandClass.OFF:
        return False
    if space is Space.SCRATCH:
        base = roles.get(OperandKind.SCALAR_ADDRESS)
        return base is None or base.kind is OperandClass.OFF
    # gfx90a reaches scratch through the descriptor it receives in its first SGPRs, or a copy of it;
    # an access to a tensor has an offset per lane
    offset = roles.get(OperandKind.OFFSET)
    received = descriptor.directives.get("user_sgpr_private_segment_buffer", 0)
    return bool(received) and (offset is None or offset.value == 0)
