"""The stores that a byte of a vector register reaches.

8-bit floats are converted in pairs, packed, permuted and shifted, and a masked store of a tensor
often stores each byte of a register for itself. Bytes are followed through instructions whose
integer semantics tell where a byte goes: with random values for the other operands, it goes to the
bytes of the result that change with it.
"""

from __future__ import annotations

import random
from typing import Final

from wavecast.emulate.check.numbers.operands import first_source
from wavecast.emulate.check.numbers.uses import NumberUses, stores_data
from wavecast.emulate.lower.packed import entries
from wavecast.isa import semantics
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, OperandClass
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.semantics.integers import IntegerOps

_SMALL = ("fp8", "bf8")
_BITS: Final = frozenset({"b32", "u32", "i32"})
_SAMPLES: Final = 8


def byte_stores(uses: NumberUses, index: int, byte: int) -> frozenset[int] | None:
    """The stores that a byte of the 32-bit result of an instruction reaches; None where something
    else uses it. Compilers leave bytes of a pair undefined that nothing stores."""
    stores, work = set[int](), [(index, byte)]
    nodes = set(work)
    while work:
        at, number = work.pop()
        (bit,) = bits_of(uses.program.instructions[at].decoded.operands[0].bits)[:1]
        for user in uses.defuse.uses(at):
            if at not in uses.defuse.definitions(user, bit):
                continue
            decoded = uses.program.instructions[user].decoded
            memory = decoded.memory
            if (
                memory is not None
                and memory.kind is MemoryKind.STORE
                and stores_data(decoded, 1 << bit)
            ):
                first = 2 if decoded.opcode.memory_form.high else 0
                if memory.bytes >= 4 or first <= number < first + memory.bytes:
                    stores.add(user)
                continue
            reached = _result_bytes(uses, user, bit, number)
            if reached is None:
                return None
            following = {(user, there) for there in reached} - nodes
            nodes |= following
            work += following
    return frozenset(stores)


def _result_bytes(uses: NumberUses, index: int, bit: int, byte: int) -> set[int] | None:
    """The bytes of the result of an instruction that a byte of a register goes to; None where its
    result is not a vector register of bits."""
    decoded = uses.program.instructions[index].decoded
    if _keeps_half(decoded, bit):
        upper = entries(decoded, "op_sel")[-1:] == [1]
        return {byte} if (byte >= 2) != upper else set()
    meaning = semantics.of(decoded.opcode)
    plain = decoded.second is None and not decoded.modifiers and decoded.memory is None
    if meaning is None or meaning.modifiers or not plain or not _computes_bits(decoded):
        return None
    sources = decoded.operands[1:]
    constants = [uses.constant(index, source) for source in sources]
    numbers, reached = random.Random(0), set[int]()
    for _ in range(_SAMPLES):
        values = [numbers.getrandbits(32) if value is None else value for value in constants]
        shared = numbers.getrandbits(32)
        results = []
        for value in (shared, shared ^ 0xFF << 8 * byte):
            for position, source in enumerate(sources):
                if source.bits == 1 << bit:
                    values[position] = value
            results.append(meaning.evaluate(IntegerOps(), *values)[0])
        if None in results:
            return None
        change = results[0] ^ results[1]
        reached |= {number for number in range(4) if change >> 8 * number & 0xFF}
    return reached


def _computes_bits(decoded: Decoded) -> bool:
    """Whether an instruction makes one vector register of operands of 32 bits."""
    whole = all(
        role.type in _BITS and not operand.half and operand.bits.bit_count() <= 1
        for role, operand in zip(decoded.roles, decoded.operands, strict=True)
    )
    in_lanes = "sdwa" not in decoded.encoding and "dpp" not in decoded.encoding
    return whole and in_lanes and decoded.operands[0].kind is OperandClass.VGPR


def _keeps_half(decoded: Decoded, bit: int) -> bool:
    """Whether an instruction replaces one half of a register, and does not read it otherwise."""
    if not decoded.roles or decoded.roles[0].type.partition("x")[0] not in _SMALL:
        return False
    sources = decoded.operands[first_source(decoded) :]
    return decoded.operands[0].bits == 1 << bit and not any(o.bits >> bit & 1 for o in sources)


__all__ = ["byte_stores"]
