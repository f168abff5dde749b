"""Latent attention over the keys that an indexer chooses (DeepSeek-V3.2, GLM-5), on the emulated
GPU."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# pyright: reportAttributeAccessIssue=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from torch import Tensor
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.attention.sparse_mla_attention import SharedTopkIndicesBuffer
from vllm.model_executor.layers.sparse_attn_indexer import SparseAttnIndexer
from vllm.platforms import current_platform
from vllm.v1.attention.backend import AttentionBackend, MultipleOf
from vllm.v1.attention.backends.mla.sparse_utils import flat_kv_row_view

from wavecast.frameworks.vllm.attention import PagedBatch, PagedBatchBuilder
from wavecast.frameworks.vllm.mla import WavecastMLA, WavecastMLABackend
from wavecast.frameworks.vllm.preferred import OnByDefault
from wavecast.frameworks.vllm.served import serve

_score: Final = serve("SparseAttnIndexer", "index_scores")
_quantise: Final = serve("SparseAttnIndexer", "quantise_fp8_group")
_decode: Final = serve("MLAAttention", "mla_decode")


@dataclass
class SparseBatch(PagedBatch):
    """A batch in which attention takes every new token by its own keys: vLLM's layer counts all
    tokens as decode."""

    num_decodes: int = 0
    num_prefills: int = 0
    num_decode_tokens: int = 0

    @property
    def sequence(self) -> Tensor:
        """The sequence of each token, int64 [tokens]."""
        token = torch.arange(self.num_actual_tokens, device=self.starts.device)
        return torch.searchsorted(self.starts[1:].long(), token, right=True)


class SparseBatchBuilder(PagedBatchBuilder):
    """Batches for attention over chosen keys."""

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> SparseBatch:
        """Raises NotImplementedError where attention is not causal."""
        batch = super().build(common_prefix_len, common_attn_metadata, fast_build)
        sequences, tokens = batch.lengths.shape[0], batch.num_actual_tokens
        return SparseBatch(**vars(batch), num_decodes=sequences, num_decode_tokens=tokens)


class WavecastSparseMLABackend(WavecastMLABackend):
    """`wavecast.ops.mla_decode` over chosen keys, each a block of the cache."""

    @staticmethod
    def get_impl_cls() -> type[WavecastMLA]:
        """The class of a layer's attention."""
        return WavecastSparseMLA

    @staticmethod
    def get_builder_cls() -> type[SparseBatchBuilder]:
        """The class that describes batches."""
        return SparseBatchBuilder

    @classmethod
    def is_sparse(cls) -> bool:
        """Attention over chosen keys."""
        return True


class WavecastSparseMLA(WavecastMLA, SharedTopkIndicesBuffer):
    """Attention of one layer, over the keys that its indexer, or that of a layer before, chose."""

    is_sparse: ClassVar[bool] = True
    supports_dense_mha_prefill = False

    def __init__(
        self,
        *,
        topk_indices_buffer: Tensor | None = None,
        index_group_builder: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)  # groups of layers share slots on streams of a GPU
        self.init_topk_indices_buffer(kwargs.get("indexer"), topk_indices_buffer)

    def record_logical_topk_ready(self) -> None:
        """Chosen keys are there: nothing else waits for them."""

    def forward_mqa(
        self,
        q: Tensor | tuple[Tensor, Tensor],
        kv_c_and_k_pe_cache: Tensor,
        attn_metadata: Any,
        layer: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """One query [heads, latent + rope] per token, prefill or decode. No logarithms of
        denominators."""
        whole = torch.cat(q, dim=-1) if isinstance(q, tuple) else q
        assert self.topk_indices_buffer is not None
        chosen = self.topk_indices_buffer[: whole.shape[0]].long()
        cache = self._cache(kv_c_and_k_pe_cache)
        size = cache.shape[1]
        rows, per_block = flat_kv_row_view(cache, size)
        pages = attn_metadata.block_table[attn_metadata.sequence].long()
        page = pages.gather(1, chosen.clamp_min(0) // size)
        slots = (page * per_block + chosen.clamp_min(0) % size).to(torch.int32)
        counts = (chosen >= 0).sum(dim=1, dtype=torch.int32)
        scale = None if self._stored is None else layer._k_scale
        output = _decode(
            whole, rows.unsqueeze(1), slots, counts, self.scale, scale, self.qk_rope_head_dim
        )
        return output, None


class WavecastIndexerBackend(AttentionBackend):
    """The cache of an indexer's keys: their codes, then their scale, token by token."""

    @staticmethod
    def get_name() -> str:
        """Its name in vLLM's messages."""
        return "WAVECAST_INDEXER"

    @staticmethod
    def get_impl_cls() -> Any:
        """None: attention is that of another layer."""
        return None

    @staticmethod
    def get_builder_cls() -> type[PagedBatchBuilder]:
        """The class that describes batches."""
        return PagedBatchBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        """Blocks of any multiple of 16 tokens."""
        return [MultipleOf(16)]

    @classmethod
    def get_supported_head_sizes(cls) -> list[int]:
        """Bytes of a token: 128 codes and a scale."""
        return [132]


class WavecastSparseAttnIndexer(OnByDefault, SparseAttnIndexer):
    """Keys of new tokens to the cache, scores of all keys, and the `topk_tokens` of each new token
    with the highest ones in the buffer that attention reads, -1 where a token sees fewer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lacking = {
            "keys in mxfp4": self.use_fp4_cache,
            "compressed keys": self.compress_ratio != 1,
            "candidate blocks": self.candidate_blocks is not None or self.candidate_write,
            "several GPUs": self.dcp_world_size > 1 or self.use_pcp,
        }
        for what, is_there in lacking.items():
            if is_there:
                raise NotImplementedError(f"an indexer with {what}")
        self.k_cache.get_attn_backend = lambda: WavecastIndexerBackend

    def forward_oot(
        self, hidden_states: Tensor, q_quant: Tensor, k: Tensor | None, weights: Tensor
    ) -> Tensor:
        """`q_quant` [tokens, heads, head] in the GPU's fp8, whose scales are in `weights` [tokens,
        heads]; `k` [tokens, head]. Returns the buffer."""
        batches = get_forward_context().attn_metadata
        buffer: Tensor = self.topk_indices_buffer
        if not isinstance(batches, dict):  # a run that measures memory
            return buffer
        batch, head = batches[self.k_cache.prefix], self.head_dim
        tokens = batch.num_actual_tokens
        cache = self.k_cache.kv_cache
        codes, scales = cache[..., :head].view(q_quant.dtype), cache[..., head:].view(torch.float32)
        if not self.skip_k_cache_insert:
            assert k is not None
            self._write(k[:tokens], cache, batch.slots[:tokens])
        scores = _score(
            q_quant[:tokens], weights[:tokens].float(), codes, batch.starts, batch.block_table,
            batch.lengths, scales[..., 0], int(batch.lengths.max()),
        )  # fmt: skip
        count = min(self.topk_tokens, scores.shape[1])
        best = scores.topk(count, dim=1)
        chosen = torch.where(best.values > float("-inf"), best.indices, -1)
        buffer[:tokens] = -1
        buffer[:tokens, :count] = chosen.to(buffer.dtype)
        return buffer

    def _write(self, k: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Keys in fp8 and their scales, powers of two, to their slots; none below 0."""
        codes, scale = _quantise(k.contiguous(), current_platform.fp8_dtype(), self.head_dim, True)
        token = torch.cat([codes.view(torch.uint8), scale.view(torch.uint8)], dim=1)
        stored = slots >= 0
        slots, size = slots[stored].long(), cache.shape[1]
        cache[slots // size, slots % size] = token[stored]


__all__ = [
    "SparseBatch",
    "SparseBatchBuilder",
    "WavecastIndexerBackend",
    "WavecastSparseAttnIndexer",
    "WavecastSparseMLA",
    "WavecastSparseMLABackend",
]
