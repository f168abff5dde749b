"""Small models with random weights, made by transformers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from safetensors.torch import load_file, save_file
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
    "qwen3_moe_128": (
        "Qwen3Moe",
        {**_EXPERTS, "moe_intermediate_size": 128, "num_experts": 4, "head_dim": 32},
    ),
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


def _fp8(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes with one scale, the scale, and the values they mean."""
    scale = weight.abs().max() / 448
    codes = (weight / scale).to(torch.float8_e4m3fn)
    return codes, scale, codes.float() * scale


def _fp8_block(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same for a matrix that is one block of 128 by 128."""
    codes, scale, values = _fp8(weight)
    return codes, scale.view(1, 1), values


_E2M1: Final = torch.tensor([0.0, 0.5, 1, 1.5, 2, 3, 4, 6])


def _mxfp4(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two codes to a byte, the first in the low bits; a power of two per 32 columns."""
    blocks = weight.view(weight.shape[0], -1, 32)
    power = blocks.abs().amax(-1).log2().floor() - 2
    scaled = blocks / power.exp2()[..., None]
    codes = (scaled.abs()[..., None] - _E2M1).abs().argmin(-1)
    values = (_E2M1[codes] * scaled.sign() * power.exp2()[..., None]).view_as(weight)
    codes = (codes + 8 * (scaled < 0)).view(*weight.shape[:-1], -1, 2).to(torch.uint8)
    return codes[..., 0] | codes[..., 1] << 4, (power + 127).to(torch.uint8), values


_LINEAR: Final = [
    f"model.layers.{layer}.{name}"
    for layer in range(2)
    for name in (*(f"self_attn.{one}_proj" for one in "qkvo"), "mlp.gate")
]
EXPERTS: Final[dict[str, tuple[Callable[..., Any], str, dict[str, Any]]]] = {
    "fp8": (_fp8, "weight_scale", {"modules_to_not_convert": _LINEAR}),
    "fp8_block": (
        _fp8_block,
        "weight_scale_inv",
        {"modules_to_not_convert": _LINEAR, "weight_block_size": [128, 128]},
    ),
    "mxfp4": (_mxfp4, "weight_scale", {}),
}
"""How experts are quantised, the name of their scales, and more of the configuration."""


def quantise_experts(model: Any, folder: Path, format: str) -> None:
    """Quantise the experts of a saved Qwen3-MoE in `folder`; `model` gets the values they mean."""
    quantise, scales, more = EXPERTS[format]
    path = folder / "model.safetensors"
    found: dict[str, torch.Tensor] = {}
    for name, weight in load_file(path).items():
        matched = re.fullmatch(r"(.*\.experts)\.(\d+)\.(gate|up|down)_proj\.weight", name)
        if not matched:
            found[name] = weight
            continue
        codes, scale, values = quantise(weight.float())
        found |= {name: codes, name.removesuffix("weight") + scales: scale}
        experts = model.get_submodule(matched[1])
        half = values.shape[0]
        rows = {"gate": slice(half), "up": slice(half, None), "down": slice(None)}[matched[3]]
        fused = experts.down_proj if matched[3] == "down" else experts.gate_up_proj
        fused.data[int(matched[2]), rows] = values
    save_file(found, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    method = {"quant_method": format.split("_")[0], "activation_scheme": "dynamic", **more}
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": method}))


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
