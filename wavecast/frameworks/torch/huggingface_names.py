"""`attn_implementation="wavecast"` for models of transformers. Importing this module registers the
name; it is imported as soon as a program imports transformers' attention (`library.install`)."""

from __future__ import annotations

from wavecast.frameworks.torch.huggingface_attention import register

register()
