"""Losses beyond their descriptions: bad arguments, targets, strides, empty tensors, parts."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.kernels.loss import linear_cross_entropy  # noqa: E402

pytestmark = pytest.mark.torch
LOGITS = torch.ones(2, 8)
TARGETS = torch.zeros(2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("softmax", (torch.tensor(1.0),), "x is a scalar"),
        ("log_softmax", (TARGETS,), "x is int64"),
        ("cross_entropy", (LOGITS, TARGETS[:1]), "targets is 1, expected 2"),
        ("cross_entropy", (LOGITS, LOGITS[:, 0]), "targets is float32"),
        ("cross_entropy", (LOGITS[:, :0], TARGETS), "there are no classes"),
        ("cross_entropy", (LOGITS, TARGETS, -100, 1.5), "label_smoothing is 1.5"),
        ("cross_entropy", (LOGITS, TARGETS, -100, 0.0, 0.0, -1.0), "soft_cap is -1.0"),
        ("linear_cross_entropy", (LOGITS, torch.ones(9, 7), TARGETS), "weight is 9x7"),
        ("linear_cross_entropy", (LOGITS, torch.ones(9, 8).half(), TARGETS), "weight is float16"),
    ],
)
def test_bad_arguments(name: str, arguments: tuple, message: str) -> None:
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.operator(name).call(*arguments)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_any_strides(name: str) -> None:
    whole = torch.randn(3, 40, 12, generator=torch.Generator().manual_seed(0))
    operator = ops.operator(name)
    for x in (whole[:, ::2], whole.transpose(1, 2), whole[..., ::2], whole[:0], whole[..., :0]):
        with wavecast.device("gfx1100"):
            got = operator.call(x)
        torch.testing.assert_close(got, operator.reference(x))


def test_softmax_of_masked_rows() -> None:
    x = torch.full((3, 9), -torch.inf)
    x[0, 2] = 1.0
    with wavecast.device("gfx942"):
        got = ops.operator("softmax").call(x)
    assert got[0].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert got[1:].isnan().all()


@pytest.mark.parametrize("linear", [False, True])
def test_targets_that_are_no_class(linear: bool) -> None:
    logits = torch.randn(5, 9, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([3, -1, 9, 7, 2**40 + 3])
    name = "linear_cross_entropy" if linear else "cross_entropy"
    given = (logits, torch.eye(9), targets) if linear else (logits, targets)
    with wavecast.device("gfx942"):
        loss, lse = ops.operator(name).call(*given, -1)
    expected = torch.nn.functional.cross_entropy(logits[[0, 3]], targets[[0, 3]], reduction="none")
    torch.testing.assert_close(loss[[0, 3]], expected)
    assert loss[1] == 0
    assert loss[[2, 4]].isnan().all()
    torch.testing.assert_close(lse, logits.logsumexp(-1))


def test_a_vocabulary_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_cross_entropy, "_GRADIENT_BYTES", 6 * 256 * 2)
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(6, 16, generator=draw).bfloat16()
    weight = torch.randn(600, 16, generator=draw).bfloat16()
    targets = torch.tensor([0, 255, 256, 511, 512, 599])
    loss, lse = torch.ops.wavecast.linear_cross_entropy(hidden, weight, targets)
    given = (torch.ones_like(loss), None, hidden, weight, targets, lse)
    operator = ops.operator("linear_cross_entropy_backward")
    with wavecast.device("gfx942"):
        got = operator.call(*given)
    for one, expected in zip(got, operator.reference(*given), strict=True):
        torch.testing.assert_close(one, expected, rtol=0.02, atol=0.02)


def test_small_gradients_of_halves() -> None:
    """The share of a row among thousands: as float16 most gradients of logits would be denormal."""
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(16, 32, generator=draw).mul(64).half()
    weight = torch.randn(400, 32, generator=draw).div(1024).half()
    targets = torch.randint(0, 400, (16,), generator=draw)
    _, lse = torch.ops.wavecast.linear_cross_entropy(hidden, weight, targets)
    share = torch.full_like(lse, 2.0**-12)
    with wavecast.device("gfx942"):
        operator = ops.operator("linear_cross_entropy_backward")
        got = operator.call(share, None, hidden, weight, targets, lse)
        none = operator.call(0 * share, 0 * share, hidden, weight, targets, lse)
    exact = operator.reference(
        share.double(), None, hidden.double(), weight.double(), targets, lse.double()
    )
    torch.testing.assert_close(got[1].double(), exact[1], rtol=2e-3, atol=2e-7)
    assert not any(one.any() for one in none)


def test_no_rows() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    with wavecast.device("gfx942"):
        loss, lse = ops.operator("linear_cross_entropy").call(LOGITS[:0], LOGITS, none)
        found = ops.operator("linear_cross_entropy_backward").call(
            loss, None, LOGITS[:0], LOGITS, none, lse
        )
    assert loss.shape == lse.shape == (0,)
    assert torch.equal(found[1], torch.zeros(2, 8))
