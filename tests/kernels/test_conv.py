"""Convolutions beyond their descriptions: refusals, memory formats, strides, empty tensors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.kernels.conv.geometry import geometry, is_last, keeps_last  # noqa: E402

pytestmark = pytest.mark.torch


def _on_device(name: str, *args: object, target: str = "gfx942") -> object:
    with wavecast.device(target):
        return getattr(ops, name)(*args)


def _image(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": (6, 3, 3, 3)}, "4 channels and 6 filters of 3 channels in 1 groups"),
        ({"weight": (6, 4, 3)}, "weight has 3 dimensions, expected 4"),
        ({"weight": (6, 4, 9, 9)}, "filters of 9x9 are larger than the padded input"),
        ({"stride": [0, 1]}, r"stride is \[0, 1\]"),
        ({"padding": [-1, 0]}, r"padding is \[-1, 0\]"),
        ({"dilation": [1]}, r"dilation is \[1\]"),
        ({"groups": 0}, "in 0 groups"),
        ({"activation": "tanh"}, "activation is 'tanh'"),
        ({"bias": 5}, "bias is 5, expected 6"),
    ],
)
def test_bad_arguments_of_a_convolution(change: dict[str, object], message: str) -> None:
    given = {"weight": (6, 4, 3, 3), "bias": 6, "stride": [1, 1], "padding": [0, 0]}
    given |= {"dilation": [1, 1], "groups": 1, "activation": "none", **change}
    x, weight, bias = _image(1, 4, 5, 5), _image(*given["weight"]), _image(given["bias"])
    rest = [given[name] for name in ("stride", "padding", "dilation", "groups", "activation")]
    with pytest.raises(ArgumentError, match=message):
        _on_device("convolution", x, weight, bias, *rest)


def test_dtypes_that_do_not_go_together() -> None:
    x, weight = _image(1, 4, 5, 5), _image(6, 4, 3, 3, dtype=torch.bfloat16)
    with pytest.raises(ArgumentError, match=r"x is torch.float16, weight torch.bfloat16"):
        _on_device("conv2d", x, weight)
    with pytest.raises(ArgumentError, match="x is int32"):
        _on_device("conv2d", x.to(torch.int32), weight.to(torch.int32))


@pytest.mark.parametrize("last", [False, True])
def test_the_result_keeps_the_memory_format(last: bool) -> None:
    form = torch.channels_last if last else torch.contiguous_format
    x = _image(2, 16, 5, 6).contiguous(memory_format=form)
    weight = _image(8, 16, 3, 3)
    found = _on_device("conv2d", x, weight, None, None, [1, 1])
    assert keeps_last(found) == last
    expected = torch.nn.functional.conv2d(x.double(), weight.double(), padding=1)
    torch.testing.assert_close(found.double(), expected, rtol=2e-3, atol=2e-2)


def test_inputs_with_gaps() -> None:
    x = _image(2, 20, 7, 9)[:, ::2, 1:, ::2]
    weight = _image(12, 10, 4, 4)[:, :, :3, ::2]
    found = _on_device("conv2d", x, weight)
    expected = torch.nn.functional.conv2d(x.double(), weight.double())
    torch.testing.assert_close(found.double(), expected, rtol=2e-3, atol=2e-2)


def test_no_images() -> None:
    x, weight = _image(0, 4, 5, 5), _image(6, 4, 3, 3)
    assert _on_device("conv2d", x, weight).shape == (0, 6, 3, 3)
    dy, ones, none = _image(0, 6, 3, 3), [1, 1], [0, 0]
    dx = _on_device("convolution_backward_data", dy, weight, [5, 5], ones, none, ones)
    assert dx.shape == (0, 4, 5, 5)
    dw, db = _on_device("convolution_backward_weight", dy, x, [3, 3], ones, none, ones)
    assert dw.shape == (6, 4, 3, 3)
    assert not dw.any()
    assert not db.any()


def test_input_positions_no_tap_sees_have_no_gradient() -> None:
    """Stride 3 with filters of two: every third row and column takes part in nothing."""
    dy, weight = _image(1, 8, 3, 3), _image(8, 16, 2, 2)
    given = ([8, 8], [3, 3], [0, 0], [1, 1])
    dx = _on_device("convolution_backward_data", dy, weight, *given)
    assert not dx[:, :, 2::3].any()
    assert not dx[:, :, :, 2::3].any()
    assert dx[:, :, ::3, ::3].all()


def test_gradients_of_a_layer_on_a_gpu() -> None:
    x = _image(1, 8, 6, 6, dtype=torch.float32).requires_grad_()
    weight = _image(16, 8, 3, 3, dtype=torch.float32).requires_grad_()
    bias = _image(16, dtype=torch.float32).requires_grad_()
    with wavecast.device("gfx1100"):
        ops.conv2d(x, weight, bias, [2, 2], [1, 1], None, 1, "relu").square().sum().backward()
    found = [tensor.grad.clone() for tensor in (x, weight, bias)]
    wide = [tensor.detach().double().requires_grad_() for tensor in (x, weight, bias)]
    torch.nn.functional.conv2d(*wide, stride=2, padding=1).relu().square().sum().backward()
    for got, tensor in zip(found, wide, strict=True):
        torch.testing.assert_close(got.double(), tensor.grad, rtol=1e-5, atol=1e-4)


def test_geometry_of_a_single_dimension_has_leading_ones() -> None:
    found = geometry("t", (2, 4, 30), (6, 2, 5), [3], [2], [2], 2)
    assert (found.out, found.taps, found.padding) == ((1, 1, 9), (1, 1, 5), (0, 0, 2))
    assert found.output_shape() == (2, 6, 9)
    assert not found.depthwise


def test_one_channel_is_not_taken_for_channels_innermost() -> None:
    x = _image(2, 1, 4, 4)
    assert is_last(x)
    assert not keeps_last(x)


def test_steps_of_a_causal_convolution_agree_with_the_whole() -> None:
    x, weight, state = _image(2, 5, 3), _image(5, 4), _image(2, 5, 3)
    whole, after = _on_device("causal_conv1d", x, weight, None, state)
    moving = state.clone()
    steps = [_on_device("causal_conv1d_update", x[:, :, t], moving, weight) for t in range(3)]
    torch.testing.assert_close(torch.stack(steps, 2), whole, rtol=2e-3, atol=2e-3)
    assert torch.equal(moving, after)
    assert torch.equal(after, x)


def test_no_times_leave_the_state_as_it_is() -> None:
    state = _image(2, 5, 3)
    y, after = _on_device("causal_conv1d", _image(2, 5, 0), _image(5, 4), None, state)
    assert y.shape == (2, 5, 0)
    assert torch.equal(after, state)


def test_bad_arguments_of_a_causal_convolution() -> None:
    x, weight = _image(2, 5, 3), _image(5, 4)
    with pytest.raises(ArgumentError, match="state is 2x5x4, expected 2x5x3"):
        _on_device("causal_conv1d", x, weight, None, _image(2, 5, 4))
    with pytest.raises(ArgumentError, match="weight has 17 taps"):
        _on_device("causal_conv1d", x, _image(5, 17))
    with pytest.raises(ArgumentError, match="weight is 4x4"):
        _on_device("causal_conv1d", x, _image(4, 4))
    with pytest.raises(ArgumentError, match="dnext is 2x5x2, expected 2x5x3"):
        _on_device("causal_conv1d_backward", x, _image(2, 5, 2), x, weight)


def test_gradients_of_a_causal_convolution_have_the_dtypes_of_its_arguments() -> None:
    """Only one result is used: the gradient of the other is zero."""
    x, weight = _image(2, 5, 3).requires_grad_(), _image(5, 4).requires_grad_()
    bias = _image(5, dtype=torch.float32).requires_grad_()
    torch.ops.wavecast.causal_conv1d(x, weight, bias)[0].square().sum().backward()
    wide = [tensor.detach().double().requires_grad_() for tensor in (x, weight, bias)]
    y, _ = ops.operator("causal_conv1d").reference(*wide)
    y.square().sum().backward()
    for got, expected in zip((x, weight, bias), wide, strict=True):
        assert got.grad.dtype == got.dtype
        torch.testing.assert_close(got.grad.double(), expected.grad, rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize("last", [False, True])
def test_what_a_window_does_not_see_does_not_matter(last: bool) -> None:
    """Few channels: rows of taps are loaded in whole vectors, past the last of them."""
    form = torch.channels_last if last else torch.contiguous_format
    x = _image(1, 3, 9, 40).contiguous(memory_format=form)
    weight = _image(4, 3, 7, 7)
    found = _on_device("conv2d", x, weight, None, [2, 2], [3, 3])
    x[:, :, :, 20] = float("nan")
    spoilt = _on_device("conv2d", x, weight, None, [2, 2], [3, 3])
    sees = [abs(2 * column - 20) <= 3 for column in range(20)]
    assert spoilt.isnan().any(dim=(0, 1, 2)).tolist() == sees
    assert torch.equal(spoilt[..., 12:], found[..., 12:])


def test_the_gradient_of_a_bias_is_left_out_where_nobody_asks() -> None:
    dy, x = _image(1, 6, 3, 3), _image(1, 4, 5, 5)
    given = ([3, 3], [1, 1], [0, 0], [1, 1], 1)
    with_bias, db = _on_device("convolution_backward_weight", dy, x, *given, True)
    without, none = _on_device("convolution_backward_weight", dy, x, *given, False)
    assert torch.equal(with_bias, without)
    assert db.shape == (6,)
    assert none.shape == (0,)
