"""What is registered with vLLM."""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from vllm.model_executor.custom_op import op_registry_oot
from vllm.model_executor.kernels import linear as registry
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.model_executor.models import ModelRegistry
from vllm.platforms import current_platform
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

from wavecast.frameworks.vllm import (
    experts,
    host_kernels,
    integer_experts,
    layers,
    linear,
    preferred,
    quantised,
    quantised_experts,
    sparse_mla,
)

AMD_MODELS: Final = {
    "KimiLinearForCausalLM": "vllm.models.kimi_k3.amd.linear:KimiLinearForCausalLM",
}
"""Models that vLLM writes once for each vendor: on a platform from elsewhere it takes
NVIDIA's, which need packages for its GPUs."""

HOST_FUNCTIONS: Final = (
    ("vllm.model_executor.layers.mamba.ops.gather_initial_states", "gather_initial_states"),
    ("vllm.model_executor.layers.mamba.ops.scatter_states", "scatter_states"),
    ("vllm._custom_ops", "selective_scan_fwd"),
)
"""Functions of vLLM that the host executes on an emulated GPU; models import them later."""


def register(*, local: bool = False) -> None:
    """Register the attention backend as CUSTOM, a layer for each of vLLM's that the library covers,
    kernels of quantised linear layers as the first of this platform, and formats of checkpoints
    whose experts are quantised. With `local`, have the platform of vLLM's GPU choose the attention;
    on an emulated GPU models are AMD's. A second call does nothing."""
    register_backend(AttentionBackendEnum.CUSTOM, preferred.ATTENTION)
    register_layers((*layers.LAYERS, *linear.LAYERS, *experts.LAYERS, *quantised.LAYERS))
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
        return
    register_layers((sparse_mla.WavecastSparseAttnIndexer,))
    for name, model in AMD_MODELS.items():
        ModelRegistry.register_model(name, model)
    for module, name in HOST_FUNCTIONS:
        setattr(import_module(module), name, getattr(host_kernels, name))


def register_layers(classes: Iterable[type[Any]]) -> None:
    """Have each stand for the layer of vLLM that it extends, unless another does."""
    for layer in classes:
        base = next(parent for parent in layer.__mro__[1:] if parent.__module__.startswith("vllm."))
        if base.__name__ not in op_registry_oot:
            base.register_oot(layer)


__all__ = ["register"]
