"""Attention of Hugging Face models: transformers looks the function up in a registry, by name, at
every call, and asks a second registry, by the same name, for the mask.

Masks are only materialised where positions do not say what is seen: padding, packed sequences,
blocks, caches of fixed length. A causal mask, with a window or not, is none at all; the layer then
tells the attention function its window, as it does with flash attention. Models that do not know
flash attention may not tell it, so their windows stay masks.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wavecast.frameworks.torch.replaced import Done, Left, Replaced, note
from wavecast.frameworks.torch.substitutes import (
    Reason,
    autocast_operands,
    mask_operand,
    why_not,
)

NAME: Final = "wavecast"
"""`attn_implementation`: right for all models, windows are masks."""
WINDOWED: Final = "wavecast_windows"
"""The name for models whose layers tell their windows."""

OPERATOR: Final = "attention"


def replace(model: Any, account: Replaced) -> None:
    """Have a model of transformers look up the library's attention."""
    before = getattr(model.config, "_attn_implementation", None)
    layers = {path: layer for path, layer in model.named_modules() if _looks_up(type(layer))}
    account.left += [
        Left(path, type(module).__name__, "does not look its attention up")
        for path, module in model.named_modules()
        if "Attention" in type(module).__name__
        and not any(_looks_up(type(part)) for part in module.modules())
    ]
    if before is None or not hasattr(model, "set_attn_implementation") or not layers:
        return
    name, reason = WINDOWED if _knows_windows(model) else NAME, _extends_masks(model)
    register()
    if reason is None:
        model.set_attn_implementation(name)
        if model.config._attn_implementation != name:
            reason = f"{type(model).__name__} keeps {before}"
    if reason:
        account.left += [Left(path, type(layer).__name__, reason) for path, layer in layers.items()]
        return
    account.pending += [
        Done(path, type(layer).__name__, OPERATOR) for path, layer in layers.items()
    ]

    def back() -> None:
        model.set_attn_implementation(before)
        account.pending.clear()

    account.undoing.append(back)


@functools.cache
def _looks_up(kind: type[nn.Module]) -> bool:
    """Whether the forward of a class asks the registry of attention functions."""
    code = getattr(inspect.unwrap(kind.forward), "__code__", None)
    return code is not None and "ALL_ATTENTION_FUNCTIONS" in code.co_names


def _extends_masks(model: nn.Module) -> Reason:
    """The reason against models that support only attention written out, whose masks are always
    there and may be added to, as for the compressed keys of DeepSeek-V4."""
    from transformers.modeling_utils import PreTrainedModel

    for module in model.modules():
        supports = [getattr(module, f"_supports_{one}", True) for one in ("sdpa", "flash_attn")]
        if isinstance(module, PreTrainedModel) and not any(supports):
            return f"{type(module).__name__} supports neither sdpa nor flash attention"
    return None


def _knows_windows(model: nn.Module) -> bool:
    """Whether layers say their windows, and the release of transformers asks `mask` as it is."""
    from transformers.masking_utils import sdpa_mask
    from transformers.modeling_utils import PreTrainedModel

    if "q_length" not in inspect.signature(sdpa_mask).parameters:
        return False
    parts = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    return all(getattr(module, "_supports_flash_attn", False) for module in parts)


def register() -> None:
    """Add the library's attention and its masks to the registries of transformers."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import AttentionInterface

    AttentionInterface.register(WINDOWED, attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(WINDOWED, mask)
    AttentionInterface.register(NAME, masked_attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    *,
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    config: Any = None,
    **kwargs: Any,
) -> Tensor | None:
    """A mask function of transformers: None where causal attention, in the layer's window, from the
    last query at the last key is all there is to it; else the mask of its sdpa."""
    from transformers.masking_utils import sdpa_mask

    chunks = local_size is not None and getattr(config, "attention_chunk_size", None) is not None
    if (
        allow_is_causal_skip  # else it is bidirectional, or something was added to it
        and not chunks
        and _last_at_last(q_offset, q_length, kv_offset, kv_length)
        and _all_seen(attention_mask, kv_length, kv_offset)
    ):
        return None
    return sdpa_mask(
        batch_size,
        q_length,
        kv_length,
        q_offset,
        kv_offset,
        attention_mask=attention_mask,
        local_size=local_size,
        allow_is_causal_skip=False,  # sdpa aligns the first query with the first key
        config=config,
        **kwargs,
    )


def _last_at_last(q_offset: Any, q_length: int, kv_offset: int, kv_length: int) -> bool:
    """Not so in caches of fixed length, whose offset is a tensor."""
    return isinstance(q_offset, int) and q_offset + q_length == kv_offset + kv_length


def _all_seen(padding: Tensor | None, kv_length: int, kv_offset: int) -> bool:
    """Whether a padding mask, [batch, tokens so far], has no padding among the keys there are."""
    if padding is None:
        return True
    from transformers.utils.import_utils import is_tracing

    if is_tracing(padding) or padding.dim() != 2:
        return False  # a graph cannot depend on its values
    visible = padding[:, kv_offset : kv_offset + kv_length]
    return visible.shape[1] == kv_length and bool(visible.all())


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """An attention function of transformers: [batch, heads, tokens, width] in, tokens before heads
    out. Without a mask the last query is aligned with the last key; a mask of booleans says all
    that is seen. What the operator does not have goes to transformers' own, and into the account of
    the model."""
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    window = _window(module, kwargs) if causal else None
    left = -1 if window is None else window - 1
    chosen = kwargs.pop("indices", None)
    if chosen is not None:  # layers leave it to functions of other names than transformers' own
        if attention_mask is None and causal:
            attention_mask = _causal(query.shape[2], key.shape[2], left, query.device)
        attention_mask = _chosen(chosen, key.shape[2], attention_mask, query.dtype)
    blocks = kwargs.pop("block_indices", None)
    if blocks is not None:
        attention_mask = _chosen_blocks(module, blocks, query, key, attention_mask, kwargs)
    if attention_mask is not None:  # it says what is causal as well
        causal, left = False, -1
    reason = _left_why(query, key, value, attention_mask, kwargs)
    note(module, OPERATOR, reason)
    if reason:
        if attention_mask is None and causal:
            attention_mask = _causal(query.shape[2], key.shape[2], left, query.device)
        return _transformers_attention(
            module, query, key, value, attention_mask, dropout, scaling, causal, kwargs
        )
    q, k, v = (tensor.transpose(1, 2) for tensor in autocast_operands(query, key, value))
    mask = None
    if attention_mask is not None:
        mask = mask_operand(attention_mask, q.shape[1], k.shape[1])
    out, _ = torch.ops.wavecast.attention(
        q,
        k,
        v,
        causal=causal,
        scale=scaling,
        left=left,
        sinks=kwargs.get("s_aux"),
        soft_cap=kwargs.get("softcap") or 0.0,
        dropout=dropout,
        seed=int(torch.randint(2**31, ())) if dropout else 0,
        mask=mask,
    )
    return out, None


def masked_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """`attention` by the conventions of sdpa: windows are masks, and where causal attention has
    more keys than queries, but more than one, the first query is aligned with the first key."""
    queries = query.shape[2]
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    if causal and attention_mask is None and 1 < queries < key.shape[2]:
        key, value = key[:, :, :queries], value[:, :, :queries]
    kwargs["sliding_window"] = None
    return attention(module, query, key, value, attention_mask, dropout, scaling, causal, **kwargs)


def _window(module: Any, kwargs: dict[str, Any]) -> int | None:
    """How many keys a query sees, itself among them: as told, else as the configuration says of
    this layer."""
    if "sliding_window" in kwargs:
        return kwargs["sliding_window"]
    config, number = getattr(module, "config", None), getattr(module, "layer_idx", None)
    kinds = getattr(config, "layer_types", None)
    if kinds is None or number is None or kinds[number] != "sliding_attention":
        return None
    return getattr(config, "sliding_window", None)


def _left_why(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, kwargs: dict[str, Any]
) -> Reason:
    if kwargs.get("position_bias") is not None:
        return "a bias of positions"
    if kwargs.get("sinks") is not None:
        return "sinks of queries"
    if kwargs.get("cache") is not None:
        return "a paged cache"
    operands = (query, key, value, attention_mask)
    return why_not(F.scaled_dot_product_attention, operands, {"enable_gqa": True})


def _chosen(indices: Tensor, keys: int, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
    """A mask and the keys that an indexer chose for every query (DeepSeek-V3.2, GLM-5), indices
    [batch, queries, some], as one mask [batch, heads or 1, queries, keys]."""
    seen = torch.zeros(*indices.shape[:2], keys, dtype=torch.bool, device=indices.device)
    seen = seen.scatter(-1, indices.long(), True)[:, None]
    if mask is None or mask.dtype == torch.bool:
        return seen if mask is None else seen & mask
    return mask.masked_fill(~seen, torch.finfo(dtype).min)


def _chosen_blocks(
    module: Any,
    blocks: Tensor,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    kwargs: dict[str, Any],
) -> Tensor:
    """A mask and the blocks of keys that an indexer chose for every query (MiniMax-M3), as one mask
    of booleans [batch, heads, queries, keys]."""
    queries, keys = query.shape[2], key.shape[2]
    positions = kwargs.get("position_ids")
    if positions is None:
        positions = torch.arange(keys - queries, keys, device=query.device)
    positions = positions.expand(query.shape[0], -1)
    numbers = module.indexer.build_block_mask(
        blocks, mask, keys, query.dtype, query.device, positions
    )
    return numbers == 0


def _causal(queries: int, keys: int, left: int, device: torch.device) -> Tensor:
    """What may be seen, [1, 1, queries, keys], the last query at the last key."""
    i = torch.arange(keys - queries, keys, device=device)[:, None]
    j = torch.arange(keys, device=device)[None, :]
    visible = j <= i
    return (visible & (j >= i - left) if left >= 0 else visible)[None, None]


def _transformers_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    scaling: float | None,
    causal: bool,
    kwargs: dict[str, Any],
) -> tuple[Tensor, None]:
    """Transformers' attention: sdpa, or, for the caps and sinks that has not, the model's own."""
    if all(kwargs.get(name) is None for name in ("softcap", "s_aux", "sinks")):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, causal, **kwargs
        )
    if attention_mask is not None and attention_mask.dtype == torch.bool:
        hidden = torch.full_like(attention_mask, torch.finfo(query.dtype).min, dtype=query.dtype)
        attention_mask = hidden.masked_fill(attention_mask, 0.0)
    out, _ = _eager(module)(
        module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **kwargs
    )
    return out, None


def _eager(module: nn.Module) -> Any:
    """The attention written out in the file of a module's class, or of a class that it extends."""
    for kind in type(module).__mro__:
        function = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if function is not None:
            return function
    raise NotImplementedError(f"{type(module).__name__} has no attention written out")


__all__ = ["NAME", "WINDOWED", "attention", "mask", "masked_attention", "register", "replace"]
