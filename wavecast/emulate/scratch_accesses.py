"""Which instructions access the scratch of their lanes: private arrays and spilled registers."""

from __future__ import annotations

from typing import Final

from wavecast.arch import capabilities
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Kernel
from wavecast.isa.targets import isa_target

MOST_LOADED: Final = 16
"""Bytes of the largest load from scratch."""


def may_access_scratch(kernel: Kernel, decoded: Decoded) -> bool:
    """Whether an instruction accesses scratch, or may: by a buffer descriptor, on targets that have
    no instructions for scratch."""
    memory = decoded.memory
    if memory is None:
        return False
    if memory.space is Space.BUFFER:
        architected = capabilities(isa_target(kernel.program.target)).architected_scratch
        return kernel.descriptor.scratch_bytes > 0 and not architected
    return memory.space is Space.SCRATCH


def may_load_scratch(kernel: Kernel, decoded: Decoded) -> bool:
    """Whether an instruction loads from scratch into registers, or may."""
    memory = decoded.memory
    return (
        memory is not None
        and memory.kind is MemoryKind.LOAD
        and memory.bytes <= MOST_LOADED
        and may_access_scratch(kernel, decoded)
    )


__all__ = ["MOST_LOADED", "may_access_scratch", "may_load_scratch"]
