"""Prints, as JSON, which functions and classes serve SGLang's layers on a platform that SGLang has
itself, by the SGLang that is installed: `python -m tests.frameworks.sglang.served_locally`."""

from __future__ import annotations

import json
from typing import Any


def main() -> dict[str, str]:
    from sglang.srt.plugins import load_plugins

    load_plugins()
    import torch
    from sglang.srt.arg_groups import model_override_base
    from sglang.srt.arg_groups.choices import ATTENTION_BACKEND_CHOICES
    from sglang.srt.layers import activation, layernorm, quantization
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS
    from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding
    from sglang.srt.model_executor.model_runner import ModelRunner
    from sglang.srt.platforms import current_platform

    rotary = RotaryEmbedding.__new__(RotaryEmbedding)  # its tables need a GPU's extension
    torch.nn.Module.__init__(rotary)
    layers = {
        "RMSNorm": layernorm.RMSNorm(64),
        "GemmaRMSNorm": layernorm.GemmaRMSNorm(64),
        "SiluAndMul": activation.SiluAndMul(),
        "GeluAndMul": activation.GeluAndMul(),
        "RotaryEmbedding": rotary,
        "QuickGELU": activation.QuickGELU(),
    }
    found = {name: place(layer._resolve_forward_method()) for name, layer in layers.items()}
    return {
        **found,
        "platform": type(current_platform).__name__,
        "fp8": place(quantization.get_quantization_config("fp8")),
        "awq": place(quantization.get_quantization_config("awq")),
        "load_model": place(hook_of(ModelRunner.load_model)),
        "default attention": place(hook_of(model_override_base.get_default_attn_backend)),
        "choices": str("wavecast" in ATTENTION_BACKEND_CHOICES),
        "backends": str("wavecast" in ATTENTION_BACKENDS),
    }


def hook_of(function: Any) -> Any:
    """The hook in what SGLang made of a function that has one, else the function."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    hooks = [one for cell in cells for one in (cell if isinstance(cell, (list, tuple)) else [cell])]
    ours = [one for one in hooks if getattr(one, "__module__", "").startswith("wavecast.")]
    return ours[0] if ours else function


def place(what: Any) -> str:
    return f"{what.__module__}.{what.__qualname__}"


if __name__ == "__main__":
    print(json.dumps(main()))
