"""Models that SGLang's own engine generates tokens with, against transformers in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.frameworks.vllm.test_engine import AGAIN, MEAN, NOISE, PROMPTS

pytestmark = [
    pytest.mark.torch,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore"),
]

GREEDY = {"temperature": 0.0, "max_new_tokens": 5, "ignore_eos": True}
DENSE = {
    "VocabParallelEmbedding embedding",
    "RMSNorm rms_norm",
    "RMSNorm rms_norm_residual",
    "Linear matmul",
    "RotaryEmbedding rope",
    "RadixAttention kv_cache_write",
    "RadixAttention paged_attention",
    "ParallelLMHead matmul",
}


def check(
    llm: Any, reference: Any, prompts: Sequence[Sequence[int]], times: float = 1, **options: Any
) -> list[int]:
    """Every token is the reference's, but where logits differ by less than bfloat16 is off by, or
    `times` that. Returns how many tokens of each prompt were in the cache."""
    from tests.frameworks.vllm.models import gaps

    given = [list(one) for one in prompts]
    outputs = llm.generate(input_ids=given, sampling_params={**GREEDY, **options})
    found = [
        gap
        for prompt, output in zip(prompts, outputs, strict=True)
        for gap in gaps(reference, prompt, output["output_ids"])
    ]
    assert len(found) == 5 * len(prompts)
    assert max(found) <= NOISE * times
    assert sum(found) <= MEAN * times * len(found)
    return [output["meta_info"]["cached_tokens"] for output in outputs]


def served(llm: Any) -> set[str]:
    """Layers and operators that the process of the model has called."""
    return set(llm.get_server_info()["internal_states"][0]["wavecast"])


def test_llama(engine: Callable[..., Any]) -> None:
    """Three sequences at once; then prefixes that are in the cache already, in a batch with a new
    sequence; then draws of which only the likeliest token is left."""
    llm, reference = engine("llama")
    check(llm, reference, PROMPTS)
    assert served(llm) == DENSE | {"SiluAndMul silu_mul"}
    assert [bool(one) for one in check(llm, reference, AGAIN)] == [True, True, False]
    check(llm, reference, PROMPTS, temperature=0.8, top_k=20, top_p=1e-6)
    assert "Sampler top_k_top_p_sample" in served(llm)


def test_prompts_in_chunks(engine: Callable[..., Any]) -> None:
    """Steps of at most 16 tokens of prompts."""
    llm, reference = engine("llama", chunked_prefill_size=16)
    check(llm, reference, [[2, 4, 6], list(range(100, 150)), [11] * 17])


def test_mixture_of_experts(engine: Callable[..., Any]) -> None:
    """Qwen3-MoE: routed by softmax. Then prefixes that are in the cache already."""
    llm, reference = engine("qwen3_moe")
    check(llm, reference, PROMPTS)
    assert served(llm) == DENSE | {"TopK moe_route", "FusedMoE moe_experts"}
    assert [bool(one) for one in check(llm, reference, AGAIN)] == [True, True, False]


def test_latent_attention(engine: Callable[..., Any]) -> None:
    """DeepSeek-V3: compressed keys, groups of experts, a shared one. Prompts in chunks read their
    context from the cache, and so do prefixes."""
    llm, reference = engine("deepseek_yarn", chunked_prefill_size=32)
    check(llm, reference, PROMPTS)
    latent = {f"MLAAttention {one}" for one in ("mla_cache_write", "mla_prefill", "mla_decode")}
    experts = {"SiluAndMul silu_mul", "TopK moe_route", "FusedMoE moe_experts"}
    dense = {one for one in DENSE if not one.startswith("RadixAttention")}
    assert served(llm) == dense | latent | experts
    assert [bool(one) for one in check(llm, reference, AGAIN)] == [True, True, False]


INT8 = 8
"""A step of int8 is 1/127 of the largest of a row, one of bfloat16 1/256 of the value."""
FP8 = 16
"""A mantissa of three bits, which activations get, is off by 16 times what one of seven is."""


@pytest.mark.parametrize(
    ("format", "operators"),
    [
        ("fp8", {"Linear quantise_fp8_token", "Linear scaled_matmul"}),
        ("fp8_block", {"Linear quantise_fp8_group", "Linear matmul_fp8_block"}),
    ],
)
def test_linear_layers_of_fp8(engine: Callable[..., Any], format: str, operators: set[str]) -> None:
    """Checkpoints of Qwen3 with scales per tensor, and per square of 128."""
    llm, reference = engine("qwen3_128", linear=format)
    check(llm, reference, PROMPTS, FP8)
    assert served(llm) == DENSE - {"Linear matmul"} | operators | {"SiluAndMul silu_mul"}


@pytest.mark.parametrize("format", ["fp8", "fp8_block"])
def test_experts_of_fp8(engine: Callable[..., Any], format: str) -> None:
    """Of a checkpoint whose other layers are not quantised."""
    llm, reference = engine("qwen3_moe_128", experts=format)
    check(llm, reference, PROMPTS, FP8)
    assert served(llm) == DENSE | {"TopK moe_route", "FusedMoE moe_experts_fp8"}


@pytest.mark.parametrize(
    ("format", "operators", "times"),
    [
        ("int8", {"Linear quantise_int8_token", "Linear scaled_matmul"}, 2 * INT8),
        ("int4", {"Linear matmul_w4a16"}, 1),
    ],
)
def test_linear_layers_of_integers(
    engine: Callable[..., Any], format: str, operators: set[str], times: float
) -> None:
    """Checkpoints of compressed-tensors: a scale per row, and per group of 32 inputs."""
    llm, reference = engine("qwen3_128", linear=format)
    check(llm, reference, PROMPTS, times)
    assert served(llm) == DENSE - {"Linear matmul"} | operators | {"SiluAndMul silu_mul"}


@pytest.mark.parametrize(
    ("format", "operator", "times"),
    [("int8", "moe_experts_int8", INT8), ("int4", "moe_experts_w4a16", 1)],
)
def test_experts_of_integers(
    engine: Callable[..., Any], format: str, operator: str, times: float
) -> None:
    """Checkpoints of compressed-tensors whose other layers are not quantised."""
    llm, reference = engine("qwen3_moe", experts=format)
    check(llm, reference, PROMPTS, times)
    assert served(llm) == DENSE | {"TopK moe_route", f"FusedMoE {operator}"}
