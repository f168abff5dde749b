"""Pointwise operators: bad arguments, odd strides, empty tensors, mixed dtypes, gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402

pytestmark = pytest.mark.torch


def _near(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(got.float(), expected.float(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.silu(torch.ones(3, dtype=torch.int32)), "silu: x is int32"),
        (lambda: ops.gelu(torch.ones(3), "sigmoid"), "approximate is 'sigmoid'"),
        (lambda: ops.silu_backward(torch.ones(3), torch.ones(4)), "dy is 3, expected 4"),
        (lambda: ops.silu_mul(torch.ones(2, 5)), "last dimension of x is 5, expected even"),
        (lambda: ops.silu_mul(torch.ones(2, 4), torch.ones(2, 3)), "up is 2x3, expected 2x4"),
        (lambda: ops.silu_mul_quantised(torch.ones(2, 4), group=7), "groups of 7"),
        (lambda: ops.silu_mul_quantised(torch.ones(2, 4), dtype=torch.int8), "no fp8 dtype int8"),
        (lambda: ops.dropout(torch.ones(3), 1.5, 0), "p is 1.5"),
        (
            lambda: ops.dropout_add(torch.ones(3), torch.ones(2), 0.5, 0),
            "residual is 2, expected 3",
        ),
        (lambda: ops.add(torch.ones(3), torch.ones(3, 1)), "other is 3x1, expected 3"),
        (lambda: ops.embedding(torch.ones(3, 2), torch.ones(3)), "indices is float32"),
        (lambda: ops.embedding(torch.ones(3, 2), torch.tensor([0]), 3), "padding_idx is 3, of 3"),
    ],
)
def test_bad_arguments(call, message: str) -> None:
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": torch.ones(4, 2, 6)}, "k is 4x2x6, expected 4x\\?x8"),
        ({"cos": torch.ones(16, 5), "sin": torch.ones(16, 5)}, "rotate 10 of 8 dimensions"),
        ({"sin": torch.ones(15, 4)}, "sin is 15x4, expected 16x4"),
        ({"cos": torch.ones(3, 4), "sin": torch.ones(3, 4)}, "3 positions for 4 tokens"),
        ({"positions": torch.arange(3)}, "positions is 3, expected 4"),
        ({"sections": [1, 1, 2]}, "sections need positions"),
        ({"sections": [1, 1], "positions": torch.zeros(3, 4, dtype=torch.int64)}, "expected three"),
    ],
)
def test_bad_arguments_of_rope(change: dict[str, object], message: str) -> None:
    given = {"q": torch.ones(4, 3, 8), "k": torch.ones(4, 2, 8)}
    given |= {"cos": torch.ones(16, 4), "sin": torch.ones(16, 4)}
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.rope(**{**given, **change})


def test_empty() -> None:
    table = torch.ones(4, 2)
    with wavecast.device("gfx942"):
        assert ops.gelu(torch.ones(0, 5)).shape == (0, 5)
        assert ops.silu_mul(torch.ones(3, 0)).shape == (3, 0)
        codes, scale = ops.silu_mul_quantised(torch.ones(0, 8), group=32)
        assert (codes.shape, scale.shape) == ((0, 4), (0, 1))
        assert ops.dropout(torch.ones(0), 0.5, 1).shape == (0,)
        assert ops.embedding(torch.ones(3, 4), torch.zeros(0, dtype=torch.int64)).shape == (0, 4)
        none = torch.zeros(0, dtype=torch.int64)
        assert not ops.embedding_backward(torch.ones(0, 4), none, 3).any()
        q, k = ops.rope(torch.ones(0, 2, 4), torch.ones(0, 1, 4), table, table)
        assert (q.shape, k.shape) == ((0, 2, 4), (0, 1, 4))


def test_odd_strides() -> None:
    torch.manual_seed(0)
    x = torch.randn(12, 10)
    with wavecast.device("gfx1100"):
        assert _near(ops.silu(x.t()), torch.nn.functional.silu(x.t()))
        turned = ops.silu_mul(x.t())
        assert _near(turned, torch.nn.functional.silu(x.t()[:, :6]) * x.t()[:, 6:])
        part = ops.silu_mul(x[:, :6])
        assert _near(part, torch.nn.functional.silu(x[:, :3]) * x[:, 3:6])
        table = torch.randn(7, 12).t()
        assert torch.equal(ops.embedding(table, torch.tensor([[3, 0]])), table[None, [3, 0]])
        wide = torch.randn(5, 3 * 8)
        q, k = wide[:, :16].unflatten(1, (2, 8)), wide[:, 16:].unflatten(1, (1, 8))
        cos, sin = torch.randn(4, 8).t(), torch.randn(4, 8).t()
        got = ops.rope(q, k, cos, sin)
    expected = ops.operator("rope").reference(q, k, cos, sin)
    assert all(map(_near, got, expected))


def test_two_dtypes() -> None:
    x, other = torch.randn(700), torch.randn(700).bfloat16()
    with wavecast.device("gfx942"):
        assert torch.equal(ops.add(x, other, 2.0), x + 2.0 * other.float())
        got = ops.silu_backward(other, x)
    assert _near(got, ops.operator("silu_backward").reference(other, x))


def test_indices_out_of_range_are_zeros() -> None:
    table, indices = torch.randn(4, 6), torch.tensor([-1, 2, 4], dtype=torch.int32)
    dy = torch.randn(3, 6)
    with wavecast.device("gfx950"):
        got = ops.embedding(table, indices)
        slope = ops.embedding_backward(dy, indices, 4)
    assert torch.equal(got, torch.stack([torch.zeros(6), table[2], torch.zeros(6)]))
    assert torch.equal(slope[2], dy[1])
    assert int(slope.abs().sum(1).count_nonzero()) == 1


def test_positions_out_of_range_are_zeros() -> None:
    q, k = torch.randn(3, 2, 4), torch.randn(3, 1, 4)
    table = torch.ones(5, 2)
    with wavecast.device("gfx942"):
        got, _ = ops.rope(q, k, table, table, torch.tensor([4, 5, -1]))
    assert got[0].any()
    assert not got[1:].any()


def test_rope_turns_back() -> None:
    angles = torch.rand(6, 4) * 6
    q, k = torch.randn(2, 6, 3, 8), torch.randn(2, 6, 1, 8)
    with wavecast.device("gfx942"):
        turned = ops.rope(q, k, angles.cos(), angles.sin())
        back = ops.rope(*turned, angles.cos(), angles.sin(), inverse=True)
    assert torch.allclose(back[0], q, atol=1e-5)
    assert torch.allclose(back[1], k, atol=1e-5)


def test_dropout_draws_the_same_again() -> None:
    x = torch.ones(5000).requires_grad_()
    with wavecast.device("gfx942"):
        y = ops.dropout(x, 0.3, 11)
        y.sum().backward()
        other = ops.dropout(x.detach(), 0.3, 12)
    assert torch.equal(x.grad, y)
    assert set(y.detach().unique().tolist()) == {0.0, torch.tensor(1 / 0.7).item()}
    assert abs(float((y == 0).float().mean()) - 0.3) < 0.03
    assert not torch.equal(y, other)


def test_extreme_values() -> None:
    x = torch.tensor([0.0, -0.0, 1e30, -1e30, float("inf"), 90.0, -90.0, -20.0, float("nan")])
    with wavecast.device("gfx942"):
        found = {name: getattr(ops, name)(x) for name in ("silu", "gelu", "relu_squared")}
        tanh = ops.gelu(x, "tanh")
    for got in (*found.values(), tanh):
        assert got[-1].isnan()
        assert (got[:2] == 0).all()
        assert got[4] == float("inf")
    for got in (found["silu"], found["gelu"], tanh):
        assert got[2] == x[2]
        assert got[5] == 90.0
        assert got[[3, 6, 7]].abs().max() < 1e-6


def test_torch_compile_traces_the_fakes() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        q, k, table = torch.empty(8, 4, 16), torch.empty(8, 2, 16), torch.empty(64, 8)
        assert [one.shape for one in ops.rope(q, k, table, table)] == [(8, 4, 16), (8, 2, 16)]
        assert ops.dropout(torch.empty(9, 3), 0.5, 3).shape == (9, 3)
        codes, scale = ops.silu_mul_quantised(torch.empty(3, 600), group=128)
        assert (codes.shape, scale.shape) == ((3, 300), (3, 3))
