"""The sizes of an attention problem, as the kernels see them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavecast.dtypes import lookup

BITS = {name: lookup(name).bits for name in ("fp32", "bf16", "fp16", "fp8", "int8", "fp4")}
"""Bits of one element by dtype."""
LINE = 128
"""Bytes of a cache line of the L2 (CDNA3 white paper)."""


@dataclass(frozen=True, slots=True)
class AttentionSizes:
    """Softmax(Q·Kᵀ)·V over `lengths`: (queries, keys, how many such sequences).

    `heads` query heads share `kv_heads` heads of keys and values; `head` and `head_v` are elements
    of a query or key and of a value. `latent`: values are the first `head_v` elements of the keys,
    so that one array holds both (multi-head latent attention, absorbed form). The mask of `causal`
    is aligned to the last query and key.
    """

    lengths: tuple[tuple[int, int, int], ...]
    heads: int
    kv_heads: int
    head: int
    head_v: int
    dtype: str
    kv_dtype: str
    causal: bool
    latent: bool

    @property
    def batch(self) -> int:
        return sum(count for _, _, count in self.lengths)

    @property
    def queries(self) -> int:
        """Query tokens of all sequences."""
        return sum(q * count for q, _, count in self.lengths)

    @property
    def keys(self) -> int:
        """Key tokens of all sequences."""
        return sum(k * count for _, k, count in self.lengths)

    @property
    def longest(self) -> tuple[int, int]:
        """Most queries and most keys of a sequence."""
        return max(q for q, _, _ in self.lengths), max(k for _, k, _ in self.lengths)

    @property
    def group(self) -> int:
        """Query heads per head of keys and values."""
        return self.heads // self.kv_heads

    @property
    def scores(self) -> float:
        """Pairs of query and key that the mask leaves, over all heads and sequences."""
        return self.heads * sum(count * self._pairs(q, k) for q, k, count in self.lengths)

    def _pairs(self, queries: int, keys: int) -> float:
        if not self.causal:
            return queries * keys
        seeing = min(queries, keys)
        return seeing * (keys - seeing) + seeing * (seeing + 1) / 2

    @property
    def query_bytes(self) -> float:
        return self.queries * self.heads * self.head * BITS[self.dtype] / 8

    @property
    def output_bytes(self) -> float:
        """The output, in 16 bits where the inputs have fewer."""
        return self.queries * self.heads * self.head_v * max(BITS[self.dtype], 16) / 8

    @property
    def token_bytes(self) -> float:
        """Key and value of one token and head."""
        elements = self.head + (0 if self.latent else self.head_v)
        return elements * BITS[self.kv_dtype] / 8

    @property
    def token_lines(self) -> float:
        """`token_bytes` in whole cache lines: rows of one head lie apart."""
        bits = BITS[self.kv_dtype]
        rows = (self.head,) if self.latent else (self.head, self.head_v)
        return float(sum(math.ceil(row * bits / 8 / LINE) * LINE for row in rows))

    @property
    def kv_bytes(self) -> float:
        return self.keys * self.kv_heads * self.token_bytes


__all__ = ["BITS", "LINE", "AttentionSizes"]
