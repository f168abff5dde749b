"""Which memory each access may touch: that of the pointers its address is made from.

An address beyond the end of one tensor may lie in another one, where plain execution accepts it.
Addresses are traced to kernel arguments in the code (`analyze.values.roots`); an access whose
address comes from memory, or cannot be traced, may touch everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavecast.analyze.values.pointers import Pointers
from wavecast.analyze.values.roots import roots
from wavecast.analyze.values.slices import slices
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Kernel

_STORING = frozenset({MemoryKind.STORE, MemoryKind.ATOMIC, MemoryKind.STORE_FROM_LDS})
_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_EVERYTHING = (1 << 64) - 1


def sources(kernel: Kernel, code: CodeObject) -> dict[int, tuple[str, ...]]:
    """Memory instruction -> the pointer arguments its address comes from (none: not known)."""
    descriptor = kernel.descriptor
    parts = slices(kernel.program, descriptor)
    return roots(kernel.program, descriptor, parts, Pointers(code, descriptor))


def allowed(
    kernel: Kernel,
    launch: Launch,
    ranges: Sequence[tuple[int, int]],
    known: dict[int, tuple[str, ...]],
) -> np.ndarray:
    """For every instruction a mask (uint64) of the ranges it may touch; all from the 64th on.

    Arguments that point into no range (null, or memory reached another way) allow nothing more.
    """
    places = {
        parameter.name: number
        for parameter in launch.code.parameters
        if (number := _range_of(launch, parameter.offset, ranges)) is not None
    }
    masks = np.full(len(kernel.program.instructions), _EVERYTHING, np.uint64)
    if len(ranges) > 64:
        return masks
    for index, names in known.items():
        numbers = [places[name] for name in names if name in places]
        if numbers:
            masks[index] = sum({1 << number for number in numbers})
    return masks


def stored(kernel: Kernel, masks: np.ndarray) -> int:
    """A mask of the ranges that stores and atomics of the program may touch; `masks` as `allowed`
    has them."""
    found = 0
    for instruction in kernel.program.instructions:
        memory = instruction.memory
        if memory is not None and memory.kind in _STORING and memory.space in _GLOBAL:
            found |= int(masks[instruction.index])
    return found


def _range_of(launch: Launch, offset: int | None, ranges: Sequence[tuple[int, int]]) -> int | None:
    if offset is None:
        return None
    pointer = int.from_bytes(launch.kernarg[offset : offset + 8], "little")
    return next(
        (number for number, (first, end) in enumerate(ranges) if first <= pointer < end), None
    )


__all__ = ["allowed", "sources", "stored"]
