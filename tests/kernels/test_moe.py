"""Mixture of experts beyond what its descriptions say: bad arguments, strides, empty tensors, what
sorts where, and the whole layer."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from wavecast import ops  # noqa: E402
from wavecast.integrations.triton import device  # noqa: E402
from wavecast.kernels.checks import ArgumentError  # noqa: E402
from wavecast.kernels.inputs import Make  # noqa: E402
from wavecast.kernels.moe.align import blocks  # noqa: E402
from wavecast.kernels.moe.layer import moe  # noqa: E402

pytestmark = pytest.mark.torch


def _arguments(name: str = "moe_experts", **changed: Any) -> dict[str, Any]:
    operator = ops.operator(name)
    return {**operator.inputs(Make(3), **operator.cases[0]), **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden": torch.zeros(3, 20, dtype=torch.float64)}, "hidden is float64"),
        ({"experts": torch.zeros(3, 2, dtype=torch.int64)}, "experts is int64"),
        ({"weights": torch.zeros(3, 3)}, "weights is 3x3, expected 3x2"),
        ({"w1": torch.zeros(4, 24, 21, dtype=torch.bfloat16)}, "w1 is 4x24x21, expected 4x24x20"),
        ({"w2": torch.zeros(4, 20, 12)}, "w2 is float32; it takes bfloat16"),
        ({"bias1": torch.zeros(4, 12)}, "bias1 is 4x12, expected 4x24"),
        ({"activation": "relu"}, "no activation 'relu'; silu"),
    ],
)
def test_experts_refuse_what_they_do_not_take(changed: dict[str, Any], message: str) -> None:
    with device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.operator("moe_experts").call(**_arguments(**changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"top_k": 13}, "top_k is 13, not 1 to 12"),
        ({"scoring": "tanh"}, "no scoring 'tanh'"),
        ({"groups": 5}, "12 experts are not 5 groups"),
        ({"groups": 6, "top_groups": 1}, "top_k is 3, but 2 experts are left"),
        ({"bias": torch.zeros(11)}, "bias is 11, expected 12"),
    ],
)
def test_routes_refuse_what_they_do_not_take(changed: dict[str, Any], message: str) -> None:
    with device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.operator("moe_route").call(**_arguments("moe_route", **changed))


def test_fp8_refuses_scales_of_another_shape() -> None:
    given = _arguments("moe_experts_fp8", scale1=torch.ones(3, 2, 2))
    with device("gfx942"), pytest.raises(ArgumentError, match="scale1 is 3x2x2, expected 3x1x2"):
        ops.operator("moe_experts_fp8").call(**given)


def test_no_tokens() -> None:
    given = _arguments()
    for name in ("hidden", "weights", "experts"):
        given[name] = given[name][:0]
    with device("gfx942"):
        assert ops.moe_experts(**given).shape == (0, 20)
        found = ops.moe_experts_backward(given["hidden"], **given)
        rows, owners, starts = ops.moe_align(given["experts"], 4, 16)
        weights, experts = ops.moe_route(torch.zeros(0, 8), 2)
    assert [tuple(one.shape) for one in found[2:4]] == [(4, 24, 20), (4, 20, 12)]
    assert not any(bool(one.any()) for one in found)
    assert rows.numel() == owners.numel() == 0
    assert starts.tolist() == [0] * 5
    assert weights.shape == experts.shape == (0, 2)


def test_any_strides() -> None:
    given = _arguments()
    turned = {
        name: one.transpose(0, 1).contiguous().transpose(0, 1)
        for name, one in given.items()
        if isinstance(one, torch.Tensor)
    }
    with device("gfx1100"):
        plain = ops.moe_experts(**given)
        same = ops.moe_experts(**{**given, **turned})
        logits = torch.arange(24.0).reshape(8, 3).T
        _, experts = ops.moe_route(logits, 2)
    assert torch.equal(plain, same)
    assert experts.tolist() == [[7, 6]] * 3


def test_equal_logits_go_to_the_lowest_expert_and_nan_is_last() -> None:
    nan, inf = float("nan"), float("inf")
    logits = torch.tensor([[0.0, -0.0, 0.0, 0.0], [nan, 1.0, nan, -2.0], [-inf, -inf, nan, 3.0]])
    with device("gfx942"):
        _, experts = ops.moe_route(logits, 3, scoring="sigmoid")
    assert experts.tolist() == [[0, 1, 2], [1, 3, 0], [3, 0, 1]]


def test_as_many_blocks_as_can_be_needed() -> None:
    for slots in range(1, 12):
        for count in range(1, 6):
            for block in (1, 2, 4):
                one_each = min(slots, count) - 1
                worst = one_each + -(-(slots - one_each) // block)
                assert worst <= blocks(slots, count, block)


def test_the_layer_is_its_parts_and_differentiable() -> None:
    make = Make(5)
    hidden = make.normal((2, 3, 8), "float64").requires_grad_()
    router = make.normal((4, 8), "float64").requires_grad_()
    w1 = make.normal((4, 12, 8), "float64").requires_grad_()
    w2 = make.normal((4, 8, 6), "float64").requires_grad_()

    def layer(*given: torch.Tensor) -> torch.Tensor:
        return moe(*given, 2, routing={"scoring": "sigmoid", "scale": 2.0})

    assert layer(hidden, router, w1, w2).shape == hidden.shape
    assert torch.autograd.gradcheck(layer, (hidden, router, w1, w2), fast_mode=True)
