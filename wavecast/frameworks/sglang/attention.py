"""Attention over SGLang's cache of pages: extend (prefill, chunks of it, prefixes) and decode."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.radix_attention import AttentionType
from torch import Tensor

from wavecast.frameworks.sglang.served import serve

_attend: Final = serve("RadixAttention", "paged_attention")
_write: Final = serve("RadixAttention", "kv_cache_write")


@dataclass(frozen=True, slots=True)
class PagedSequences:
    """A batch as attention takes it: int32 `starts` [sequences + 1] of the rows of queries, int32
    `lengths` [sequences] of their keys and int32 `pages` [sequences, pages]."""

    starts: Tensor
    lengths: Tensor
    pages: Tensor


class SglangAttentionBackend(AttentionBackend):
    """`wavecast.ops.paged_attention` and `kv_cache_write` as an attention backend of SGLang.

    The cache has slots [tokens, heads, head], of which a page is `page_size` in a row. Raises
    NotImplementedError for separate caches of sliding windows.
    """

    latent = False

    def __init__(self, model_runner: Any) -> None:
        super().__init__()
        self.page_size: int = model_runner.page_size
        self.req_to_token_pool = model_runner.req_to_token_pool
        self.token_to_kv_pool = model_runner.token_to_kv_pool
        if self.page_size % 8:
            raise NotImplementedError(f"pages of {self.page_size} tokens: --page-size 16 has more")
        if getattr(self.token_to_kv_pool, "swa_kv_pool", None) is not None:
            raise NotImplementedError("a separate cache for sliding windows")
        if model_runner.use_mla_backend != self.latent:
            raise NotImplementedError("latent attention of another kind than DeepSeek's")

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Find the rows, lengths and pages of a batch's sequences. Raises NotImplementedError for
        modes other than extend, decode and idle."""
        mode = forward_batch.forward_mode
        if mode.is_idle():
            self.forward_metadata = None
            return
        if mode.is_decode():
            rows = torch.ones_like(forward_batch.seq_lens)
        elif mode.is_extend() and not mode.is_target_verify():
            rows = forward_batch.extend_seq_lens
        else:
            raise NotImplementedError(f"attention in mode {mode.name}")
        lengths = forward_batch.seq_lens
        starts = torch.zeros(rows.numel() + 1, dtype=torch.int32, device=rows.device)
        starts[1:] = rows.cumsum(0)
        table = self.req_to_token_pool.req_to_token[forward_batch.req_pool_indices]
        columns = -(-int(lengths.max()) // self.page_size) * self.page_size
        pages = table[:, : columns : self.page_size] // self.page_size
        self.forward_metadata = PagedSequences(
            starts, lengths.to(torch.int32), pages.to(torch.int32).contiguous()
        )

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
        """Write keys and values [tokens, heads, head] to the cache, and attend with queries
        [tokens, heads · head] to it. Raises NotImplementedError for attention that is not
        causal, with another width of values, or with arguments of special backends."""
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, sinks, kwargs)

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
        """As `forward_extend`, with one query per sequence."""
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, sinks, kwargs)

    def _forward(
        self,
        q: Tensor,
        k: Tensor | None,
        v: Tensor | None,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool,
        sinks: Tensor | None,
        kwargs: dict[str, Any],
    ) -> Tensor:
        _refuse(layer, kwargs)
        batch: Any = self.forward_metadata
        heads, width = layer.tp_q_head_num, layer.qk_head_dim
        scales = self._scales(layer)
        keys, values = self._pages(layer)
        if save_kv_cache and k is not None and v is not None:
            shape = (-1, layer.tp_k_head_num, width)
            slots = forward_batch.out_cache_loc.to(torch.int64)
            _write(k.reshape(shape), v.reshape(shape), keys, values, slots, **scales)
        window = layer.sliding_window_size
        output = _attend(
            q.reshape(-1, heads, width),
            keys,
            values,
            batch.starts,
            batch.pages,
            batch.lengths,
            scale=float(layer.scaling),
            window=window + 1 if window > 0 else 0,  # SGLang counts the tokens before a query
            soft_cap=float(layer.logit_cap or 0.0),
            sinks=sinks,
            **scales,
        )
        return output.reshape(-1, heads * width)

    def _pages(self, layer: Any) -> tuple[Tensor, Tensor]:
        """Keys and values [pages, page size, heads, head], in the memory of the cache."""
        pool = self.token_to_kv_pool
        buffers = pool.get_key_buffer(layer.layer_id), pool.get_value_buffer(layer.layer_id)
        return tuple(buffer.view(-1, self.page_size, *buffer.shape[1:]) for buffer in buffers)  # pyright: ignore[reportReturnType]

    def _scales(self, layer: Any) -> dict[str, Tensor]:
        """Scales of a cache of 8 bits; those that a checkpoint lacks are 1."""
        if self.token_to_kv_pool.dtype.itemsize > 1:
            return {}
        scales = {"k_scale": layer.k_scale_float, "v_scale": layer.v_scale_float}
        device = self.token_to_kv_pool.get_key_buffer(layer.layer_id).device
        return {
            name: torch.tensor(1.0 if scale is None else scale, device=device)
            for name, scale in scales.items()
        }


def _refuse(layer: Any, kwargs: dict[str, Any]) -> None:
    """Raises NotImplementedError for what the kernels of a paged cache lack."""
    features = {
        "cross attention": layer.is_cross_attention,
        f"attention of type {layer.attn_type}": layer.attn_type != AttentionType.DECODER,
        "values of another width than keys": layer.v_head_dim != layer.qk_head_dim,
        "temperatures by position": layer.xai_temperature_len > 0,
        **{f"the argument {name}": value is not None for name, value in kwargs.items()},
    }
    for what, is_used in features.items():
        if is_used:
            raise NotImplementedError(f"{what} over a paged cache")


__all__ = ["PagedSequences", "SglangAttentionBackend"]
