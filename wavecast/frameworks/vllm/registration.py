"""What is registered with vLLM."""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any

from vllm.model_executor.custom_op import op_registry_oot
from vllm.model_executor.kernels import linear as registry
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.platforms import current_platform
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

from wavecast.frameworks.vllm import (
    experts,
    integer_experts,
    layers,
    linear,
    preferred,
    quantised,
    quantised_experts,
)


def register(*, local: bool = False) -> None:
    """Register the attention backend as CUSTOM, a layer for each of vLLM's that the library covers,
    kernels of quantised linear layers as the first of this platform, and formats of checkpoints
    whose experts are quantised. With `local`, have the platform of vLLM's GPU choose the attention.
    A second call does nothing."""
    register_backend(AttentionBackendEnum.CUSTOM, preferred.ATTENTION)
    for layer in (*layers.LAYERS, *linear.LAYERS, *experts.LAYERS, *quantised.LAYERS):
        base = next(parent for parent in layer.__mro__[1:] if parent.__module__.startswith("vllm."))
        if base.__name__ not in op_registry_oot:
            base.register_oot(layer)
    tables: dict[str, dict[Any, list[type[Any]]]] = {
        "fp8": registry._POSSIBLE_FP8_KERNELS,
        "fp8_block": registry._POSSIBLE_FP8_BLOCK_KERNELS,
        "int8": registry._POSSIBLE_INT8_KERNELS,
        "mp": registry._POSSIBLE_KERNELS,
    }
    for name, kernel in quantised.KERNELS.items():
        kernels = tables[name].setdefault(current_platform._enum, [])
        if kernel not in kernels:  # vLLM's own function appends: others would be chosen first
            kernels.insert(0, kernel)
    for name, config in (quantised_experts.CONFIGS | integer_experts.CONFIGS).items():
        register_quantization_config(name)(config)
    if local:
        preferred.prefer(type(current_platform))


__all__ = ["register"]
