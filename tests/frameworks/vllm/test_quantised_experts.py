"""Experts with quantised weights: through the engine, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.frameworks.vllm.test_engine import NOISE, PROMPTS, generated, served

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

FORMATS = {
    # activations of three bits of mantissa, those of the reference in bfloat16 have seven
    "fp8": ("moe_experts_fp8", 16 * NOISE),
    "fp8_block": ("moe_experts_fp8", 16 * NOISE),
    "mxfp4": ("moe_experts", NOISE),
    # a step of int8 is 1/127 of the largest of a row, one of bfloat16 1/256 of the value
    "int8": ("moe_experts_int8", 8 * NOISE),
    "int4": ("moe_experts_w4a16", NOISE),
    "int4_zeros": ("moe_experts_w4a16", NOISE),
}


@pytest.mark.parametrize("format", FORMATS)
def test_checkpoints_of_quantised_experts(
    vllm: Any, engine: Callable[..., Any], format: str
) -> None:
    """Every token is that of the reference with the values of the codes, or close in logits."""
    from tests.frameworks.vllm.models import gaps

    operator, noise = FORMATS[format]
    llm, reference = engine("qwen3_moe_128", experts=format)
    outputs = generated(vllm, llm, PROMPTS)
    found = [
        gap
        for prompt, output in zip(PROMPTS, outputs, strict=True)
        for gap in gaps(reference, prompt, output.outputs[0].token_ids)
    ]
    assert max(found) <= noise
    assert sum(gap == 0 for gap in found) >= 0.6 * len(found)
    calls = served()
    experts = {name for layer, name in calls if layer == "FusedMoE"}
    assert experts == {"moe_route", operator} | ({"dequantise_mx"} if format == "mxfp4" else set())
    assert calls["FusedMoE", operator] == calls["FusedMoE", "moe_route"]
    assert ("Linear", "matmul") in calls


def test_experts_rounded_as_they_are_loaded(vllm: Any, engine: Callable[..., Any]) -> None:
    """To int8, from a checkpoint in bfloat16."""
    from tests.frameworks.vllm.models import gaps

    llm, reference = engine("qwen3_moe_128", quantization="experts_int8")
    outputs = generated(vllm, llm, PROMPTS)
    found = [
        gap
        for prompt, output in zip(PROMPTS, outputs, strict=True)
        for gap in gaps(reference, prompt, output.outputs[0].token_ids)
    ]
    assert max(found) <= 8 * NOISE
    assert {"moe_experts_int8", "moe_route"} == {
        name for layer, name in served() if layer == "FusedMoE"
    }


@pytest.mark.parametrize(
    ("block", "bias", "says"),
    [([64, 64], False, r"scales by \[64, 64\]"), (None, True, "experts of fp8 with a bias")],
)
def test_what_the_operator_lacks_is_refused(vllm: Any, block: Any, bias: bool, says: str) -> None:
    from wavecast.frameworks.vllm.quantised_experts import WavecastFp8MoE

    layer = SimpleNamespace(moe_config=SimpleNamespace(has_bias=bias))
    with pytest.raises(NotImplementedError, match=says):
        WavecastFp8MoE(SimpleNamespace(weight_block_size=block), layer)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"num_bits": 8, "group_size": 128}, "experts of 8 bits in groups of 128"),
        ({"num_bits": 4, "group_size": None}, "experts of 4 bits in groups of None"),
    ],
)
def test_other_integers_are_refused(vllm: Any, weights: dict[str, Any], says: str) -> None:
    from wavecast.frameworks.vllm.integer_experts import WavecastInt4MoE, WavecastInt8MoE

    with pytest.raises(NotImplementedError, match=says):
        WavecastInt4MoE(SimpleNamespace(**weights), SimpleNamespace())
    tensor = SimpleNamespace(strategy="tensor")
    with pytest.raises(NotImplementedError, match="without a scale per channel"):
        WavecastInt8MoE(tensor, SimpleNamespace(symmetric=True), SimpleNamespace())
