"""What is registered with vLLM."""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from vllm.model_executor.custom_op import op_registry_oot
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

from wavecast.integrations.vllm import experts, layers, linear

_ATTENTION = "wavecast.integrations.vllm.attention.WavecastAttentionBackend"


def register() -> None:
    """Register the attention backend as CUSTOM, and a layer for each of vLLM's that the library
    covers. A second call does nothing."""
    register_backend(AttentionBackendEnum.CUSTOM, _ATTENTION)
    for layer in (*layers.LAYERS, *linear.LAYERS, *experts.LAYERS):
        base = layer.__mro__[1]
        if base.__name__ not in op_registry_oot:
            base.register_oot(layer)


__all__ = ["register"]
