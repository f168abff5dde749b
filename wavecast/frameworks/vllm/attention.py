"""Attention over vLLM's paged cache: prefill, chunks of it, decode, and batches of all these."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch
from torch import Tensor
from vllm.platforms import current_platform
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)

from wavecast.frameworks.vllm.served import serve

_attend: Final = serve("Attention", "paged_attention")
_write: Final = serve("Attention", "kv_cache_write")
CACHE_DTYPES: Final = {
    "auto": None,
    "float16": None,
    "bfloat16": None,
    "fp8": "e4m3",
    "fp8_e4m3": "e4m3",
    "fp8_e5m2": "e5m2",
}
"""vLLM's names of dtypes of a cache: the format of 8 bits, None for the model's dtype."""


def cache_dtype(name: str) -> torch.dtype | None:
    """The dtype of 8 bits of a cache; e4m3 is that of the GPU."""
    if CACHE_DTYPES[name] is None:
        return None
    return torch.float8_e5m2 if CACHE_DTYPES[name] == "e5m2" else current_platform.fp8_dtype()


@dataclass
class PagedBatch:
    """A batch as attention takes it: `num_actual_tokens` rows without padding, int32 `starts`
    [sequences + 1], int32 `lengths` [sequences], int32 `block_table` [sequences, blocks] and int64
    `slots` [tokens]. Layers of vLLM add other attributes."""

    num_actual_tokens: int
    starts: Tensor
    lengths: Tensor
    block_table: Tensor
    slots: Tensor


class PagedBatchBuilder(AttentionMetadataBuilder[PagedBatch]):
    """Takes from vLLM's description of a batch what the kernels need."""

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> PagedBatch:
        """Raises NotImplementedError where attention is not causal."""
        metadata = common_attn_metadata
        if metadata.causal is not True:
            raise NotImplementedError("attention that is not causal over a paged cache")
        return PagedBatch(
            metadata.num_actual_tokens,
            metadata.query_start_loc,
            metadata.seq_lens,
            metadata.block_table_tensor,
            metadata.slot_mapping,
        )


class WavecastAttentionBackend(AttentionBackend):
    """`wavecast.ops.paged_attention` and `kv_cache_write` as a backend of vLLM."""

    forward_includes_kv_cache_update: bool = False
    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[Any]] = list(CACHE_DTYPES)

    @staticmethod
    def get_name() -> str:
        """The name of an attention backend that is not vLLM's."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[WavecastAttention]:
        """The class of a layer's attention."""
        return WavecastAttention

    @staticmethod
    def get_builder_cls() -> type[PagedBatchBuilder]:
        """The class that describes batches."""
        return PagedBatchBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        """Blocks of any multiple of 16 tokens."""
        return [MultipleOf(16)]

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        """Heads of up to 512 elements."""
        return 0 < head_size <= 512

    @classmethod
    def supports_sink(cls) -> bool:
        """A logit per head that takes part in the softmax."""
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        """Windows of any length."""
        return True


class WavecastAttention(AttentionImpl[PagedBatch]):
    """Attention of one layer. The cache is [blocks, heads, block size, 2 · head], keys first."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: Tensor | None = None,
    ) -> None:
        if attn_type != AttentionType.DECODER:
            raise NotImplementedError(f"attention of an {attn_type} over a paged cache")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.options: dict[str, Any] = {
            "scale": float(scale),
            "window": sliding_window or 0,
            "soft_cap": logits_soft_cap or 0.0,
            "sinks": sinks,
            "alibi": None if alibi is None else torch.tensor(alibi),
        }
        self._stored = cache_dtype(kv_cache_dtype)

    def do_kv_cache_update(
        self, layer: Any, key: Tensor, value: Tensor, kv_cache: Tensor, slot_mapping: Tensor
    ) -> None:
        """Write keys and values [tokens, heads, head] to their slots; fp8 with the layer's
        scales."""
        keys, values = self._caches(kv_cache)
        tokens = slot_mapping.shape[0]
        _write(key[:tokens], value[:tokens], keys, values, slot_mapping, **self._scales(layer))

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: PagedBatch | None,
        output: Tensor,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        """Attention of queries [tokens, heads, head] into `output`, over keys that are in the cache
        already. Raises NotImplementedError for a quantised output."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("attention with a quantised output")
        if attn_metadata is None:
            return output
        batch, rows = attn_metadata, attn_metadata.num_actual_tokens
        keys, values = self._caches(kv_cache)
        q = query[:rows].view(rows, self.num_heads, self.head_size)
        result = _attend(
            q,
            keys,
            values,
            batch.starts,
            batch.block_table,
            batch.lengths,
            **self.options,
            **self._scales(layer),
        )
        output[:rows].view_as(result).copy_(result)
        return output

    def _caches(self, kv_cache: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [blocks, block size, heads, head] in the dtype they are stored in."""
        keys, values = kv_cache.transpose(1, 2).split(self.head_size, dim=-1)
        if self._stored is None:
            return keys, values
        return keys.view(self._stored), values.view(self._stored)

    def _scales(self, layer: Any) -> dict[str, Tensor]:
        if self._stored is None:
            return {}
        return {"k_scale": layer._k_scale, "v_scale": layer._v_scale}


__all__ = ["PagedBatch", "PagedBatchBuilder", "WavecastAttention", "WavecastAttentionBackend"]
