"""Derivatives of every operator beyond `backward()`: of gradients, and by `torch.func`."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from wavecast import ops  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402

pytestmark = pytest.mark.torch

NAMES = [
    name for name in ops.names() if ops.operator(name).gradient and not name.endswith("_backward")
]


class Function:
    """A call as a number that depends on its floating arguments, in float64."""

    def __init__(self, name: str) -> None:
        operator = ops.operator(name)
        self.call = getattr(torch.ops.wavecast, name)
        self.given = operator.inputs(Make(3), **{**operator.cases[0], "dtype": "float64"})
        self.names = [
            name
            for name, value in self.given.items()
            if isinstance(value, torch.Tensor) and value.dtype == torch.float64
        ]
        self.point = [self.given[name] for name in self.names]

    def __call__(self, *values: torch.Tensor) -> torch.Tensor:
        found = self.call(**{**self.given, **dict(zip(self.names, values, strict=True))})
        found = (found,) if isinstance(found, torch.Tensor) else found
        return sum(_bent(one) for one in found if one.is_floating_point())


def _bent(tensor: torch.Tensor) -> torch.Tensor:
    """A sum that no derivative of leaves constant."""
    weights = torch.arange(tensor.numel(), dtype=tensor.dtype).cos().reshape(tensor.shape)
    return (tensor.double() * weights).sin().sum()


def _gradients(function: Any, point: Any, **named: Any) -> tuple[torch.Tensor, ...]:
    leaves = [one.detach().clone().requires_grad_() for one in point]
    return torch.autograd.grad(function(*leaves), leaves, **named)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_gradients(name: str) -> None:
    """Along one direction, against differences of gradients."""
    function, make = Function(name), Make(5)
    weights = [make.normal(one.shape, "float64") for one in function.point]
    way = [make.normal(one.shape, "float64") for one in function.point]

    def sum_of_gradients(*point: torch.Tensor) -> torch.Tensor:
        found = torch.autograd.grad(function(*point), point, create_graph=True)
        return sum(
            ((one * w).sum() for one, w in zip(found, weights, strict=True)), torch.zeros(())
        )

    def at(step: float) -> float:
        moved = [one + step * by for one, by in zip(function.point, way, strict=True)]
        return sum_of_gradients(*(one.requires_grad_() for one in moved)).item()

    slopes = _gradients(sum_of_gradients, function.point, materialize_grads=True)
    found = sum((one * by).sum().item() for one, by in zip(slopes, way, strict=True))
    expected = (at(1e-6) - at(-1e-6)) / 2e-6
    assert found == pytest.approx(expected, rel=2e-4, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_torch_func(name: str) -> None:
    function = Function(name)
    places = tuple(range(len(function.point)))
    found = torch.func.grad(function, places)(*function.point)
    for got, right in zip(found, _gradients(function, function.point), strict=True):
        torch.testing.assert_close(got, right)


def test_torch_func_level_by_level() -> None:
    weight, rows = torch.rand(16), torch.randn(3, 16)

    def loss(call: Any, x: torch.Tensor) -> torch.Tensor:
        return call(x, weight).sin().sum()

    def plain(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, (16,), weight, 1e-6)

    found, right = (
        torch.vmap(torch.func.jacrev(torch.func.grad(functools.partial(loss, call))))(rows)
        for call in (ops.rms_norm, plain)
    )
    torch.testing.assert_close(found, right)


def test_the_operator_of_gradients_follows_from_the_forward_one() -> None:
    forward, backward = ops.operator("softmax"), ops.operator("softmax_backward")
    assert backward.summary == "gradient of softmax"  # of one argument; else "gradients of"
    assert ops.operator("attention_backward").summary == "gradients of attention"
    assert (backward.cases, backward.shapes) == (forward.cases, forward.shapes)
    assert backward.gradient is not None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, of its first use
def test_forward_mode_is_refused() -> None:
    x = torch.randn(4)
    with pytest.raises(NotImplementedError, match="silu has no forward-mode derivative"):
        torch.func.jvp(ops.silu, (x,), (x,))


def test_an_argument_without_a_gradient() -> None:
    q, slopes = torch.randn(1, 4, 2, 8), torch.rand(2, requires_grad=True)
    out, _ = ops.attention(q, q, q, alibi=slopes)
    with pytest.raises(
        NotImplementedError, match="attention has no gradient with respect to alibi"
    ):
        out.sum().backward()


def test_an_operator_without_a_gradient() -> None:
    codes, scale = ops.quantise_int8_token(torch.randn(2, 8, requires_grad=True))
    assert not codes.requires_grad
    with pytest.raises(NotImplementedError, match="quantise_int8_token has no gradient"):
        scale.sum().backward()


def test_what_chooses_experts_is_constant() -> None:
    bias = torch.zeros(8, requires_grad=True)
    logits = torch.randn(3, 8, requires_grad=True)
    weights, _ = ops.moe_route(logits, 2, "sigmoid", bias=bias)
    weights.square().sum().backward()
    assert logits.grad is not None
    assert bias.grad is None


def test_compiled_gradients_by_torch_func() -> None:
    x = torch.randn(4, 8)
    found = torch.compile(torch.func.grad(lambda x: ops.silu(x).sum()), backend="aot_eager")(x)
    expected = torch.func.grad(lambda x: torch.nn.functional.silu(x).sum())(x)
    torch.testing.assert_close(found, expected)
