"""What programs do with models whose modules run operators: mixed precision, copies, odd inputs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from torch import nn  # noqa: E402

from wavecast import ops  # noqa: E402

pytestmark = pytest.mark.torch


class GELUTanh(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(8, 12), nn.Linear(8, 12)
        self.down_proj, self.act_fn = nn.Linear(12, 8), GELUTanh()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), Gated(), nn.Linear(8, 4, bias=False))


def test_gates_of_gelu() -> None:
    own, replaced, x = model(), model(), torch.randn(3, 8)
    account = ops.replace(replaced)
    assert "1 x Gated -> gelu_mul" in str(account)
    torch.testing.assert_close(replaced(x), own(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_norms_have_the_default_eps_of_pytorch(dtype: torch.dtype) -> None:
    """Its documentation names that of the dtype, which in 16 bits halves such values."""
    norm, x = nn.RMSNorm(32, dtype=dtype), torch.full((2, 32), 0.01, dtype=dtype)
    expected = norm(x)
    with ops.substituted() as answered:
        torch.testing.assert_close(norm(x), expected)
    assert [one.operator for one in answered.done] == ["rms_norm"]
    ops.replace(norm)
    torch.testing.assert_close(norm(x), expected)


def test_autocast_casts_what_it_casts_for_pytorch() -> None:
    own, replaced, x = model(), model(), torch.randn(3, 8)
    account = ops.replace(replaced)
    with torch.autocast("cpu", torch.bfloat16):
        expected, found = own(x), replaced(x)
        with ops.substituted() as answered:
            others = own(x)
    for one in (found, others):
        assert one.dtype == expected.dtype == torch.bfloat16
        torch.testing.assert_close(one, expected, rtol=0.05, atol=0.02)
    assert not account.left
    assert not answered.left
    found.sum().backward()
    assert replaced[0].weight.grad.dtype == torch.float32


def test_copies_and_pickles() -> None:
    replaced, x = model(), torch.randn(3, 8)
    ops.replace(replaced)
    for one in (copy.deepcopy(replaced), pickle.loads(pickle.dumps(replaced))):
        assert torch.equal(one(x), replaced(x))
        one[3].weight.data.zero_()
        assert not one(x).any()
    assert replaced(x).any()


def test_calls_that_stay_are_listed_once() -> None:
    replaced, x = model(), torch.randn(3, 8)
    account = ops.replace(replaced)
    replaced(x)
    assert not account.left
    assert replaced(torch.empty(0, 8)).shape == (0, 4)
    replaced(torch.empty(0, 8))
    linear = [one for one in account.left if one.what == "Linear"]
    assert {one.why for one in linear} == {"a tensor is empty"}
    assert len(linear) == len({one.where for one in linear}) == 5
    assert replaced[0](input=x).shape == (3, 8)
    assert [one.why for one in account.left if one.where == "0"][1:] == [
        "arguments of another form"
    ]
    assert replaced.double()(x.double()).dtype == torch.float64
    assert "1 x Gated left: dtype float64" in str(account)


def test_forwards_that_others_put_there_stay() -> None:
    replaced, x, called = model(), torch.randn(3, 8), []
    linear = replaced[0]

    def moved(input: torch.Tensor) -> torch.Tensor:  # as accelerate does it
        called.append(input)
        return type(linear).forward(linear, input)

    linear.forward = moved
    account = ops.replace(replaced)
    replaced(x)
    assert len(called) == 1
    assert [(one.where, one.why) for one in account.left] == [
        ("0", "its forward is not its class's")
    ]
    again: Any = ops.replace(replaced)
    assert not again.done
    account.undo()
    assert linear.forward is moved


def test_hugging_face_models_under_autocast() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.MixtralConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, num_local_experts=4, vocab_size=50,
    )  # fmt: skip
    own = transformers.MixtralForCausalLM(config).eval()
    replaced, tokens = copy.deepcopy(own), torch.randint(3, 50, (1, 7))
    account = ops.replace(replaced)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected, found = own(tokens).logits, replaced(tokens).logits
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=0.1, atol=0.02)
    assert {"attention", "moe_experts"} <= {one.operator for one in account.done}
