"""hipRAND's generators of the host: the counter-based generator Philox, for every type.

A number depends on the seed and its position only, so that generation in parts gives the numbers
of generation at once. They are not those of rocRAND.
"""

from __future__ import annotations

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function, InvalidCall
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX, Element


def _words(seed: int, position: int, count: int) -> np.ndarray:
    """`count` 32-bit numbers from a position on, uint32. numpy's Philox gives four 64-bit numbers
    per step of its counter."""
    first, skipped = divmod(position, 8)
    generator = np.random.Philox(key=seed % (1 << 64))
    generator.advance(first)
    raw = generator.random_raw((skipped + count + 1) // 2)
    return np.atleast_1d(raw).view(np.uint32)[skipped : skipped + count]


def _uniform(words: np.ndarray, double: bool) -> np.ndarray:
    """Numbers above 0 and at most 1, as of hipRAND, float64."""
    if double:
        bits = words.view(np.uint64) if words.flags.aligned else words.copy().view(np.uint64)
        return ((bits >> np.uint64(11)) + 1.0) * 2.0**-53
    return (words + 1.0) * 2.0**-32


def _normal(words: np.ndarray, double: bool) -> np.ndarray:
    """By Box and Muller, from two uniform numbers each."""
    pairs = _uniform(words, double).reshape(-1, 2)
    return np.sqrt(-2 * np.log(pairs[:, 0])) * np.cos(2 * np.pi * pairs[:, 1])


def _generate(call: CalledFunction, element: Element, distribution: str) -> bytes:
    seed, position, count = call.numbers(3)
    first, second, address = call.real(), call.real(), call.number()
    if count < 0 or second < 0 or (distribution == "poisson" and first <= 0):
        raise InvalidCall
    double = element.stored.itemsize == 8
    wide = 2 if double else 1
    if distribution == "uniform":
        values = _uniform(_words(seed, position, count * wide).copy(), double)
    elif distribution == "poisson":
        generator = np.random.Generator(np.random.Philox(key=[seed % (1 << 64), position]))
        values = generator.poisson(first, count)
    elif distribution == "bits":
        values = _words(seed, position, count * wide).copy()
        values = values.view(np.uint64) if double else values
    else:
        values = first + second * _normal(_words(seed, position, 2 * count * wide).copy(), double)
        values = np.exp(values) if distribution == "lognormal" else values
    values = values.astype(element.stored)
    if not address:
        return values.tobytes()
    call.array(address, count, element)[...] = values
    return b""


def _element(kind: str) -> Element:
    return BY_PREFIX.get(kind) or Element(np.dtype(kind), np.dtype(kind))


def _function(distribution: str) -> Function:
    return lambda call: _generate(call, _element(call.kind), distribution)


FUNCTIONS: dict[str, Function] = {
    name: _function(name) for name in ("bits", "uniform", "normal", "lognormal", "poisson")
}
"""By the name of the function without library and type."""

__all__ = ["FUNCTIONS"]
