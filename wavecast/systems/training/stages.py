"""Layers of every chunk of a pipeline."""

from __future__ import annotations


def chunk_layers(depth: int, chunks: int) -> tuple[int, ...]:
    """Layers of each of `chunks` chunks in the order of the model. Where they do not divide, the
    last and then the first have fewer: they also have the head and the embedding."""
    each, more = divmod(depth, chunks)
    order = [*range(1, chunks - 1), 0, chunks - 1] if chunks > 1 else [0]
    counts = [each] * chunks
    for index in order[:more]:
        counts[index] += 1
    return tuple(counts)


__all__ = ["chunk_layers"]
