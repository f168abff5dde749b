"""Small models with random weights, made by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

_SIZES: Final[dict[str, Any]] = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}
_EXPERTS: Final[dict[str, Any]] = {"moe_intermediate_size": 64, "num_experts_per_tok": 2}
_LATENT: Final[dict[str, Any]] = {
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 64,
    "v_head_dim": 32,
    "initializer_range": 0.1,
}
_GROUPED: Final[dict[str, Any]] = {
    "n_routed_experts": 8,
    "n_group": 2,
    "topk_group": 1,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
}
CONFIGS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "llama": ("Llama", {}),
    "mistral": ("Mistral", {"sliding_window": 16, "head_dim": 32}),
    "qwen3_moe": ("Qwen3Moe", {**_EXPERTS, "num_experts": 8, "head_dim": 32}),
    "deepseek": ("DeepseekV3", {**_EXPERTS, **_LATENT, **_GROUPED}),
}
"""The class of a model and its configuration, by name."""


def saved(name: str, folder: Path) -> Any:
    """A model in float32 whose weights are those saved to `folder` in bfloat16."""
    kind, options = CONFIGS[name]
    config = getattr(transformers, f"{kind}Config")(**{**_SIZES, **options})
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    return model.float().eval()


def rounds_cache(model: Any, dtype: torch.dtype) -> None:
    """Have a model round keys and values to a dtype of 8 bits before it attends."""

    def attention(module: Any, query: Any, key: Any, value: Any, *args: Any, **named: Any) -> Any:
        key, value = (one.to(dtype).to(one.dtype) for one in (key, value))
        return sdpa_attention_forward(module, query, key, value, *args, **named)

    AttentionInterface.register("rounded", attention)
    AttentionMaskInterface.register("rounded", sdpa_mask)
    model.set_attn_implementation("rounded")


def gaps(model: Any, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """How much less the logit of each token is than the largest, after the tokens before it, in
    float32: 0 where it is the largest; as a multiple of what the same model in bfloat16 is off by,
    at most, for these tokens."""
    given = torch.tensor([[*prompt, *tokens]])
    with torch.no_grad():
        exact = model(given).logits[0]
        rough = model.to(torch.bfloat16)(given).logits[0].float()
        model.float()
    noise = float((exact - rough).abs().max())
    rows = exact[len(prompt) - 1 : -1]
    return [float(row.max() - row[token]) / noise for row, token in zip(rows, tokens, strict=True)]
