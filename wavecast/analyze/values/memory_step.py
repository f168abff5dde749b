"""Memory instructions applied to the registers of a wave: addresses seen, results made unknown.

Only the kernel argument segment, the dispatch packet and scratch at constant offsets hold values
this model knows. A load from one address by all lanes gives a value that is the same in all lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from wavecast.analyze.values.access import Sighting
from wavecast.analyze.values.domain import WaveOps, join
from wavecast.analyze.values.execute import Step, opaque
from wavecast.analyze.values.inputs import Inputs
from wavecast.analyze.values.kinds import Scattered, Value, is_known
from wavecast.analyze.values.operands import operand_reader
from wavecast.analyze.values.scratch import ScratchDwords
from wavecast.analyze.values.state import RegisterState
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import MemoryKind, OperandAccess, OperandKind, OperandRole, Space
from wavecast.isa.semantics.integers import Unknown


class Seen(Protocol):
    """Takes down the addresses of an instruction until it contains it."""

    def __contains__(self, index: object, /) -> bool: ...
    def __setitem__(self, index: int, sighting: Sighting, /) -> None: ...


_BASE = (1 << 48) - 1
"""The bits of a buffer's descriptor that hold its address."""
_BEYOND_SIGNED = 1 << 31
"""Buffer offsets from here on are how compilers switch lanes off when the buffer's size is not
known: no buffer of theirs is that large."""


def spill_step(slots: ScratchDwords) -> Step:
    """A store to, or load from, scratch at a constant offset: a move between registers."""

    def step(state: RegisterState, _index: int) -> None:
        source, target = slots.register, slots.first
        if slots.load:
            source, target = target, source
        for offset in range(slots.count):
            state.write_vector(target + offset, state.values[source + offset])

    return step


def scalar_load_step(decoded: Decoded, inputs: Inputs) -> Step:
    """A scalar load: the segment's contents where the address is in it, else unknown."""
    targets = bits_of(_bits_of_role(decoded, OperandAccess.WRITE))
    operands = decoded.operands
    if len(operands) < 2 or operands[1].count != 2 or decoded.memory is None:
        return opaque(decoded)
    readers = [operand_reader(operands[1], decoded.roles[1], inputs.lanes)]
    offsets = [
        (operand_reader(o, _OFFSET_ROLE, inputs.lanes), offset_scale(decoded) if o.bits else 1)
        for o in operands[2:]
    ]
    constant = constant_offset(decoded)
    dwords = max(1, decoded.memory.bytes // 4)
    unknown = opaque(decoded)

    def step(state: RegisterState, index: int) -> None:
        base = readers[0](state) if readers[0] is not None else None
        address: Value = base
        for read, scale in offsets:
            if read is not None and address is not None:
                address = state.ops.add(address, state.ops.mul(read(state), scale, 64), 64)
        values = inputs.load(address + constant, dwords) if isinstance(address, int) else None
        if values is None or len(values) != len(targets):
            unknown(state, index)
            return
        for position, value in zip(targets, values, strict=True):
            state.values[position] = value

    return step


_OFFSET_ROLE = OperandRole(OperandKind.OFFSET, OperandAccess.READ, "u32", 1)


def vector_step(decoded: Decoded, lanes: int, sightings: Seen) -> Step:
    """A vector, LDS or flat access: notes its address the first time, then forgets its results."""
    memory = decoded.memory
    assert memory is not None
    address = _address(decoded, lanes)
    unknown = opaque(decoded)
    vectors = bits_of(_bits_of_role(decoded, OperandAccess.WRITE))
    uniform = memory.kind is MemoryKind.LOAD

    def step(state: RegisterState, index: int) -> None:
        where = address(state) if address is not None else None
        if where is not None and index not in sightings and state.ops.exec_mask != 0:
            mask = state.ops.exec_mask
            lanes = mask if isinstance(mask, int) else None
            sightings[index] = Sighting(where.offset, lanes, where.reach, where.base(state))
        if uniform and where is not None and isinstance(where.offset, (int, Unknown)):
            for position in vectors:
                state.write_vector(position, Unknown(0, index))
        else:
            unknown(state, index)

    return step


def _no_base(_state: RegisterState) -> Value:
    return 0


class Where(NamedTuple):
    """The address of every lane in bytes, beyond the `base` of a buffer; `reach` is the first
    offset beyond the buffer where one is known."""

    offset: Value
    reach: int | None = None
    base: Callable[[RegisterState], Value] = _no_base


Address = Callable[[RegisterState], Where]


def _bits_of_role(decoded: Decoded, access: OperandAccess) -> int:
    bits = 0
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is access:
            bits |= operand.bits
    return bits & decoded.writes


def constant_offset(decoded: Decoded) -> int:
    """The constant offset in bytes. Pairs (`offset0`, `offset1`) shift every lane alike, which
    changes neither pattern nor conflicts; their first place counts as offset 0."""
    text = decoded.modifiers.get("offset") or "0"
    try:
        return int(text, 0)
    except ValueError:
        return 0


def offset_scale(decoded: Decoded) -> int:
    """Bytes of a unit of the offset that a register holds (gfx1250: `scale_offset`)."""
    assert decoded.memory is not None
    return decoded.memory.bytes if "scale_offset" in decoded.modifiers else 1


def _address(decoded: Decoded, lanes: int) -> Address | None:
    memory = decoded.memory
    assert memory is not None
    by_kind: dict[OperandKind, Operand] = {}
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        by_kind.setdefault(role.kind, operand)
    vector = by_kind.get(OperandKind.ADDRESS)
    if vector is None or memory.space in (Space.SCRATCH, Space.SCALAR):
        return None
    if memory.space is Space.BUFFER:
        return _buffer_address(decoded, by_kind, lanes)
    if memory.space is Space.LDS or memory.kind is MemoryKind.PERMUTE:
        return _lds_address(vector, constant_offset(decoded), lanes)
    return _global_address(vector, by_kind.get(OperandKind.SCALAR_ADDRESS), decoded, lanes)


def _wide(dwords: int) -> OperandRole:
    return OperandRole(
        OperandKind.SOURCE, OperandAccess.READ, "u32" if dwords == 1 else "u64", dwords
    )


def _lds_address(vector: Operand, offset: int, lanes: int) -> Address | None:
    read = operand_reader(vector, _wide(1), lanes)
    if read is None:
        return None
    return lambda state: Where(_plus(state.ops, read(state), offset, 32))


def _global_address(
    vector: Operand, scalar: Operand | None, decoded: Decoded, lanes: int
) -> Address | None:
    offset, scale = constant_offset(decoded), offset_scale(decoded)
    if scalar is not None and scalar.kind in (OperandClass.SGPR, OperandClass.SPECIAL):
        base = operand_reader(scalar, _wide(2), lanes)
        index = operand_reader(vector, _wide(1), lanes)
        if base is None or (index is None and vector.kind is not OperandClass.OFF):
            return None

        def with_base(state: RegisterState) -> Where:
            ops = state.ops
            scaled = ops.mul(index(state), scale, 32) if index is not None else 0
            lane = ops.zero_extend(scaled, 32, 64)
            return Where(_plus(ops, ops.add(base(state), lane, 64), offset, 64))

        return with_base
    read = operand_reader(vector, _wide(2), lanes)
    if read is None:
        return None
    return lambda state: Where(_plus(state.ops, read(state), offset, 64))


def _buffer_address(
    decoded: Decoded, by_kind: dict[OperandKind, Operand], lanes: int
) -> Address | None:
    """Byte offsets within the buffer; lanes beyond its end are switched off."""
    vector, resource = by_kind[OperandKind.ADDRESS], by_kind.get(OperandKind.RESOURCE)
    scalar = by_kind.get(OperandKind.OFFSET)
    if "idxen" in decoded.modifiers or resource is None:
        return None
    lane = operand_reader(vector, _wide(1), lanes)
    shared = operand_reader(scalar, _OFFSET_ROLE, lanes) if scalar is not None else None
    if lane is None and vector.kind is not OperandClass.OFF:
        return None
    first = (resource.bits & -resource.bits).bit_length() - 1
    records = first + 2
    offset = constant_offset(decoded)

    def base(state: RegisterState) -> Value:
        whole = join(state.values[first], state.values[first + 1])
        return state.ops.and_(whole, _BASE, 64)

    def read(state: RegisterState) -> Where:
        ops = state.ops
        where: Value = lane(state) if lane is not None else 0
        size = state.values[records]
        reach = min(size, _BEYOND_SIGNED) if isinstance(size, int) and size else _BEYOND_SIGNED
        where = _plus(ops, where, offset, 32)
        if shared is not None:
            scalar_offset = shared(state)
            if is_known(scalar_offset) or isinstance(where, (int, Unknown)):
                where = ops.add(where, scalar_offset, 32)
        return Where(where, reach, base)

    return read


def _plus(ops: WaveOps, value: Value, constant: int, bits: int) -> Value:
    if not constant or isinstance(value, Scattered):
        return value
    if constant < 0 and isinstance(value, np.ndarray):
        return ops.sub(value, -constant, bits)
    return ops.add(value, constant & ((1 << bits) - 1), bits)
