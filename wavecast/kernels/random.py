"""Triton's counter-based random numbers in plain torch, for references.

Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the number
at an offset depends on the seed and the offset alone, so that a kernel and its reference, or a
forward and a backward pass, draw the same ones in any order.
"""

from typing import Final

import torch

_ROUNDS: Final = 10
_WORD: Final = 0xFFFFFFFF
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_KEYS: Final = (0x9E3779B9, 0xBB67AE85)
_SCALE: Final = 4.6566127342e-10
"""`triton.language.random`: the largest of float32 for which every number stays below 1."""


def to_int64(seed: int) -> int:
    """The lower 64 bits of a seed as an int64, which kernels take."""
    return (seed + 2**63) % 2**64 - 2**63


def uniform(seed: int, offsets: torch.Tensor) -> torch.Tensor:
    """`tl.rand(seed, offsets)` bit by bit: float32 in [0, 1), of the shape of `offsets`.

    `seed` counts modulo 2**64; `offsets` are int32 (the upper half of the counter is 0, as in
    Triton) or int64. Other dtypes raise TypeError.
    """
    return _fraction(philox(seed, offsets)[0])


def philox(seed: int, offsets: torch.Tensor, rounds: int = _ROUNDS) -> tuple[torch.Tensor, ...]:
    """`tl.randint4x(seed, offsets, rounds)`: four 32-bit words as int64 from 0 to 2**32 - 1. Raises
    TypeError."""
    if offsets.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"offsets are {offsets.dtype}, expected int32 or int64")
    counter = offsets.to(torch.int64)
    zero = torch.zeros_like(counter)
    c0, c2, c3 = counter & _WORD, zero, zero
    c1 = (counter >> 32) & _WORD if offsets.dtype == torch.int64 else zero
    k0, k1 = seed % 2**32, seed // 2**32 % 2**32
    for _ in range(rounds):
        high0, low0 = _product(c0, _MULTIPLIERS[0])
        high2, low2 = _product(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = high2 ^ c1 ^ k0, low2, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _KEYS[0]) % 2**32, (k1 + _KEYS[1]) % 2**32
    return c0, c1, c2, c3


def _product(word: torch.Tensor, factor: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Upper and lower 32 bits of the product with a 32-bit factor: in 16-bit halves, since all of
    it is more than int64 holds."""
    low = word * (factor & 0xFFFF)
    upper = word * (factor >> 16) + (low >> 16)
    return upper >> 16, ((upper & 0xFFFF) << 16) | (low & 0xFFFF)


def _fraction(word: torch.Tensor) -> torch.Tensor:
    signed = torch.where(word > 0x7FFFFFFF, word ^ _WORD, word)
    return signed.to(torch.float32) * torch.tensor(_SCALE, dtype=torch.float32, device=word.device)
