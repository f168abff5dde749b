"""Hardware registers a program reads: `s_getreg_b32`, and what counts cycles.

Where a wave runs is not modelled: the registers that say so read as 0, the first wave slot of the
first compute unit. Source: AMD instruction set architecture guides, "Hardware registers"; LLVM
"User Guide for AMDGPU Backend", "AMDGPU assembler syntax".
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import mode
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.values import I32, I64
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.registers import SPECIAL_REGISTERS, TTMP_BASE

FLAGS: Final = frozenset({OpcodeFlag.GETREG, OpcodeFlag.CLOCK})
"""Flags of the rows lowered here."""
_LOCATION = frozenset({"HW_ID", "HW_ID1", "HW_ID2", "XCC_ID"})
_CLOCKS = {"SHADER_CYCLES": 0, "SHADER_CYCLES_LO": 0, "SHADER_CYCLES_HI": 32}


def lower(emitter: WaveEmitter, decoded: Decoded) -> None:
    """Lower a read. Raises Unsupported for registers without a meaning here."""
    target = decoded.operands[0]
    first = target.bits.bit_length() - target.bits.bit_count()
    if OpcodeFlag.CLOCK in decoded.opcode.flags:
        emitter.set_scalar_bits(first, cycles(emitter))
        return
    field = mode.field_of(decoded.operands[1].text)
    builder = emitter.builder
    name = _names_by_number(emitter.input.capabilities.hwreg_numbers).get(field.name, field.name)
    value = builder.lshr(_register(emitter, name), I32(field.first))
    emitter.set_scalar_bits(first, builder.and_(value, I32(field.mask >> field.first)))


def _names_by_number(numbers: tuple[str, ...]) -> dict[str, str]:
    """Number -> name of hardware registers, for inline assembly that gives a number."""
    pairs = (item.split("=") for item in numbers)
    return {number: name for name, number in pairs}


def _register(emitter: WaveEmitter, name: str) -> Any:
    builder = emitter.builder
    if name == "MODE":
        position, _ = SPECIAL_REGISTERS["mode"]
        if position in emitter.scalars:
            return emitter.scalar(position)
        return I32(mode.word_of(emitter.machine))
    if name in _LOCATION:
        return I32(0)
    if name == "IB_STS2":
        return _flat_number(emitter)
    if name in _CLOCKS:
        return builder.trunc(builder.lshr(cycles(emitter), I64(_CLOCKS[name])), I32)
    raise Unsupported(f"a read of {name}")


def _flat_number(emitter: WaveEmitter) -> Any:
    """IB_STS2: from bit 21 the workgroup's flat number in its cluster, from bit 6 the largest (0 is
    "no cluster" to compiled code), of the numbers of TTMP6."""
    builder = emitter.builder
    if not emitter.input.capabilities.clusters:
        return I32(0)
    word = emitter.scalar(TTMP_BASE + 6)

    def field(first: int) -> Any:
        return builder.and_(builder.lshr(word, I32(first)), I32(15))

    row = builder.mul(field(8), builder.add(field(16), I32(1)))
    column = builder.mul(builder.add(row, field(4)), builder.add(field(12), I32(1)))
    flat = builder.shl(builder.add(column, field(0)), I32(21))
    return builder.or_(flat, builder.shl(field(24), I32(6)))


def cycles(emitter: WaveEmitter) -> Any:
    """The host's cycle counter (i64): it advances, and that is all that can be said of it."""
    name = "llvm.readcyclecounter"
    function = emitter.module.globals.get(name)
    if function is None:
        function = ir.Function(emitter.module, ir.FunctionType(I64, []), name)
    return emitter.builder.call(function, [])


__all__ = ["FLAGS", "cycles", "lower"]
