"""hipFFT: transforms of one to three dimensions and batches, not normalised, as of hipFFT."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function, InvalidCall
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX, Element

_ELEMENTS: Final = {
    0x29: "CC", 0x2A: "SC", 0x2C: "CS", 0x69: "ZZ", 0x6A: "DZ", 0x6C: "ZD",
}  # fmt: skip
"""`hipfftType` -> the elements of input and output."""
_FORWARD, _BACKWARD = -1, 1


def execute(call: CalledFunction) -> None:
    """One execution of a plan (`hipfft/hipfft.h`)."""
    kind, rank, *sizes = call.numbers(5)
    batch, direction = call.numbers(2)
    n = sizes[:rank]
    from_element, to_element = (BY_PREFIX[letter] for letter in _ELEMENTS[kind])
    if direction not in (_FORWARD, _BACKWARD):
        raise InvalidCall
    half = [*n[:-1], n[-1] // 2 + 1]
    from_shape = half if _ELEMENTS[kind] in ("CS", "ZD") else n
    to_shape = half if _ELEMENTS[kind] in ("SC", "DZ") else n
    call.described = f"{'x'.join(map(str, n))}" + (f", batch of {batch}" if batch > 1 else "")
    values = _array(call, from_element, from_shape, batch, rank)
    axes = tuple(range(1, rank + 1))
    if from_shape != n:
        output = np.fft.irfftn(values, n, axes, norm="forward")
    elif to_shape != n:
        output = np.fft.rfftn(values, n, axes)
    elif direction == _FORWARD:
        output = np.fft.fftn(values, axes=axes)
    else:
        output = np.fft.ifftn(values, axes=axes, norm="forward")
    _array(call, to_element, to_shape, batch, rank)[...] = output


def _array(
    call: CalledFunction, element: Element, shape: list[int], batch: int, rank: int
) -> np.ndarray:
    """Input or output [batch, *shape] as the plan has it: address, step and distance of
    elements, and the size of each dimension in memory."""
    address, step, distance, *embedded = call.numbers(6)
    steps = [step * math.prod(embedded[at + 1 : rank]) for at in range(rank)]
    pairs = zip((batch, *shape), (distance, *steps), strict=True)
    extent = 1 + sum((size - 1) * stride for size, stride in pairs)
    data = call.array(address, extent, element)
    size = element.stored.itemsize
    strides = (size * distance, *(size * stride for stride in steps))
    return np.lib.stride_tricks.as_strided(data, (batch, *shape), strides)


FUNCTIONS: dict[str, Function] = {"exec": execute}
"""By the name of the function without library."""

__all__ = ["FUNCTIONS"]
