"""Mixture of experts beyond what its descriptions say: bad arguments, strides, empty tensors, what
sorts where, and the whole layer."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.frameworks.torch.verify import verify  # noqa: E402
from wavecast.kernels.moe import tiling  # noqa: E402
from wavecast.kernels.moe.align import blocks  # noqa: E402
from wavecast.kernels.moe.experts import moe  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402
from wavecast.runtimes.triton import device  # noqa: E402

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
        ({"scoring": "tanh"}, "scoring is 'tanh'; it takes softmax"),
        ({"groups": 5}, "12 experts are not 5 groups"),
        ({"groups": 6, "top_groups": 1}, "top_k is 3, but 2 experts are left"),
        ({"bias": torch.zeros(11)}, "bias is 11, expected 12"),
    ],
)
def test_routes_refuse_what_they_do_not_take(changed: dict[str, Any], message: str) -> None:
    with device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.operator("moe_route").call(**_arguments("moe_route", **changed))


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("fp8", {"scale1": torch.ones(3, 2, 2)}, "scale1 is 3x2x2, expected 3x1x2"),
        ("fp8", {"w1": torch.zeros(3, 80, 160)}, "w1 is float32; it takes float8_e4m3fn"),
        ("int8", {"scale2": torch.ones(4, 12)}, "scale2 is 4x12, expected 4x20"),
        ("int8", {"scale1": torch.ones(4, 24).double()}, "scale1 is float64; it takes float32"),
        ("int8", {"w2": torch.zeros(4, 20, 12)}, "w2 is float32; it takes int8"),
        ("w4a16", {"hidden": torch.zeros(3, 64)}, "hidden is float32; it takes bfloat16, float16"),
        ("w4a16", {"group": 16}, "groups of 16; it takes 32, 64 and 128"),
        ("w4a16", {"group": 128}, "w1 has 64 columns, no multiple of 128"),
        ("w4a16", {"zero1": torch.zeros(4, 2, 64)}, "zero1 is float32; it takes uint8"),
        ("w4a16", {"scale1": torch.ones(4, 64, 2)}, "scale1 is 4x64x2, expected 4x2x64"),
        ("w4a16", {"bias2": torch.zeros(4, 64, device="meta")}, "on several devices"),
    ],
)
def test_quantised_experts_refuse_what_they_do_not_take(
    name: str, changed: dict[str, Any], message: str
) -> None:
    given = _arguments(f"moe_experts_{name}", **changed)
    with device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.operator(f"moe_experts_{name}").call(**given)


def test_experts_of_more_blocks_than_are_walked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "block_of", lambda *_: 16)
    sizes = {"tokens": 150, "experts": 2, "model": 32, "inter": 80, "top_k": 2}
    operator = ops.operator("moe_experts")
    verdict = verify(operator, {**sizes, "dtype": "bfloat16"}, "gfx942")
    blocks_of_one = [
        one.problem["slots"] // 2 / 16 for one in verdict.decisions if "n" in one.problem
    ]
    assert min(blocks_of_one) > 8
    assert not verdict.problems


def test_no_tokens() -> None:
    given = _arguments()
    for name in ("hidden", "weights", "experts"):
        given[name] = given[name][:0]
    with device("gfx942"):
        assert ops.moe_experts(**given).shape == (0, 20)
        for name in ("moe_experts_fp8", "moe_experts_int8", "moe_experts_w4a16"):
            some = _arguments(name)
            few = {one: some[one][:0] for one in ("hidden", "weights", "experts")}
            found = ops.operator(name).call(**{**some, **few})
            assert found.shape == (0, some["hidden"].shape[1])
        found = ops.moe_experts_backward(given["hidden"], **given)
        rows, owners, starts = ops.moe_align(given["experts"], 4, 16)
        weights, experts = ops.moe_route(torch.zeros(0, 8), 2)
    assert [tuple(one.shape) for one in found[2:4]] == [(4, 24, 20), (4, 20, 12)]
    assert not any(bool(one.any()) for one in found)
    assert rows.numel() == owners.numel() == 0
    assert starts.tolist() == [0] * 5
    assert weights.shape == experts.shape == (0, 2)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("moe_experts", "gfx942"),
        ("moe_experts_int8", "gfx950"),
        ("moe_experts_w4a16", "gfx1100"),
    ],
)
def test_any_strides(name: str, target: str) -> None:
    given = _arguments(name)
    operator = ops.operator(name)
    turned = {
        name: one.transpose(0, 1).contiguous().transpose(0, 1)
        for name, one in given.items()
        if isinstance(one, torch.Tensor)
    }
    with device(target):
        plain = operator.call(**given)
        same = operator.call(**{**given, **turned})
    assert torch.equal(plain, same)


def test_logits_of_any_strides() -> None:
    with device("gfx1100"):
        _, experts = ops.moe_route(torch.arange(24.0).reshape(8, 3).T, 2)
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
