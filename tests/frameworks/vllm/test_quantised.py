"""Quantised linear layers: through the engine, and by the kernels' interface."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.frameworks.vllm.test_engine import PROMPTS, generated, served

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

OPERATORS = {
    "fp8_per_channel": {("QuantFP8", "quantise_fp8_token"), ("Linear", "scaled_matmul")},
    "fp8_per_block": {("QuantFP8", "quantise_fp8_group"), ("Linear", "matmul_fp8_block")},
}


@pytest.mark.parametrize("format", OPERATORS)
def test_weights_quantised_as_they_are_loaded(
    vllm: Any, engine: Callable[..., Any], format: str
) -> None:
    """Every linear layer but the logits is fp8. A mantissa of three bits is off by 16 times what
    one of seven bits is, in weights and activations."""
    from tests.frameworks.vllm.models import gaps

    llm, reference = engine("llama", quantization=format)
    outputs = generated(vllm, llm, PROMPTS)
    found = [
        gap
        for prompt, output in zip(PROMPTS, outputs, strict=True)
        for gap in gaps(reference, prompt, output.outputs[0].token_ids)
    ]
    assert max(found) <= 2 * 32
    assert OPERATORS[format] <= set(served())
    assert ("Linear", "matmul") not in served()


def test_fp8_of_whole_tensors(vllm: Any) -> None:
    """One scale each, as checkpoints have them; vLLM itself makes such weights on its GPUs only."""
    from wavecast.frameworks.vllm.quantised import WavecastFp8Linear
    from wavecast.frameworks.vllm.worker import emulate_gpu

    a = torch.randn(2, 3, 64).to(torch.float8_e4m3fnuz)
    b = torch.randn(48, 64).to(torch.float8_e4m3fnuz).t()
    scales = torch.tensor(0.5), torch.tensor([0.25])
    bias = torch.randn(48, dtype=torch.bfloat16)
    kernel = object.__new__(WavecastFp8Linear)
    with emulate_gpu():
        found = kernel.apply_scaled_mm(
            A=a.view(6, 64),
            B=b,
            out_dtype=torch.bfloat16,
            As=scales[0],
            Bs=scales[1],
            bias=bias,
            output_shape=[2, 3, 48],
        )
    expected = a.float() @ b.float() * 0.125 + bias.float()
    torch.testing.assert_close(found.float(), expected, rtol=0.01, atol=0.02)


def test_int8(vllm: Any) -> None:
    """Joined layers with a scale each, activations with one per token."""
    from vllm.model_executor.kernels.linear.scaled_mm.ScaledMMLinearKernel import (
        Int8ScaledMMLinearLayerConfig,
    )

    from wavecast.frameworks.vllm.quantised import WavecastInt8Linear
    from wavecast.frameworks.vllm.worker import emulate_gpu

    config = Int8ScaledMMLinearLayerConfig(
        is_static_input_scheme=False, is_channelwise=False, input_symmetric=True
    )
    kernel = WavecastInt8Linear(config, ["weight", "scale", "input_scale", "zero", "adjust"])
    layer = torch.nn.Module()
    layer.logical_widths = [32, 16]
    layer.weight = torch.randint(-127, 128, (48, 64), dtype=torch.int8)
    layer.register_parameter(
        "scale", torch.nn.Parameter(torch.tensor([0.01, 0.03]), requires_grad=False)
    )
    kernel.process_weights_after_loading(layer)
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    with emulate_gpu():
        found = kernel.apply_weights(layer, x)
    scale = torch.cat([torch.full((32,), 0.01), torch.full((16,), 0.03)])
    expected = x.float() @ (layer.weight.float() * scale[:, None]).T
    assert float((found - expected).abs().max() / expected.abs().max()) < 0.02
    for refused in ({"is_static_input_scheme": True}, {"input_symmetric": False}):
        other = SimpleNamespace(**{**vars(config), **refused})
        assert not WavecastInt8Linear.can_implement(other)[0]


def test_four_bits(vllm: Any) -> None:
    """Codes as compressed-tensors packs them: eight per int32, the first in the low bits."""
    from vllm.model_executor.kernels.linear.mixed_precision.MPLinearKernel import (
        MPLinearLayerConfig,
    )
    from vllm.scalar_type import scalar_types

    from wavecast.frameworks.vllm.quantised import WavecastInt4Linear
    from wavecast.frameworks.vllm.worker import emulate_gpu

    n, k, group = 48, 128, 32
    given = {"weight_type": scalar_types.uint4b8, "act_type": torch.bfloat16, "zero_points": False}
    config = MPLinearLayerConfig((k, n), (k, n), group_size=group, **given)
    assert WavecastInt4Linear.can_implement(config)[0]
    kernel = WavecastInt4Linear(config, "codes", "scales")
    codes = torch.randint(0, 16, (n, k))
    shifts = 4 * torch.arange(8)
    packed = (codes.view(n, k // 8, 8) << shifts).sum(-1).to(torch.uint32).view(torch.int32)
    scales = torch.rand(n, k // group).to(torch.bfloat16)
    layer = torch.nn.Module()
    dims = {"input_dim": 1, "output_dim": 0}
    for name, value, more in (
        ("codes", packed, {"packed_dim": 1, "packed_factor": 8}),
        ("scales", scales, {}),
    ):
        parameter = torch.nn.Parameter(value.clone(), requires_grad=False)  # vLLM writes to it
        for attribute, dim in (dims | more).items():
            setattr(parameter, attribute, dim)
        layer.register_parameter(name, parameter)
    kernel.process_weights_after_loading(layer)
    x = torch.randn(5, k, dtype=torch.bfloat16)
    with emulate_gpu():
        found = kernel.apply_weights(layer, x)
    wide = (codes - 8).float() * scales.float().repeat_interleave(group, dim=1)
    torch.testing.assert_close(found.float(), x.float() @ wide.T, rtol=0.02, atol=0.1)
