"""What an address that a launch must not touch may have been."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wavecast.compile.codeobject import Launch
from wavecast.emulate.bounds import sources
from wavecast.emulate.tensors import AddressInterval, tensors_of
from wavecast.isa.opcode import Space
from wavecast.isa.program import Kernel
from wavecast.wording import count

_NULL_PAGE: Final = 4096
_FAR: Final = 1 << 40
"""Bytes; a distance beyond says nothing about what was meant."""


def describe(
    kernel: Kernel, launch: Launch, index: int, address: int, ranges: Sequence[AddressInterval]
) -> str:
    """`x[4096], outside x (4,096 elements)`: an address that instruction `index` must not touch, as
    an element of the arguments that its address comes from, and otherwise relative to the nearest.

    `ranges` are the host addresses that the launch may touch.
    """
    if address < _NULL_PAGE:
        return f"the address {address:#x}: a null pointer"
    memory = kernel.program.instructions[index].memory
    if memory is not None and memory.space is Space.SCRATCH:
        size = count(kernel.descriptor.scratch_bytes, "byte")
        return f"private memory outside the {size} that a lane has"
    tensors = tensors_of(launch, kernel.descriptor, ranges)
    names = sources(kernel, launch.code).get(index, ())
    near = [tensor for tensor in tensors if tensor.name in names] or tensors
    nearest = min(near, key=lambda tensor: tensor.distance(address), default=None)
    if nearest is not None and nearest.name in names:
        where = "outside" if nearest.distance(address) >= 0 else "across the end of"
        return f"{nearest.index(address)}, {where} {nearest.name} ({nearest.extent})"
    text = f"the address {address:#x}"
    if names:
        return f"{text} through {', '.join(names)}, where the launch has no memory"
    candidates = [(tensor.first, tensor.end, tensor.name) for tensor in tensors]
    candidates = candidates or [
        (first, end, "the nearest memory of the launch") for first, end in ranges
    ]
    first, end, name = min(candidates, key=lambda candidate: _distance(address, *candidate[:2]))
    distance = _distance(address, first, end)
    if distance > _FAR:
        return f"{text}, far from all memory of the launch"
    side = "before" if address < first else "after the end of"
    return f"{text}, {count(distance, 'byte')} {side} {name}"


def element(
    kernel: Kernel, launch: Launch, index: int, address: int, ranges: Sequence[AddressInterval]
) -> str:
    """`flags[3]`: an address that instruction `index` accesses, as an element of the argument it
    lies in, "" where it lies in none."""
    names = sources(kernel, launch.code).get(index, ())
    within = [
        tensor
        for tensor in tensors_of(launch, kernel.descriptor, ranges)
        if tensor.first <= address < tensor.end
    ]
    owner = next((tensor for tensor in within if tensor.name in names), None)
    owner = owner or (within[0] if within else None)
    return owner.index(address) if owner is not None else ""


def _distance(address: int, first: int, end: int) -> int:
    """Bytes from an address to a range that it does not lie in, 0 in it."""
    return max(first - address, address - end, 0)
