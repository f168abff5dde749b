"""Addresses whose alignment the hardware requires and does not check.

Scalar loads and stores of whole dwords ignore the low two bits of their address and access other
bytes. Vector memory and LDS take any address (LLVM AMDGPUUsage, unaligned-access-mode, which the
ROCm runtime sets), and atomic operations fault, with or without checks (`lower/atomics.py`).

Source: AMD instruction set architecture guides (CDNA3, RDNA3, RDNA4), "Scalar memory", address
calculation.
"""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check import log
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I64
from wavecast.isa.instruction import Instruction


class AlignmentChecks(Observer):
    """Reports scalar accesses whose address is not that of a dword."""

    def scalar_address(self, emitter: WaveEmitter, instruction: Instruction, address: Any) -> None:
        builder = emitter.builder
        low = builder.and_(address, I64(3))
        with builder.if_then(builder.icmp_unsigned("!=", low, I64(0)), likely=False):
            log.emit(emitter, Kind.MISALIGNED, instruction.index, lanes=I64(1), address=address)


__all__ = ["AlignmentChecks"]
