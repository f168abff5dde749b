"""The FLOPs that a step needs, whatever computes them: what MFU counts.

6 N + attention per token (Chowdhery et al. 2022, "PaLM", appendix B): a multiplication and an
addition per weight of the forward pass, twice as many of the backward pass. N are the weights a
token is multiplied by, without the embedding that is looked up. Unlike there, causal attention
counts the scores that the mask leaves. Frozen weights have no gradient: 4 N. Recomputation does not
count.
"""

from __future__ import annotations

from wavecast.systems.architecture import (
    Attention,
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
    ModelArchitecture,
)
from wavecast.systems.training.setup import TrainingSetup


def model_flops(architecture: ModelArchitecture, setup: TrainingSetup) -> float:
    """FLOPs of a step."""
    looked_up = 0 if architecture.tied else architecture.vocabulary * architecture.hidden
    weights = architecture.active_matrices - looked_up
    attention = sum(
        count * _attention(layer.attention, setup.sequence) for layer, count in architecture.layers
    )
    return setup.tokens * ((4 if setup.lora else 6) * weights + 3 * attention)


def _attention(attention: Attention, sequence: int) -> float:
    """Forward FLOPs of a token in a layer."""
    match attention:
        case GroupedQueryAttention():
            visible_length = min(sequence, attention.window) if attention.chunked else sequence
            keys = _keys(visible_length, 0 if attention.chunked else attention.window)
            return 4.0 * attention.heads * attention.head_dim * keys
        case LatentAttention():
            width = attention.nope + attention.rope + attention.value
            return 2.0 * attention.heads * width * _keys(sequence, 0)
        case CompressedAttention():
            entries = sequence / 2 / attention.rate if attention.rate else 0.0
            if attention.indexer:
                entries = min(entries, attention.indexer.topk)
            keys = _keys(sequence, attention.window) + entries
            return 4.0 * attention.heads * attention.head_dim * keys
        case LinearAttention():
            return 4.0 * attention.value_heads * attention.key_dim * attention.value_dim


def _keys(sequence: int, window: int) -> float:
    """Mean number of keys that a token sees."""
    if not window or sequence <= window:
        return (sequence + 1) / 2
    return window - window * (window - 1) / (2 * sequence)


__all__ = ["model_flops"]
