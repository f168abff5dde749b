"""The MODE register: what a kernel starts with, and the one bit of it programs change as they run.

Rounding and denormals are fixed when code is translated; MODE.FP16_OVFL (bit 23 on every target) is
a value, because kernels switch it on around conversions to small formats.
Source: AMD instruction set architecture guides, "MODE register" and "S_SETREG_B32".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.values import I1, I32
from wavecast.isa.instruction import Decoded
from wavecast.isa.program import Kernel
from wavecast.isa.registers import SPECIAL_REGISTERS
from wavecast.isa.semantics.machine import Denormals, Machine

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering

OVERFLOW_BIT = 23
_FIELD = re.compile(r"hwreg\(HW_REG_(?:WAVE_)?MODE(?:,\s*(\d+),\s*(\d+))?\)")


def machine_of(kernel: Kernel) -> Machine:
    """Target and MODE as the kernel descriptor sets them; defaults where it is silent."""
    given = kernel.descriptor.directives
    return Machine(
        target=kernel.program.target,
        denormals_f32=Denormals.of(given.get("float_denorm_mode_32", 3)),
        denormals_f16_f64=Denormals.of(given.get("float_denorm_mode_16_64", 3)),
        ieee=bool(given.get("ieee_mode", 1)),
        dx10_clamp=bool(given.get("dx10_clamp", 1)),
        fp16_overflow=bool(given.get("fp16_overflow", 0)),
    )


def write(lowering: KernelLowering, decoded: Decoded) -> None:
    """Lower a write of hardware registers. Raises Unsupported for all but MODE.FP16_OVFL."""
    field, value = decoded.operands
    match = _FIELD.fullmatch(field.text)
    if match is None or match[1] is None or (int(match[1]), int(match[2])) != (OVERFLOW_BIT, 1):
        raise Unsupported(f"a write of {field.text}")
    builder = lowering.builder
    bit = builder.and_(scalar_operand(lowering, value, decoded.roles[1], 32), I32(1))
    position, _ = SPECIAL_REGISTERS["mode"]
    rest = builder.and_(lowering.scalar(position), I32(~(1 << OVERFLOW_BIT) & 0xFFFFFFFF))
    lowering.set_scalar_bits(position, builder.or_(rest, builder.shl(bit, I32(OVERFLOW_BIT))))


def overflow(lowering: KernelLowering) -> Any:
    """MODE.FP16_OVFL now, as a condition; None where the program never changes it."""
    position, _ = SPECIAL_REGISTERS["mode"]
    if position not in lowering.scalars:
        return None
    builder = lowering.builder
    return builder.trunc(builder.lshr(lowering.scalar(position), I32(OVERFLOW_BIT)), I1)
