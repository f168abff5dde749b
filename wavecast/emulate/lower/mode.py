"""The MODE register: rounding and denormals as the program sets them, saturation as it runs.

Denormals, IEEE and DX10_CLAMP decide what code an instruction becomes, so their bits must be known
at that instruction: `entries` follows them through the program. MODE.FP16_OVFL (bit 23 on every
target) is a value, because kernels switch it around conversions to small formats. Only rounding to
nearest even is executed. Source: AMD instruction set architecture guides, "MODE register",
"S_SETREG_B32", "S_DENORM_MODE", "S_ROUND_MODE".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from wavecast.arch import capabilities
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import relative
from wavecast.emulate.lower.emitter import Emitter, WaveEmitter
from wavecast.emulate.lower.operands import constant_bits, scalar_operand
from wavecast.emulate.values import I1, I32
from wavecast.isa.instruction import Decoded, OperandClass
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import KernelDescriptor, Program
from wavecast.isa.registers import SPECIAL_REGISTERS
from wavecast.isa.semantics.machine import Denormals, FloatMode
from wavecast.isa.targets import isa_target

OVERFLOW_BIT = 23
_ROUNDING = 0x00F
_IEEE, _CLAMP = 1 << 9, 1 << 8
_STATIC = 0x3FF
"""Rounding (3:0), denormals (7:4), DX10_CLAMP (8) and IEEE (9)."""
_SILENT = 0x7FFC00
"""Debugging and exceptions, which nothing here raises (22:10)."""
_ISSUE = 0x7000000
"""Prefetching, performance counters and replay (26:24), where the target has them."""
_REGISTER_BANKS = 0xFF000
"""Upper bits of vector register numbers (19:12), where the target has them."""
_NOT_EXECUTED: Final = relative.FLAGS | {OpcodeFlag.VGPR_MSB, OpcodeFlag.VECTOR_SKIP}
"""Flags of rows that write MODE without a change of rounding or denormals: LLVM prints instructions
with the complete numbers of vector registers, `relative` keeps the index mode, `kernel` what is
skipped."""
_IMMEDIATES: Final = {OpcodeFlag.ROUND_MODE: 0, OpcodeFlag.DENORM_MODE: 4}
"""Flags of rows that write four bits of MODE -> the first one."""
_INERT = ("SCHED_MODE",)
"""Registers that steer how a wave is issued."""
_MODE_NUMBER: Final = "1"
"""MODE on every target (LLVM's SIDefines.h, ID_MODE)."""
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_HARDWARE = re.compile(r"hwreg\((?P<name>\w+)(?:,\s*(?P<first>\d+),\s*(?P<width>\d+))?\)")


@dataclass(frozen=True, slots=True)
class RegisterField:
    """Bits of a hardware register, as `hwreg(NAME, first, width)` says."""

    name: str
    first: int
    width: int

    @property
    def mask(self) -> int:
        """The bits at their position."""
        return ((1 << self.width) - 1) << self.first


def field_of(text: str) -> RegisterField:
    """The field an operand names, its register without HW_REG_ and WAVE_; a register that has a
    number only keeps it, except MODE. Inline assembly may give the whole operand as a number:
    register in bits 5:0, first bit in 10:6, width - 1 in 15:11. Raises Unsupported."""
    if _NUMBER.fullmatch(text):
        code = int(text, 16 if text[:2] in ("0x", "0X") else 10)
        if code >= 1 << 16:
            raise Unsupported(f"the operand {text!r}")
        name, first, width = str(code & 63), code >> 6 & 31, (code >> 11) + 1
        return RegisterField("MODE" if name == _MODE_NUMBER else name, first, width)
    match = _HARDWARE.fullmatch(text)
    if match is None:
        raise Unsupported(f"the operand {text!r}")
    name = match["name"].removeprefix("HW_REG_").removeprefix("WAVE_")
    if name == _MODE_NUMBER:
        name = "MODE"
    return RegisterField(name, int(match["first"] or 0), int(match["width"] or 32))


def machine_of(target: str, descriptor: KernelDescriptor) -> FloatMode:
    """Target and MODE as the kernel descriptor sets them; LLVM's defaults where it is silent.

    Raises Unsupported for a rounding other than to nearest even. Source of the defaults: LLVM "User
    Guide for AMDGPU Backend", section "AMDHSA Kernel Assembler Directives".
    """
    directives = descriptor.directives
    for name in ("float_round_mode_32", "float_round_mode_16_64"):
        if directives.get(name, 0):
            raise Unsupported(f".amdhsa_{name} {directives[name]}")
    return FloatMode(
        target=target,
        denormals_f32=Denormals.of(directives.get("float_denorm_mode_32", 0)),
        denormals_f16_f64=Denormals.of(directives.get("float_denorm_mode_16_64", 3)),
        ieee=bool(directives.get("ieee_mode", 1)),
        dx10_clamp=bool(directives.get("dx10_clamp", 1)),
        fp16_overflow=bool(directives.get("fp16_overflow", 0)),
    )


def word_of(machine: FloatMode) -> int:
    """The MODE register of a machine."""
    pairs = machine.denormals_f32, machine.denormals_f16_f64
    single, others = (int(pair.inputs) | int(pair.results) << 1 for pair in pairs)
    word = single << 4 | others << 6 | int(machine.fp16_overflow) << OVERFLOW_BIT
    if not machine.follows_2019:
        word |= machine.dx10_clamp * _CLAMP | machine.ieee * _IEEE
    return word


def _with_bits(machine: FloatMode, mask: int, bits: int) -> FloatMode:
    """The machine with the bits of MODE in `mask` replaced, those that are known ahead."""
    word = word_of(machine) & ~mask | bits & mask
    if word & _ROUNDING:
        raise Unsupported("rounding other than to nearest even")
    machine = replace(
        machine,
        denormals_f32=Denormals.of(word >> 4 & 3),
        denormals_f16_f64=Denormals.of(word >> 6 & 3),
    )
    if machine.follows_2019:
        return machine
    return replace(machine, ieee=bool(word & _IEEE), dx10_clamp=bool(word & _CLAMP))


def _mode_write(decoded: Decoded) -> tuple[int, int | None]:
    """The bits of MODE an instruction replaces, and with what; None for a computed value.

    Raises Unsupported for bits without a meaning here.
    """
    for flag, first in _IMMEDIATES.items():
        if flag in decoded.opcode.flags:
            value = decoded.operands[0].value
            assert value is not None
            return 15 << first, (value & 15) << first
    field = field_of(decoded.operands[0].text)
    source = decoded.operands[1]
    value = None
    if source.kind is OperandClass.CONSTANT:
        value = constant_bits(source, decoded.roles[1], 32) << field.first
    return field.mask, value


def _is_inert(decoded: Decoded) -> bool:
    """Whether the write goes to a register that changes no result. Raises Unsupported for those
    other than MODE that do."""
    if OpcodeFlag.SETREG not in decoded.opcode.flags:
        return False
    name = field_of(decoded.operands[0].text).name
    if name not in ("MODE", *_INERT):
        raise Unsupported(f"a write of {name}")
    return name in _INERT


def mode_after(machine: FloatMode, decoded: Decoded) -> FloatMode:
    """The machine after an instruction that writes MODE. Raises Unsupported."""
    if decoded.opcode.flags & _NOT_EXECUTED:
        return machine
    if _is_inert(decoded):
        return machine
    mask, value = _mode_write(decoded)
    able = capabilities(isa_target(machine.target))
    writable = _STATIC | _SILENT | 1 << OVERFLOW_BIT
    if able.mode_issue_bits or (value is not None and not value & mask & _ISSUE):
        writable |= _ISSUE  # zero is what a wave starts with, on targets without these bits too
    if able.vgpr_msb:
        writable &= ~_REGISTER_BANKS
    if mask & ~writable:
        raise Unsupported(f"a write of MODE bits {mask & ~writable:#x}")
    if value is None:
        if mask & _STATIC:
            raise Unsupported("a computed value of MODE")
        return machine
    return _with_bits(machine, mask & _STATIC, value)


def entries(program: Program, start: FloatMode) -> list[FloatMode]:
    """The machine at the start of every block.

    Raises Unsupported where it depends on the way a block was reached.
    """
    machines: list[FloatMode | None] = [None] * len(program.blocks)
    machines[0] = start
    for index in program.reverse_postorder:
        machine = machines[index] or start
        for instruction in program.block_instructions(index):
            if "mode" not in instruction.decoded.opcode.implicit_writes:
                continue
            try:
                machine = mode_after(machine, instruction.decoded)
            except Unsupported as error:
                raise error.at(program, instruction) from None
        for successor in program.blocks[index].successors:
            if machines[successor] is None:
                machines[successor] = machine
            elif machines[successor] != machine:
                where = program.instructions[program.blocks[successor].start]
                raise Unsupported("MODE depends on the way taken").at(program, where)
    return [machine or start for machine in machines]


def write(emitter: WaveEmitter, decoded: Decoded) -> None:
    """Lower a write of MODE. Raises Unsupported for what cannot be known ahead."""
    emitter.machine = mode_after(emitter.machine, decoded)
    if decoded.opcode.flags & _NOT_EXECUTED or _is_inert(decoded):
        return
    mask, value = _mode_write(decoded)
    builder = emitter.builder
    if value is None:
        source = scalar_operand(emitter, decoded.operands[1], decoded.roles[1], 32)
        first = (mask & -mask).bit_length() - 1
        bits: Any = builder.and_(builder.shl(source, I32(first)), I32(mask))
    else:
        bits = I32(value & mask)
    position, _ = SPECIAL_REGISTERS["mode"]
    rest = builder.and_(emitter.scalar(position), I32(~mask & 0xFFFFFFFF))
    emitter.set_scalar_bits(position, builder.or_(rest, bits))


def overflow(emitter: Emitter) -> Any:
    """MODE.FP16_OVFL now, as a condition; None where the program never changes it."""
    position, _ = SPECIAL_REGISTERS["mode"]
    if position not in emitter.scalars:
        return None
    builder = emitter.builder
    return builder.trunc(builder.lshr(emitter.scalar(position), I32(OVERFLOW_BIT)), I1)
