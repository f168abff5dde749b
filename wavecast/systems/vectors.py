"""Elements of a layer that are in no matrix of a product: norms, biases, and what heads have, with
the kernels that they need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from wavecast.systems.architecture import (
    Attention,
    CompressedAttention,
    DenseMlp,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    LinearAttention,
)


@dataclass(frozen=True, slots=True)
class VectorStyle:
    """Which vectors the layers of a model have.

    `norms` of the hidden state per layer, `norm_vectors` per norm (1: weights, 2: also biases, 0:
    neither), `final_norms` outside of layers. `input_bias` and `output_bias`: the projections to
    and from attention have biases; of latent attention the first are those to its ranks.
    `head_norm` is a norm of queries and keys: "head" over one head, "heads" over all. `sinks`: a
    logit per head. `mlp_bias`: dense layers and shared experts have biases, `expert_bias`: router
    and routed experts. `shared_gate`: a vector weighs what the shared experts add.
    """

    norms: int = 2
    norm_vectors: int = 1
    final_norms: int = 1
    input_bias: bool = False
    output_bias: bool = False
    head_norm: str = ""
    sinks: bool = False
    mlp_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False

    def apply(self, layer: Layer, hidden: int, streams: int) -> Layer:
        """A layer with the number of its vectors' elements; `streams` as in
        `ModelArchitecture`."""
        mlp, attention = layer.mlp, layer.attention
        if isinstance(mlp, ExpertMlp):
            mlp = replace(mlp, biased=self.expert_bias, shared_gate=self.shared_gate)
        if isinstance(attention, GroupedQueryAttention):
            attention = replace(attention, head_norm=self.head_norm)
        elements = self.norms * self.norm_vectors * hidden
        elements += self._attention(attention, hidden) + self._mlp(mlp, hidden)
        if streams > 1:
            elements += 2 * (streams * (streams + 2) + _MIXING_SCALES)
        return replace(layer, attention=attention, mlp=mlp, vectors=elements)

    def outside(self, hidden: int, streams: int) -> int:
        """Elements of the vectors outside of layers."""
        mixing = streams + 1 if streams > 1 else 0
        return self.final_norms * self.norm_vectors * hidden + mixing

    def _mlp(self, mlp: DenseMlp | ExpertMlp, hidden: int) -> int:
        if isinstance(mlp, DenseMlp):
            return (1 + mlp.gated) * mlp.inter + hidden if self.mlp_bias else 0
        gate = hidden if self.shared_gate else 0
        return gate + (2 * mlp.shared + hidden if self.mlp_bias and mlp.shared else 0)

    def _attention(self, attention: Attention, hidden: int) -> int:
        output = hidden if self.output_bias else 0
        match attention:
            case GroupedQueryAttention(heads, kv_heads, head_dim):
                queries, keys = heads * head_dim, kv_heads * head_dim
                biases = queries * (1 + attention.gated) + 2 * keys if self.input_bias else 0
                norms = {"": 0, "head": 2 * head_dim, "heads": queries + keys}[self.head_norm]
                return biases + output + norms + (heads if self.sinks else 0)
            case LatentAttention():
                ranks = attention.q_rank + attention.kv_rank
                biases = ranks + attention.rope if self.input_bias else 0
                # The norm of the indexer's keys has weights and biases.
                return ranks + biases + output + 2 * int(attention.index_elements)
            case LinearAttention(_, value_heads, _, value_dim):
                return 2 * value_heads + value_dim  # A_log and dt_bias; the norm of a head
            case CompressedAttention():
                return _compressed(attention)
            case _:
                assert_never(attention)


_MIXING_SCALES = 3
"""Scales of the weights that mix hidden states, before attention and before the experts."""


def _compressed(attention: CompressedAttention) -> int:
    """Sinks, norms of ranks and keys, and per compressor a bias by place and a norm."""
    elements = attention.heads + attention.q_rank + attention.head_dim
    if attention.rate:
        elements += attention.rate * attention.compressor_width // 2 + attention.head_dim
    if attention.indexer:
        elements += attention.rate * attention.index_width // 2 + attention.indexer.dim
    return elements


__all__ = ["VectorStyle"]
