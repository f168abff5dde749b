"""Multi-head latent attention over SGLang's cache of compressed keys and values.

Extend writes the latent vectors of new tokens, expands those of whole sequences from the cache,
and attends with whole heads; decode attends to the cache with absorbed weights.
"""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from wavecast.frameworks.serving import gather_tokens, starts_of
from wavecast.frameworks.sglang.attention import SglangAttentionBackend
from wavecast.frameworks.sglang.served import serve

_prefill: Final = serve("MLAAttention", "mla_prefill")
_decode: Final = serve("MLAAttention", "mla_decode")
_write: Final = serve("MLAAttention", "mla_cache_write")


def forward_method(attn: Any, forward_batch: Any) -> Any:
    """Which of DeepSeek's forward methods of SGLang runs: whole heads for new tokens, absorbed
    weights for decode. Raises NotImplementedError for sparse attention."""
    from sglang.srt.models.deepseek_common.attention_forward_methods.forward_methods import (
        AttnForwardMethod,
    )

    if attn.use_dsa:
        raise NotImplementedError("sparse latent attention")
    extend = forward_batch.forward_mode.is_extend_without_speculative()
    return AttnForwardMethod.MHA if extend else AttnForwardMethod.MLA


class SglangLatentBackend(SglangAttentionBackend):
    """`wavecast.ops.mla_prefill`, `mla_decode` and `mla_cache_write` as an attention backend of
    SGLang, for models of DeepSeek's kind. Raises NotImplementedError as its base."""

    latent = True

    def __init__(self, model_runner: Any) -> None:
        super().__init__(model_runner)
        config = model_runner.model_config
        self.kv_lora_rank: int = config.kv_lora_rank
        self.qk_nope_head_dim: int = config.qk_nope_head_dim
        self.qk_rope_head_dim: int = config.qk_rope_head_dim

    def prepare_prefill_qkv(
        self,
        *,
        q: Tensor,
        q_pe: Tensor,
        kv_a: Tensor,
        k_pe: Tensor,
        positions: Tensor,
        layer: Any,
        forward_batch: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [new tokens, heads, nope + rope] with their rotary part rotated, and keys and
        values [tokens, heads, …] of whole sequences, expanded from the cache, to which the latent
        vectors `kv_a` [new tokens, latent] and rotary parts `k_pe` [new tokens, 1, rope] have been
        written. SGLang calls it for every layer of a step that extends."""
        if layer.rotary_emb is not None:
            q_pe, k_pe = layer.rotary_emb(positions, q_pe, k_pe)
        q[..., self.qk_nope_head_dim :] = q_pe
        cache, scale = self._latent(layer.attn_mha)
        slots = forward_batch.out_cache_loc.to(torch.int64)
        _write(kv_a, k_pe.reshape(kv_a.shape[0], -1), cache, slots, scale)
        batch: Any = self.forward_metadata
        latents = gather_tokens(cache, batch.pages, batch.lengths)
        if scale is not None:
            latents = (latents.float() * scale).to(q.dtype)
        expanded = layer.kv_b_proj(latents[:, : self.kv_lora_rank].contiguous())[0]
        expanded = expanded.view(latents.shape[0], q.shape[1], -1)
        rotated = latents[:, None, self.kv_lora_rank :].expand(-1, q.shape[1], -1)
        keys = torch.cat([expanded[..., : self.qk_nope_head_dim], rotated], dim=-1)
        return q, keys, expanded[..., self.qk_nope_head_dim :].contiguous()

    def forward_extend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        sinks: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Attention of new tokens over keys and values of `prepare_prefill_qkv`. Raises
        NotImplementedError for other ones, and for what the kernel lacks."""
        self._refuse(layer, sinks, kwargs)
        if save_kv_cache:
            raise NotImplementedError("latent attention of new tokens with absorbed weights")
        heads, width = layer.tp_q_head_num, layer.qk_head_dim
        parts = (self.qk_nope_head_dim, self.qk_rope_head_dim)
        q_nope, q_rope = q.view(-1, heads, width).split(parts, dim=-1)
        k_nope, k_rope = k.view(-1, heads, width).split(parts, dim=-1)
        batch: Any = self.forward_metadata
        starts_k = starts_of(batch.lengths)
        most = int(batch.starts.diff().max()), int(batch.lengths.max())
        output, _ = _prefill(
            q_nope, q_rope, k_nope, k_rope[:, 0], v.view(-1, heads, layer.v_head_dim),
            batch.starts, starts_k, *most, True, float(layer.scaling),
        )  # fmt: skip
        return output.reshape(-1, heads * layer.v_head_dim)

    def forward_decode(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        sinks: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """One query [heads · (latent + rope)] per sequence with absorbed weights; `k` [sequences,
        1, latent + rope] is written to the cache before. Raises NotImplementedError for what the
        kernel lacks."""
        self._refuse(layer, sinks, kwargs)
        width = self.kv_lora_rank + self.qk_rope_head_dim
        cache, scale = self._latent(layer)
        if save_kv_cache:
            new = k.reshape(-1, width)
            slots = forward_batch.out_cache_loc.to(torch.int64)
            parts = new[:, : self.kv_lora_rank], new[:, self.kv_lora_rank :]
            _write(*parts, cache, slots, scale)
        batch: Any = self.forward_metadata
        output = _decode(
            q.reshape(-1, layer.tp_q_head_num, width), cache, batch.pages, batch.lengths,
            float(layer.scaling), scale, self.qk_rope_head_dim,
        )  # fmt: skip
        return output.reshape(-1, layer.tp_q_head_num * self.kv_lora_rank)

    def _latent(self, layer: Any) -> tuple[Tensor, Tensor | None]:
        """The cache [pages, page size, latent + rope], and its scale where it has 8 bits."""
        buffer = self.token_to_kv_pool.get_key_buffer(layer.layer_id)
        width = self.kv_lora_rank + self.qk_rope_head_dim
        cache = buffer.view(-1, self.page_size, width)
        if buffer.dtype.itemsize > 1:
            return cache, None
        scale = 1.0 if layer.k_scale_float is None else layer.k_scale_float
        return cache, torch.tensor(scale, device=cache.device)

    def _refuse(self, layer: Any, sinks: Tensor | None, kwargs: dict[str, Any]) -> None:
        features = {
            "a window": layer.sliding_window_size > 0,
            "a soft cap": bool(layer.logit_cap),
            "sinks": sinks is not None,
            **{f"the argument {name}": value is not None for name, value in kwargs.items()},
        }
        for what, is_used in features.items():
            if is_used:
                raise NotImplementedError(f"latent attention with {what}")


__all__ = ["SglangLatentBackend", "forward_method"]
