"""Norms beyond their descriptions: bad arguments, strides, empty tensors, layouts, batching."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402

pytestmark = pytest.mark.torch
ROW = torch.ones(8)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("rms_norm", (torch.ones(2, 8), torch.ones(7)), "weight is 7, expected 8"),
        ("rms_norm", (torch.ones(2, 8).double(), ROW), "x is float64"),
        ("rms_norm", (torch.tensor(1.0), ROW), "x is a scalar"),
        ("rms_norm_residual", (torch.ones(2, 8), torch.ones(3, 8), ROW), "residual is 3x8"),
        ("rms_norm_residual", (torch.ones(2, 8), torch.ones(2, 8).half(), ROW), "residual is"),
        ("layer_norm", (torch.ones(2, 8), None, ROW), "a bias needs a weight"),
        ("layer_norm", (torch.ones(2, 8), ROW, ROW.half()), "bias is float16"),
        ("rms_norm_quantised", (torch.ones(2, 8), ROW, None, torch.int32), "does not quantise"),
        ("rms_norm_quantised", (torch.ones(2, 8), ROW, None, torch.int8, 24), "group is 24"),
        ("rms_norm_quantised", (torch.ones(1, 16385),), "16385 columns are over 16384"),
        ("group_norm", (torch.ones(2, 8, 4), 3), "8 channels do not make 3 groups"),
        ("group_norm", (torch.ones(8), 2), "x has 1 dimensions"),
    ],
)
def test_bad_arguments(name: str, arguments: tuple, message: str) -> None:
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.operator(name).call(*arguments)


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_any_strides(name: str) -> None:
    whole = torch.randn(3, 40, 12, generator=torch.Generator().manual_seed(0))
    operator = ops.operator(name)
    for x in (whole[:, ::2], whole.transpose(1, 2), whole[..., ::2], whole.expand(2, 3, 40, 12)):
        weight = torch.rand(2 * x.shape[-1])[::2]
        with wavecast.device("gfx1100"):
            got = operator.call(x, weight)
        torch.testing.assert_close(got, operator.reference(x, weight))


@pytest.mark.parametrize("shape", [(0, 8), (3, 0), (2, 0, 8)])
def test_empty(shape: tuple[int, ...]) -> None:
    x, weight = torch.ones(shape), torch.ones(shape[-1])
    with wavecast.device("gfx942"):
        assert ops.operator("rms_norm").call(x, weight).shape == shape
        assert ops.operator("layer_norm").call(x, weight, weight).shape == shape
        dx, dweight, dbias = ops.operator("layer_norm_backward").call(x, x, weight)
        q, scales, total = ops.operator("rms_norm_quantised").call(x, weight, x)
    assert dx.shape == q.shape == total.shape == shape
    assert scales.shape == (*shape[:-1], 1)
    assert torch.equal(dweight, torch.zeros(shape[-1]))
    assert torch.equal(dbias, dweight)


def test_no_images() -> None:
    x, weight = torch.ones(0, 8, 3, 3), torch.ones(8)
    with wavecast.device("gfx942"):
        y, means, scales = ops.operator("group_norm").call(x, 2, weight, weight)
        found = ops.operator("group_norm_backward").call(x, x, 2, weight, weight, means, scales)
    assert y.shape == found[0].shape == x.shape
    assert torch.equal(found[1], torch.zeros(8))


def test_gradients_of_no_parameters_are_apart() -> None:
    """PyTorch refuses operators whose results are aliases of each other."""
    x = torch.randn(2, 4, 6, requires_grad=True)
    with wavecast.device("gfx942"):
        y = ops.layer_norm(x) + ops.rms_norm(x) + ops.group_norm(x, 2)[0]
        y.square().sum().backward()
    assert x.grad is not None


def test_group_norm_keeps_channels_last() -> None:
    x = torch.randn(2, 6, 5, 4).contiguous(memory_format=torch.channels_last)
    with wavecast.device("gfx942"):
        y, _, _ = ops.operator("group_norm").call(x, 3)
    assert y.is_contiguous(memory_format=torch.channels_last)
    expected = torch.nn.functional.group_norm(x, 3)
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["layer_norm", "group_norm"])
def test_a_mean_far_from_zero_costs_no_precision(name: str) -> None:
    x = torch.randn(2, 4, 5000, generator=torch.Generator().manual_seed(1)) + 300.0
    arguments = (x, 2) if name == "group_norm" else (x,)
    operator = ops.operator(name)
    with wavecast.device("gfx942"):
        got = operator.call(*arguments)
    expected = operator.reference(arguments[0].double(), *arguments[1:])
    got, expected = (one[0] if isinstance(one, tuple) else one for one in (got, expected))
    torch.testing.assert_close(got.double(), expected, rtol=0, atol=2e-4)


def test_batches_in_one_call() -> None:
    x, weight = torch.randn(4, 3, 8), torch.rand(4, 8)
    norm = torch.ops.wavecast.rms_norm
    expected = torch.stack([norm(one, weight[0]) for one in x])
    torch.testing.assert_close(torch.vmap(norm, (0, None))(x, weight[0]), expected)
    each = torch.vmap(norm)(x, weight)
    torch.testing.assert_close(each[1], norm(x[1], weight[1]))
