"""What is registered with vLLM, and the rows of the report of layers."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

OTHERWISE = {
    "Attention": "a backend",
    "MLAAttention": "a backend",
    "FusedMoE": "methods of layers",
    "Sampler": "the worker",
}
"""Layers that the library serves without a class of its own for them."""


def test_layers_that_rows_name_are_replaced(vllm: Any) -> None:
    """Rows with operators name layers that vLLM makes ours, other rows layers that it does not."""
    from vllm.model_executor.custom_op import op_registry_oot
    from vllm.model_executor.layers.quantization import get_quantization_config
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    from wavecast.frameworks.vllm import registration
    from wavecast.frameworks.vllm.attention import WavecastAttentionBackend
    from wavecast.pipeline.models.engine_layers import LAYERS, Uncovered

    registration.register()
    registration.register()
    served, left = set(), set()
    for row in LAYERS.values():
        (left if isinstance(row.served, Uncovered) else served).update(row.name.split(", "))
    assert served - OTHERWISE.keys() <= op_registry_oot.keys()
    assert not (left - served) & op_registry_oot.keys()
    assert "UnquantizedFusedMoEMethod" in op_registry_oot
    assert AttentionBackendEnum.CUSTOM.get_class() is WavecastAttentionBackend
    for name in ("fp8", "mxfp4", "compressed-tensors", "experts_int8"):
        assert get_quantization_config(name).__module__.startswith("wavecast.")
