"""Multi-head latent attention over vLLM's paged cache of compressed keys and values."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, ClassVar, Final

import torch
from torch import Tensor
from vllm.model_executor.layers.attention.mla_attention import (
    MLACommonBackend,
    MLACommonImpl,
    MLACommonMetadata,
)
from vllm.v1.attention.backend import AttentionType, MultipleOf
from vllm.v1.attention.backends.mla.prefill.base import MLAPrefillBackend

from wavecast.frameworks.serving import gather_tokens, starts_of
from wavecast.frameworks.vllm.attention import CACHE_DTYPES, cache_dtype
from wavecast.frameworks.vllm.served import serve

_prefill: Final = serve("MLAAttention", "mla_prefill")
_decode: Final = serve("MLAAttention", "mla_decode")
_write: Final = serve("MLAAttention", "mla_cache_write")


class WavecastMLABackend(MLACommonBackend):
    """`wavecast.ops.mla_prefill`, `mla_decode` and `mla_cache_write` as a backend of vLLM."""

    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[Any]] = list(CACHE_DTYPES)

    @staticmethod
    def get_name() -> str:
        """The name of an attention backend that is not vLLM's."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[WavecastMLA]:
        """The class of a layer's attention."""
        return WavecastMLA

    @classmethod
    def get_supported_head_sizes(cls) -> list[int]:
        """Sizes of latent and rotary parts together, of those that `mla_decode` takes, that vLLM
        knows: 256 + 64 and 512 + 64."""
        return [320, 576]

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        """Blocks of any multiple of 16 tokens."""
        return [MultipleOf(16)]


class WavecastMLAPrefill(MLAPrefillBackend):
    """Attention of new tokens, and of these over chunks of their context."""

    @staticmethod
    def get_name() -> str:
        """Its name in vLLM's messages."""
        return "WAVECAST_MLA"

    def run_prefill_new_tokens(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        return_softmax_lse: bool,
        out: Tensor | None = None,
        output_scale: Tensor | None = None,
    ) -> Any:
        """Causal attention of queries and keys [tokens, heads, head] among themselves. Raises
        NotImplementedError for a quantised output."""
        if out is not None or output_scale is not None:
            raise NotImplementedError("attention with a quantised output")
        starts, most = self._prefill_metadata.query_start_loc, self._prefill_metadata.max_query_len
        output = self.attend(q, k, v, starts, starts, most, most, causal=True)
        return output if return_softmax_lse else output[0]

    def run_prefill_context_chunk(
        self, chunk: Any, q: Tensor, k: Tensor, v: Tensor, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attention of new tokens over a chunk of their context, and the logarithm of its
        denominators [heads, tokens]."""
        limits = (chunk.max_query_len, chunk.max_seq_len)
        return self.attend(q, k, v, chunk.query_start_loc, chunk.cu_seq_lens, *limits, causal=False)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        starts_q: Tensor,
        starts_k: Tensor,
        max_q: int,
        max_k: int,
        *,
        causal: bool,
    ) -> tuple[Tensor, Tensor]:
        """`mla_prefill` of queries and keys whose rotary parts are their last elements; those of
        keys are equal in all heads."""
        parts = (self.qk_nope_head_dim, self.qk_rope_head_dim)
        q_nope, q_rope = q.split(parts, dim=-1)
        k_nope, k_rope = k.split(parts, dim=-1)
        return _prefill(
            q_nope, q_rope, k_nope, k_rope[:, 0], v, starts_q, starts_k, max_q, max_k,
            causal, self.scale,
        )  # fmt: skip


class WavecastMLA(MLACommonImpl[MLACommonMetadata]):
    """Attention of one layer. The cache is [blocks, block size, latent + rope]."""

    def __init__(self, **kwargs: Any) -> None:
        if kwargs["attn_type"] != AttentionType.DECODER or kwargs["sliding_window"]:
            raise NotImplementedError("latent attention with a window")
        super().__init__(**kwargs)
        self.supports_quant_query_input = False
        self._stored = cache_dtype(kwargs["kv_cache_dtype"])

    def do_kv_cache_update(
        self,
        kv_c_normed: Tensor,
        k_pe: Tensor,
        kv_cache: Tensor,
        slot_mapping: Tensor,
        kv_cache_dtype: str,
        k_scale: Tensor,
        skip_scale: bool = False,
    ) -> None:
        """Write compressed keys and values [tokens, latent] with their rotary parts to their slots;
        fp8 divided by `k_scale`."""
        if not kv_cache.numel():
            return
        slots = slot_mapping.flatten()
        rope = k_pe.view(k_pe.shape[0], -1)[: slots.shape[0]]
        scale = None if self._stored is None or skip_scale else k_scale
        _write(kv_c_normed[: slots.shape[0]], rope, self._cache(kv_cache), slots, scale)

    def forward_mqa(
        self,
        q: Tensor | tuple[Tensor, Tensor],
        kv_c_and_k_pe_cache: Tensor,
        attn_metadata: MLACommonMetadata,
        layer: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Decode: one query [heads, latent + rope] per sequence. No logarithms of denominators."""
        batch = attn_metadata.decode
        assert batch is not None
        whole = torch.cat(q, dim=-1) if isinstance(q, tuple) else q
        scale = None if self._stored is None else layer._k_scale
        cache = self._cache(kv_c_and_k_pe_cache)
        output = _decode(
            whole, cache, batch.block_table, batch.seq_lens, self.scale, scale,
            self.qk_rope_head_dim,
        )  # fmt: skip
        return output, None

    def forward_mha(
        self,
        q: Tensor,
        kv_c_normed: Tensor,
        k_pe: Tensor,
        kv_c_and_k_pe_cache: Tensor,
        attn_metadata: MLACommonMetadata,
        k_scale: Tensor,
        output: Tensor,
        output_scale: Tensor | None = None,
    ) -> None:
        """Prefill: new tokens over themselves and, where they have one, over their context, whose
        compressed keys are read from the cache and expanded."""
        prefill: Any = attn_metadata.prefill
        if prefill.chunked_context is None:
            arguments = (q, kv_c_normed, k_pe, kv_c_and_k_pe_cache, attn_metadata, k_scale, output)
            super().forward_mha(*arguments, output_scale)
            return
        lengths = prefill.chunked_context.context_lens.long() + prefill.query_start_loc.diff()
        latent = gather_tokens(self._cache(kv_c_and_k_pe_cache), prefill.block_table, lengths)
        if self._stored is not None:
            latent = (latent.float() * k_scale).to(q.dtype)
        expanded = self.kv_b_proj(latent[:, : self.kv_lora_rank].contiguous())[0]
        expanded = expanded.view(-1, self.num_heads, self.qk_nope_head_dim + self.v_head_dim)
        k_nope, v = expanded.split([self.qk_nope_head_dim, self.v_head_dim], dim=-1)
        k = self._concat_k_nope_k_pe(k_nope, latent[:, None, self.kv_lora_rank :])
        result, _ = prefill.prefill_backend.attend(
            q, k, v, prefill.query_start_loc, starts_of(lengths), prefill.max_query_len,
            int(lengths.max()), causal=True,
        )  # fmt: skip
        output.view_as(result).copy_(result)

    def _cache(self, cache: Tensor) -> Tensor:
        return cache if self._stored is None else cache.view(self._stored)


__all__ = ["WavecastMLA", "WavecastMLABackend", "WavecastMLAPrefill"]
