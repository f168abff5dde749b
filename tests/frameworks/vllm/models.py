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
    "moe_layer_freq": 1,
    "scoring_func": "sigmoid",
}
_INDEXER: Final[dict[str, Any]] = {
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 16,
}
_YARN: Final[dict[str, Any]] = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
CONFIGS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "llama": ("Llama", {}),
    "qwen3_128": ("Qwen3", {"num_key_value_heads": 4, "head_dim": 32}),
    "mistral": ("Mistral", {"sliding_window": 16, "head_dim": 32}),
    "qwen3_moe": ("Qwen3Moe", {**_EXPERTS, "num_experts": 8, "head_dim": 32}),
    "qwen3_moe_128": (
        "Qwen3Moe",
        {**_EXPERTS, "moe_intermediate_size": 128, "num_experts": 4, "head_dim": 32},
    ),
    "deepseek": ("DeepseekV3", {**_EXPERTS, **_LATENT, **_GROUPED}),
    "deepseek_sparse": ("DeepseekV32", {**_EXPERTS, **_LATENT, **_GROUPED, **_INDEXER}),
    "deepseek_yarn": ("DeepseekV3", {**_EXPERTS, **_LATENT, **_GROUPED, "rope_parameters": _YARN}),
}
"""The class of a model and its configuration, by name."""


def saved(name: str, folder: Path) -> Any:
    """A model in float32 whose weights are those saved to `folder` in bfloat16."""
    kind, options = CONFIGS[name]
    config = getattr(transformers, f"{kind}Config")(**{**_SIZES, **options})
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    cast_parameters(model, torch.bfloat16)
    model.save_pretrained(folder)
    cast_parameters(model, torch.float32)
    return model


def cast_parameters(model: Any, dtype: torch.dtype) -> None:
    """Convert parameters alone. `model.to` would round buffers, too: the frequencies of rotary
    embeddings, which checkpoints do not have and engines compute in float32."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)


def rounds_cache(model: Any, dtype: torch.dtype) -> None:
    """Have a model round keys and values to a dtype of 8 bits before it attends."""

    def attention(module: Any, query: Any, key: Any, value: Any, *args: Any, **named: Any) -> Any:
        key, value = (one.to(dtype).to(one.dtype) for one in (key, value))
        return sdpa_attention_forward(module, query, key, value, *args, **named)

    AttentionInterface.register("rounded", attention)
    AttentionMaskInterface.register("rounded", sdpa_mask)
    model.set_attn_implementation("rounded")


Stored = tuple[dict[str, torch.Tensor], torch.Tensor]
"""Tensors of a checkpoint by the end of their name, and the values they mean."""


def _fp8(weight: torch.Tensor) -> Stored:
    """Codes with one scale."""
    scale = weight.abs().max() / 448
    codes = (weight / scale).to(torch.float8_e4m3fn)
    return {"weight": codes, "weight_scale": scale}, codes.float() * scale


def _fp8_block(weight: torch.Tensor) -> Stored:
    """The same for squares of 128, which divide the matrix."""
    down, across = (size // 128 for size in weight.shape)
    squares = weight.view(down, 128, across, 128)
    scale = squares.abs().amax((1, 3)) / 448
    codes = (squares / scale[:, None, :, None]).to(torch.float8_e4m3fn)
    values = (codes.float() * scale[:, None, :, None]).view_as(weight)
    return {"weight": codes.view_as(weight), "weight_scale_inv": scale}, values


_E2M1: Final = torch.tensor([0.0, 0.5, 1, 1.5, 2, 3, 4, 6])


def _mxfp4(weight: torch.Tensor) -> Stored:
    """Two codes to a byte, the first in the low bits; a power of two per 32 columns."""
    blocks = weight.view(weight.shape[0], -1, 32)
    power = blocks.abs().amax(-1).log2().floor() - 2
    scaled = blocks / power.exp2()[..., None]
    codes = (scaled.abs()[..., None] - _E2M1).abs().argmin(-1)
    values = (_E2M1[codes] * scaled.sign() * power.exp2()[..., None]).view_as(weight)
    codes = (codes + 8 * (scaled < 0)).view(*weight.shape[:-1], -1, 2).to(torch.uint8)
    packed = codes[..., 0] | codes[..., 1] << 4
    return {"weight": packed, "weight_scale": (power + 127).to(torch.uint8)}, values


def _int8(weight: torch.Tensor) -> Stored:
    """Codes with a scale per row."""
    scale = weight.abs().amax(1, keepdim=True) / 127
    codes = (weight / scale).round()
    return {"weight": codes.to(torch.int8), "weight_scale": scale}, codes * scale


_GROUP: Final = 32


def _packed(codes: torch.Tensor) -> torch.Tensor:
    """Eight codes of four bits of a row to an int32, the first in the low bits."""
    parts = codes.long().view(codes.shape[0], -1, 8) << 4 * torch.arange(8)
    return parts.sum(-1).to(torch.uint32).view(torch.int32)


def _int4(weight: torch.Tensor, zeros: bool = False) -> Stored:
    """Codes less 8, or less a zero point, of groups of 32 columns with a scale."""
    groups = weight.view(weight.shape[0], -1, _GROUP)
    least, most = groups.amin(-1), groups.amax(-1)
    span = (most - least) / 15 if zeros else groups.abs().amax(-1) / 7.5
    scale = span.to(torch.bfloat16)
    zero = (-least / scale.float()).round().clamp(0, 15) if zeros else torch.full_like(least, 8)
    codes = (groups / scale[..., None].float() + zero[..., None]).round().clamp(0, 15)
    values = ((codes - zero[..., None]) * scale[..., None].float()).view_as(weight)
    found = {
        "weight_packed": _packed(codes.view_as(weight)),
        "weight_scale": scale,
        "weight_shape": torch.tensor(weight.shape),
    }
    if zeros:  # packed along the rows
        found["weight_zero_point"] = _packed(zero.T.contiguous()).T.contiguous()
    return found, values


def _int4_zeros(weight: torch.Tensor) -> Stored:
    return _int4(weight, zeros=True)


_LINEAR: Final = [
    f"model.layers.{layer}.{name}"
    for layer in range(2)
    for name in (*(f"self_attn.{one}_proj" for one in "qkvo"), "mlp.gate")
]


def _compressed(format: str, weights: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    """The configuration of compressed-tensors for experts alone."""
    group = {"targets": ["Linear"], "weights": {"type": "int", "dynamic": False, **weights}}
    if inputs:
        group["input_activations"] = {"type": "int", "dynamic": True, **inputs}
    return {
        "quant_method": "compressed-tensors",
        "format": format,
        "config_groups": {"group_0": group},
        "ignore": ["lm_head", *_LINEAR],
    }


def _four_bits(symmetric: bool) -> dict[str, Any]:
    weights = {"num_bits": 4, "symmetric": symmetric, "strategy": "group", "group_size": _GROUP}
    return _compressed("pack-quantized", weights)


_DYNAMIC: Final = {"activation_scheme": "dynamic"}
_FP8: Final = {"quant_method": "fp8", "modules_to_not_convert": _LINEAR, **_DYNAMIC}
EXPERTS: Final[dict[str, tuple[Callable[[torch.Tensor], Stored], dict[str, Any]]]] = {
    "fp8": (_fp8, _FP8),
    "fp8_block": (_fp8_block, {**_FP8, "weight_block_size": [128, 128]}),
    "mxfp4": (_mxfp4, {"quant_method": "mxfp4", **_DYNAMIC}),
    "int8": (
        _int8,
        _compressed(
            "int-quantized",
            {"num_bits": 8, "symmetric": True, "strategy": "channel"},
            num_bits=8,
            symmetric=True,
            strategy="token",
        ),
    ),
    "int4": (_int4, _four_bits(symmetric=True)),
    "int4_zeros": (_int4_zeros, _four_bits(symmetric=False)),
}
"""How experts are quantised, and what the model's configuration says of it."""


LINEAR: Final = {
    name: (
        quantise,
        {**method, "modules_to_not_convert" if name.startswith("fp8") else "ignore": ["lm_head"]},
    )
    for name, (quantise, method) in EXPERTS.items()
    if name.startswith("fp8") or name in ("int8", "int4")
}
"""The same for linear layers."""


def quantise_experts(model: Any, folder: Path, format: str) -> None:
    """Quantise the experts of a saved Qwen3-MoE in `folder`; `model` gets the values they mean."""
    quantise, method = EXPERTS[format]

    def replaced(name: str, weight: torch.Tensor) -> dict[str, torch.Tensor] | None:
        matched = re.fullmatch(r"(.*\.experts)\.(\d+)\.(gate|up|down)_proj\.", name)
        if not matched:
            return None
        stored, values = quantise(weight)
        experts = model.get_submodule(matched[1])
        half = values.shape[0]
        rows = {"gate": slice(half), "up": slice(half, None), "down": slice(None)}[matched[3]]
        fused = experts.down_proj if matched[3] == "down" else experts.gate_up_proj
        fused.data[int(matched[2]), rows] = values
        return stored

    _rewrite(folder, method, replaced)


def quantise_linear(model: Any, folder: Path, format: str) -> None:
    """Quantise the linear layers of a saved Llama in `folder`, but that of the logits; `model` gets
    the values they mean."""
    quantise, method = LINEAR[format]

    def replaced(name: str, weight: torch.Tensor) -> dict[str, torch.Tensor] | None:
        if not name.endswith("_proj."):
            return None
        stored, values = quantise(weight)
        model.get_submodule(name.removesuffix(".")).weight.data = values
        return stored

    _rewrite(folder, method, replaced)


def _rewrite(
    folder: Path,
    method: dict[str, Any],
    replaced: Callable[[str, torch.Tensor], dict[str, torch.Tensor] | None],
) -> None:
    """Give a checkpoint the tensors that replace the weight of a name, if any."""
    path = folder / "model.safetensors"
    found: dict[str, torch.Tensor] = {}
    for name, weight in load_file(path).items():
        start = name.removesuffix("weight")
        stored = replaced(start, weight.float()) or {name.removeprefix(start): weight}
        found |= {start + end: one for end, one in stored.items()}
    save_file(found, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": method}))


def gaps(model: Any, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """How much less the logit of each token is than the largest, after the tokens before it, in
    float32: 0 where it is the largest; as a multiple of what the same model in bfloat16 is off by,
    at most, for these tokens."""
    given = torch.tensor([[*prompt, *tokens]])
    with torch.no_grad():
        exact = model(given).logits[0]
        cast_parameters(model, torch.bfloat16)
        rough = model(given).logits[0].float()
        cast_parameters(model, torch.float32)
    noise = float((exact - rough).abs().max())
    rows = exact[len(prompt) - 1 : -1]
    return [float(row.max() - row[token]) / noise for row, token in zip(rows, tokens, strict=True)]
