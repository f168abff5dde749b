"""The layers of a model, by the sizes that decide its kernels and its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class GroupedQueryAttention:
    """Softmax attention: `heads` of `head_dim` share `kv_heads` heads of keys and values.

    `window` is the number of keys a query sees (0: all), `gated`: the projection of the queries has
    a gate of the same size that multiplies the output, `rotary`: positions rotate queries and keys.
    `chunked`: the sequence is divided into pieces of `window` tokens, and a query sees the keys of
    its piece (Llama 4). `head_norm` is a norm of queries and keys: "head" over one head, "heads"
    over all.
    """

    heads: int
    kv_heads: int
    head_dim: int
    window: int = 0
    gated: bool = False
    rotary: bool = True
    chunked: bool = False
    head_norm: str = ""

    @property
    def name(self) -> str:
        """`attention`, or with its window or piece."""
        if self.chunked:
            return f"attention in pieces of {self.window:,} tokens"
        return f"attention over {self.window:,} tokens" if self.window else "attention"

    def parameters(self, hidden: int) -> int:
        """Elements of the projections."""
        queries = self.heads * self.head_dim
        keys = self.kv_heads * self.head_dim
        return hidden * (queries * (1 + self.gated) + 2 * keys) + queries * hidden

    @property
    def cached_elements(self) -> int:
        """Elements of the cache per token: a key and a value per head."""
        return 2 * self.kv_heads * self.head_dim

    def keys_seen(self, position: int) -> int:
        """Keys that the query at a position sees; the first position is 1."""
        if not self.window:
            return position
        return (position - 1) % self.window + 1 if self.chunked else min(position, self.window)


@dataclass(frozen=True, slots=True)
class SparseIndexer:
    """Chooses the `topk` keys that latent attention reads: `heads` of `dim` score every key.
    `shared`: the layer has no indexer and reads the keys that the last one before it chose."""

    heads: int
    dim: int
    topk: int
    shared: bool = False


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA): keys and values of all heads come from `kv_rank` elements.

    A head has `nope` elements without and `rope` with positions, and values of `value`. `q_rank` is
    the rank of the queries' projection (0: not factorised). `indexer` makes it sparse.
    """

    heads: int
    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int
    indexer: SparseIndexer | None = None

    @property
    def name(self) -> str:
        """`latent attention`, sparse with an indexer, its own or that of a layer before."""
        if self.indexer and self.indexer.shared:
            return "sparse latent attention, shared indexer"
        return "sparse latent attention" if self.indexer else "latent attention"

    def parameters(self, hidden: int) -> int:
        """Elements of the projections."""
        queries = self.heads * (self.nope + self.rope)
        total = hidden * self.q_rank + self.q_rank * queries if self.q_rank else hidden * queries
        total += hidden * (self.kv_rank + self.rope)
        total += self.kv_rank * self.heads * (self.nope + self.value)
        total += self.heads * self.value * hidden
        if self.indexer and not self.indexer.shared:
            total += (self.q_rank or hidden) * self.indexer.heads * self.indexer.dim
            total += hidden * (self.indexer.dim + self.indexer.heads)
        return total

    @property
    def cached_elements(self) -> int:
        """Elements of the cache per token: the latent vector and the shared rotated key."""
        return self.kv_rank + self.rope

    @property
    def index_elements(self) -> int:
        """Elements of the indexer's cache per token."""
        return self.indexer.dim if self.indexer and not self.indexer.shared else 0


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta rule: a state of `key_dim` x `value_dim` per value head, and a convolution."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    name: ClassVar[str] = "linear attention"

    def parameters(self, hidden: int) -> int:
        """Elements of the projections and of the convolution."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        projections = hidden * (2 * keys + 2 * values + 2 * self.value_heads) + values * hidden
        return projections + self.kernel * (2 * keys + values)

    @property
    def state_elements(self) -> int:
        """Elements of the state of one sequence, kept in fp32."""
        convolution = (2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim) * (
            self.kernel - 1
        )
        return self.value_heads * self.key_dim * self.value_dim + convolution


@dataclass(frozen=True, slots=True)
class CompressedAttention:
    """Attention of DeepSeek-V4: `heads` share a key of `head_dim`, which is the value too. A query
    sees the last `window` keys, and, with a `rate`, entries that each compress so many tokens.

    Queries have the rank `q_rank`. The output projection has a product per group of heads
    (`groups`), each to `out_rank` elements, and one of all. With an `indexer`, every entry overlaps
    with the one before, and a query sees the best `topk` of them only; it scores entries with
    keys that are compressed as well.
    """

    heads: int
    head_dim: int
    q_rank: int
    window: int
    rate: int
    groups: int
    out_rank: int
    indexer: SparseIndexer | None = None

    @property
    def name(self) -> str:
        """`attention over 128 tokens`, or with the rate of compression."""
        if not self.rate:
            return f"attention over {self.window:,} tokens"
        return f"{'sparse ' if self.indexer else ''}attention, 1/{self.rate} of keys"

    @property
    def compressor_width(self) -> int:
        """Elements that a compressor makes of a token before it adds tokens up: keys and weights,
        twice where entries overlap."""
        return (4 if self.indexer else 2) * self.head_dim if self.rate else 0

    @property
    def index_width(self) -> int:
        """The same for the keys of the indexer."""
        return 4 * self.indexer.dim if self.indexer else 0

    def parameters(self, hidden: int) -> int:
        """Elements of the projections and compressors."""
        width = self.heads * self.head_dim
        total = hidden * (self.q_rank + self.head_dim) + self.q_rank * width
        total += width * self.out_rank + self.groups * self.out_rank * hidden
        total += hidden * self.compressor_width
        if self.indexer:
            total += self.q_rank * self.indexer.heads * self.indexer.dim
            total += hidden * (self.indexer.heads + self.index_width)
        return total

    @property
    def cached_elements(self) -> float:
        """Elements of the cache per token: compressed entries."""
        return self.head_dim / self.rate if self.rate else 0.0

    @property
    def index_elements(self) -> float:
        """Elements of the indexer's cache per token."""
        return self.indexer.dim / self.rate if self.indexer else 0.0


Attention = GroupedQueryAttention | LatentAttention | LinearAttention | CompressedAttention


@dataclass(frozen=True, slots=True)
class DenseMlp:
    """Two projections up (`gated`) or one, and one down, of `inter` units. `activation` is a
    function of element-wise operations: with a gate `silu_mul`, else `gelu` or `relu`."""

    inter: int
    gated: bool = True
    activation: str = "silu_mul"
    name: ClassVar[str] = "dense"

    def parameters(self, hidden: int) -> int:
        """Elements of the projections."""
        return (2 + self.gated) * hidden * self.inter


@dataclass(frozen=True, slots=True)
class ExpertMlp:
    """`topk` of `experts` gated experts of `inter` units per token, and `shared` units for all.
    `biased`: router and routed experts have biases. `shared_gate`: a product of one column weighs
    what the shared experts add."""

    experts: int
    topk: int
    inter: int
    shared: int = 0
    biased: bool = False
    shared_gate: bool = False
    name: ClassVar[str] = "experts"

    def expert_parameters(self, hidden: int) -> int:
        """Elements of the routed experts."""
        return 3 * hidden * self.inter * self.experts

    def parameters(self, hidden: int) -> int:
        """Elements of router, routed and shared experts."""
        return self.expert_parameters(hidden) + hidden * self.experts + 3 * hidden * self.shared

    def active_parameters(self, hidden: int) -> int:
        """Elements that one token is multiplied by."""
        return hidden * self.experts + 3 * hidden * (self.inter * self.topk + self.shared)

    def biases(self, hidden: int, experts: int) -> int:
        """Elements of the biases of the router and of so many experts."""
        return self.experts + experts * (2 * self.inter + hidden) if self.biased else 0


Mlp = DenseMlp | ExpertMlp


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a decoder: attention, then a multilayer perceptron. `parallel`: both read the same
    norm, and their results are added at once. `vectors` are the elements of norms, biases and
    vectors per head, without the biases of routed experts (`vectors.py`)."""

    attention: Attention
    mlp: Mlp
    parallel: bool = False
    vectors: int = 0


@dataclass(frozen=True)
class ModelArchitecture:
    """A decoder-only transformer.

    `layers` has every different layer with its number. `tied`: the output projection is the
    embedding. `extra_parameters` are those of parts that a text step does not run (an encoder of
    images); they only take memory. `vectors` are elements of norms outside of layers. `norm` is a
    function of norms, `positions` the number of learned ones. With several `streams`, every block
    reads a mixture of so many hidden states and adds to each of them (hyper-connections).
    """

    name: str
    hidden: int
    vocabulary: int
    layers: tuple[tuple[Layer, int], ...]
    tied: bool = False
    context: int = 0
    extra_parameters: int = 0
    vectors: int = 0
    norm: str = "rms_norm"
    positions: int = 0
    streams: int = 1

    @property
    def depth(self) -> int:
        """Number of layers."""
        return sum(count for _, count in self.layers)

    @property
    def sparse(self) -> bool:
        """Whether tokens are multiplied by a part of the weights only: some layer has experts."""
        return any(isinstance(layer.mlp, ExpertMlp) for layer, _ in self.layers)

    @cached_property
    def parameters(self) -> int:
        """Elements of all weights."""
        matrices = self._sum(lambda layer: layer.mlp.parameters(self.hidden))
        return matrices + self.vector_parameters + self.extra_parameters

    @cached_property
    def active_parameters(self) -> int:
        """Elements of the weights that are used for one token."""
        idle = sum(
            count * (mlp.biases(self.hidden, mlp.experts) - mlp.biases(self.hidden, mlp.topk))
            for layer, count in self.layers
            if isinstance(mlp := layer.mlp, ExpertMlp)
        )
        return self.active_matrices + self.vector_parameters - idle

    @cached_property
    def active_matrices(self) -> int:
        """Elements of the matrices that one token is multiplied by."""

        def active(layer: Layer) -> int:
            mlp = layer.mlp
            if isinstance(mlp, ExpertMlp):
                return mlp.active_parameters(self.hidden)
            return mlp.parameters(self.hidden)

        return self._sum(active)

    @cached_property
    def vector_parameters(self) -> int:
        """Elements of norms, biases and other weights that are in no matrix."""
        return self.vectors + sum(count * self.vectors_of(layer) for layer, count in self.layers)

    def vectors_of(self, layer: Layer) -> int:
        """The same of one layer."""
        mlp = layer.mlp
        biases = mlp.biases(self.hidden, mlp.experts) if isinstance(mlp, ExpertMlp) else 0
        return layer.vectors + biases

    def _sum(self, of_mlp: Callable[[Layer], int]) -> int:
        return self.embedding_parameters + sum(
            count * (layer.attention.parameters(self.hidden) + of_mlp(layer) + self.mixing)
            for layer, count in self.layers
        )

    @property
    def embedding_parameters(self) -> int:
        """Elements of the embedding, the output projection, and learned positions."""
        tables = self.vocabulary * (1 if self.tied else 2) + self.positions
        return tables * self.hidden + (self.streams * self.mixed if self.streams > 1 else 0)

    @property
    def mixed(self) -> int:
        """Elements of all hidden states of a token."""
        return self.streams * self.hidden

    @property
    def mixing(self) -> int:
        """Elements of the weights of a layer that mix its hidden states, before both blocks."""
        return 2 * self.streams * (self.streams + 2) * self.mixed if self.streams > 1 else 0


__all__ = [
    "Attention",
    "CompressedAttention",
    "DenseMlp",
    "ExpertMlp",
    "GroupedQueryAttention",
    "LatentAttention",
    "Layer",
    "LinearAttention",
    "Mlp",
    "ModelArchitecture",
    "SparseIndexer",
]
