"""Prints, as JSON, which class serves which operator in the vLLM that is installed, with the
configuration that vLLM makes by itself on an MI300X:

    python -m tests.frameworks.vllm.served_on_rocm [-CUSTOM_OP …] [attention=BACKEND]

No GPU is needed: `amdsmi` answers as on such a machine, which is all that vLLM's ROCm platform asks
before it loads a model; operators of its compiled extension are declared, not defined.
"""

from __future__ import annotations

import json
import sys
import types
from typing import Any


def stand_in() -> types.ModuleType:
    """What an MI300X says to vLLM through amdsmi."""
    module: Any = types.ModuleType("amdsmi")
    module.AmdSmiException = type("AmdSmiException", (Exception,), {})
    module.AmdSmiMemoryType = types.SimpleNamespace(VRAM=0)
    asic = {"target_graphics_version": "gfx942", "device_id": "0x74a1"}
    answers = {
        "init": None, "shut_down": None, "get_processor_handles": [0], "get_gpu_asic_info": asic,
        "get_gpu_device_uuid": "0", "get_gpu_memory_total": 192 * 2**30, "topo_get_link_type": 0,
        "topo_get_numa_node_number": 0,
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(module, f"amdsmi_{name}", lambda *_, answer=answer: answer)
    return module


def main(arguments: list[str]) -> dict[str, str]:
    sys.modules["amdsmi"] = stand_in()
    import torch
    from vllm.platforms import current_platform

    extension = torch.library.Library("_C", "FRAGMENT")
    for name in ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"):
        extension.define(f"{name}(Tensor(a!) out, Tensor x) -> ()")

    from vllm.config import AttentionConfig, CompilationConfig, VllmConfig, set_current_vllm_config
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    backends = [text.partition("=")[2] for text in arguments if text.startswith("attention=")]
    switches = [text for text in arguments if not text.startswith("attention=")]
    config = VllmConfig(
        compilation_config=CompilationConfig(custom_ops=switches),
        attention_config=AttentionConfig(backend=backends[0] if backends else None),
    )
    served = {
        "platform": type(current_platform).__name__,
        "mode": config.compilation_config.mode.name,
        "backend": config.compilation_config.backend,
        "custom_ops": " ".join(config.compilation_config.custom_ops),
    }
    with set_current_vllm_config(config):
        served |= layers(torch) | linear_kernels(torch) | attention(torch)
        served["in one graph"] = " ".join(in_one_graph(torch))
    return served


def layers(torch: Any) -> dict[str, str]:
    """The method that a layer's forward calls, of layers that `custom_ops` switches, and the class
    of others."""
    from vllm.model_executor.custom_op import maybe_get_oot_by_class
    from vllm.model_executor.layers import activation, layernorm, linear
    from vllm.model_executor.layers.quantization import get_quantization_config
    from vllm.model_executor.layers.quantization.input_quant_fp8 import QuantFP8
    from vllm.model_executor.layers.quantization.utils.quant_utils import GroupShape
    from vllm.model_executor.layers.rotary_embedding import get_rope
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    rope = {"rope_type": "default", "rope_theta": 10000.0}
    switched = {
        "RMSNorm": layernorm.RMSNorm(64),
        "GemmaRMSNorm": layernorm.GemmaRMSNorm(64),
        "SiluAndMul": activation.SiluAndMul(),
        "GeluAndMul": activation.GeluAndMul(),
        "RotaryEmbedding": get_rope(64, 128, rope_parameters=rope, dtype=torch.bfloat16),
        "QuantFP8": QuantFP8(static=False, group_shape=GroupShape.PER_TOKEN),
    }
    methods = {name: layer._forward_method for name, layer in switched.items()}
    found = {name: place(getattr(method, "__func__", method)) for name, method in methods.items()}
    for kind in (linear.QKVParallelLinear, linear.RowParallelLinear, ParallelLMHead):
        found[kind.__name__] = place(maybe_get_oot_by_class(kind))
    for name in ("fp8", "mxfp4", "compressed-tensors", "experts_int8"):
        found[f"experts: {name}"] = place(get_quantization_config(name))
    return found


def in_one_graph(torch: Any) -> list[str]:
    """Operators that layers call in a graph without breaks, for any number of tokens, as vLLM
    compiles a model; the layers compute the same in it as without."""
    from vllm.model_executor.layers import activation, layernorm
    from vllm.model_executor.layers.rotary_embedding import get_rope

    from wavecast.frameworks.vllm.served import calls

    norm, gate = layernorm.RMSNorm(64, dtype=torch.bfloat16), activation.SiluAndMul()
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    rotate = get_rope(64, 128, rope_parameters=rope, dtype=torch.bfloat16)
    if "Wavecast" not in type(norm).__name__ or not norm.enabled() or not gate.enabled():
        return []

    def program(x: Any, residual: Any, positions: Any) -> Any:
        y, total = norm(x, residual)
        return *rotate(positions, y.repeat(1, 2), y), gate(torch.cat([y, y], 1)), total

    x, residual = torch.randn(2, 5, 64, dtype=torch.bfloat16)
    arguments = x, residual, torch.arange(5)
    compiled = torch.compile(program, backend="eager", fullgraph=True, dynamic=True)
    for result, expected in zip(compiled(*arguments), program(*arguments), strict=True):
        assert torch.equal(result, expected)
    return sorted(operator for _, operator in calls.traced)


def linear_kernels(torch: Any) -> dict[str, str]:
    """The kernels that vLLM's own functions choose for quantised linear layers; "" as in
    `attention`."""
    from vllm.model_executor.kernels import linear
    from vllm.model_executor.kernels.linear.mixed_precision.MPLinearKernel import (
        MPLinearLayerConfig,
    )
    from vllm.model_executor.kernels.linear.scaled_mm.ScaledMMLinearKernel import (
        Int8ScaledMMLinearLayerConfig,
    )
    from vllm.scalar_type import scalar_types

    int8 = Int8ScaledMMLinearLayerConfig(
        is_static_input_scheme=False, is_channelwise=True, input_symmetric=True
    )
    four_bits = MPLinearLayerConfig(
        full_weight_shape=(4096, 4096), partition_weight_shape=(4096, 4096),
        weight_type=scalar_types.uint4b8, act_type=torch.bfloat16, group_size=128,
        zero_points=False,
    )  # fmt: skip
    possible = linear._POSSIBLE_INT8_KERNELS
    return {
        "Linear of int8": chosen(
            linear.choose_scaled_mm_linear_kernel, int8, possible, 94, quantization="int8"
        ),
        "Linear of four bits": chosen(linear.choose_mp_linear_kernel, four_bits, 94),
    }


def chosen(choose: Any, *arguments: Any, **options: Any) -> str:
    """What a function of vLLM chooses; "" where it fails."""
    try:
        return place(choose(*arguments, **options))
    except (AttributeError, ImportError, ValueError):
        return ""


def attention(torch: Any) -> dict[str, str]:
    """The backends that vLLM selects; "" where it would be one of its own, whose import needs a
    GPU, or where it refuses what was selected."""
    from vllm.v1.attention.selector import get_attn_backend

    latent = {"use_mla": True, "num_heads": 16}
    cases: dict[str, tuple[int, str, dict[str, Any]]] = {
        "Attention": (128, "auto", {}),
        "Attention, fp8 cache": (128, "fp8", {"has_sliding_window": True}),
        "Attention, head of 1024": (1024, "auto", {}),
        "MLAAttention": (576, "auto", latent),
        "MLAAttention, fp8 cache": (576, "fp8", latent),
    }
    return {
        name: chosen(get_attn_backend, head, torch.bfloat16, dtype, **options)
        for name, (head, dtype, options) in cases.items()
    }


def place(what: Any) -> str:
    """Module and name of a class or a method."""
    return f"{what.__module__}.{what.__qualname__}"


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
