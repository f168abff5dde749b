"""Experts with weights of fp8 and mxfp4: through the engine, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.integrations.vllm.test_engine import NOISE, PROMPTS, generated, served

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

FORMATS = {
    # activations of three bits of mantissa, those of the reference in bfloat16 have seven
    "fp8": ("moe_experts_fp8", 16 * NOISE),
    "fp8_block": ("moe_experts_fp8", 16 * NOISE),
    "mxfp4": ("moe_experts", NOISE),
}


@pytest.mark.parametrize("format", FORMATS)
def test_checkpoints_of_quantised_experts(
    vllm: Any, engine: Callable[..., Any], format: str
) -> None:
    """Every token is that of the reference with the values of the codes, or close in logits."""
    from tests.integrations.vllm.models import gaps

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


def test_scales_of_gate_and_up_become_one(vllm: Any) -> None:
    """Codes of the smaller scale are rounded to the larger; squares at the edge are counted."""
    from wavecast.integrations.vllm.quantised_experts import _by_square

    weight = torch.randn(2, 260, 130).mul(50).to(torch.float8_e4m3fn)
    scale = torch.tensor([[1.0, 0.5], [2.0, 2.0]])
    codes, squares = _by_square(weight, scale)
    assert squares.tolist() == [[[1.0] * 2] * 3, [[2.0] * 2] * 3]
    values = codes.float() * squares[:, :1, :1]
    expected = weight.float() * scale.repeat_interleave(130, dim=1)[..., None]
    torch.testing.assert_close(values, expected, rtol=2**-4, atol=2**-9)
    assert torch.equal(codes[1], weight[1])


@pytest.mark.parametrize(
    ("block", "bias", "says"),
    [([64, 64], False, r"scales by \[64, 64\]"), (None, True, "experts of fp8 with a bias")],
)
def test_what_the_operator_lacks_is_refused(vllm: Any, block: Any, bias: bool, says: str) -> None:
    from wavecast.integrations.vllm.quantised_experts import WavecastFp8MoE

    layer = SimpleNamespace(moe_config=SimpleNamespace(has_bias=bias))
    with pytest.raises(NotImplementedError, match=says):
        WavecastFp8MoE(SimpleNamespace(weight_block_size=block), layer)
