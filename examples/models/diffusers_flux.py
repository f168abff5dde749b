"""A diffusion transformer of Diffusers from its config.json: FLUX.1 at 1024 x 1024 pixels.

    pip install diffusers
    wavecast model examples/models/diffusers_flux.py:step --system mi300x,mi355x,h200

The sizes are those of `transformer/config.json` of FLUX.1-dev. For another model give
`from_config` the dictionary that `json.load` reads from its file.
"""

from __future__ import annotations

import torch
from diffusers import FluxTransformer2DModel
from torch import Tensor, nn

CONFIG = {
    "attention_head_dim": 128,
    "guidance_embeds": True,
    "in_channels": 64,
    "joint_attention_dim": 4096,
    "num_attention_heads": 24,
    "num_layers": 19,
    "num_single_layers": 38,
    "patch_size": 1,
    "pooled_projection_dim": 768,
}
IMAGE, TEXT = 64 * 64, 512
"""Tokens: patches of 16 x 16 pixels, and the prompt."""


def step() -> tuple[nn.Module, dict[str, Tensor]]:
    """The transformer in bf16, and the inputs of one step of denoising."""
    with torch.device("meta"):
        model = FluxTransformer2DModel.from_config(CONFIG).to(torch.bfloat16)
    inputs = {
        "hidden_states": torch.empty(1, IMAGE, 64, dtype=torch.bfloat16),
        "encoder_hidden_states": torch.empty(1, TEXT, 4096, dtype=torch.bfloat16),
        "pooled_projections": torch.empty(1, 768, dtype=torch.bfloat16),
        "timestep": torch.empty(1, dtype=torch.bfloat16),
        "guidance": torch.empty(1, dtype=torch.bfloat16),
        "img_ids": torch.empty(IMAGE, 3),
        "txt_ids": torch.empty(TEXT, 3),
    }
    return model.eval(), inputs
