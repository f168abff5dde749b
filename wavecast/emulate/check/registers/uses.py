"""Where an undefined register does harm: addresses, stored data, conditions.

Copies and arithmetic on undefined registers are not errors: compilers leave lanes and registers
undefined whose results nobody looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from wavecast.emulate.check.dataflow.flows import VECTORS, halves, scalars
from wavecast.emulate.check.dataflow.influence import Reach, UndefinedSource
from wavecast.emulate.lower.sites import shape_letters
from wavecast.isa.instruction import Decoded, Operand
from wavecast.isa.opcode import Control, MemoryKind, OperandAccess, OperandKind, OperandRole, Space
from wavecast.isa.registers import EXEC, M0


class Purpose(Enum):
    """What a register is used for."""

    ADDRESS = "address"
    DATA = "data"
    CONDITION = "condition"


@dataclass(frozen=True, slots=True)
class Use:
    """Cells one instruction uses in the lanes of EXEC. Scratch keeps undefined registers that are
    spilled: `unless_scratch` data is not a use where the access turns out to go there."""

    purpose: Purpose
    sources: tuple[UndefinedSource, ...]
    unless_scratch: bool = False

    def only(self, predicate: Callable[[UndefinedSource], bool]) -> Use | None:
        """The use of those sources, None without any."""
        sources = tuple(source for source in self.sources if predicate(source))
        return replace(self, sources=sources) if sources else None


_ADDRESSES = (
    OperandKind.ADDRESS, OperandKind.SCALAR_ADDRESS, OperandKind.RESOURCE, OperandKind.OFFSET,
)  # fmt: skip
_STORES = (MemoryKind.STORE, MemoryKind.ATOMIC)


def uses(decoded: Decoded) -> tuple[Use, ...]:
    """The uses of an instruction."""
    if decoded.opcode.control is Control.CONDITIONAL:
        condition = tuple(_sources(decoded.reads & ~EXEC))
        return (Use(Purpose.CONDITION, condition),) if condition else ()
    if decoded.opcode.control in (Control.INDIRECT, Control.CALL):
        target = tuple(_sources(decoded.reads & ~EXEC))
        return (Use(Purpose.ADDRESS, target),) if target else ()
    memory = decoded.memory
    if memory is None or memory.kind is MemoryKind.PERMUTE:
        return ()
    addresses = list(_sources(decoded.reads & M0))
    data: list[UndefinedSource] = []
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        scalar = memory.space is Space.SCALAR
        if role.kind in _ADDRESSES or (scalar and operand is not decoded.operands[0]):
            addresses += _sources(operand.bits)
        elif memory.kind in _STORES and role.access is not OperandAccess.WRITE:
            data += _data(decoded, operand, role)
    candidates = [Use(Purpose.ADDRESS, tuple(addresses))]
    if data and memory.space is not Space.SCRATCH:
        candidates.append(Use(Purpose.DATA, tuple(data), memory.space is Space.BUFFER))
    return tuple(use for use in candidates if use.sources)


def _sources(bits: int) -> Iterable[UndefinedSource]:
    yield from (UndefinedSource(cell, Reach.OWN) for cell in halves(bits))
    yield from (UndefinedSource(cell, Reach.UNIFORM) for cell in scalars(bits & ~VECTORS & ~EXEC))


def _data(decoded: Decoded, operand: Operand, role: OperandRole) -> Iterable[UndefinedSource]:
    """What of a data operand goes to memory."""
    memory = decoded.memory
    assert memory is not None
    if role.kind is OperandKind.VECTOR and memory.bytes < 4:
        upper = "h" in shape_letters(decoded)
        return [s for s in _sources(operand.bits) if bool(s.cell & 1) == upper]
    return _sources(operand.bits)


__all__ = ["Purpose", "Use", "uses"]
