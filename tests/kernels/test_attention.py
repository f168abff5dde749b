"""What the cases of the attention operators do not say: bad arguments, strides, empty tensors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast  # noqa: E402
from wavecast import arch  # noqa: E402
from wavecast.kernels.attention import attention as rectangular  # noqa: E402
from wavecast.kernels.attention import spaces, varlen  # noqa: E402
from wavecast.kernels.attention.sizes import scores  # noqa: E402
from wavecast.kernels.checks import ArgumentError  # noqa: E402
from wavecast.kernels.space import Space  # noqa: E402

pytestmark = pytest.mark.torch


def _given(**changed: Any) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(1, 20, 4, 16, generator=generator)
    k = torch.randn(1, 30, 2, 16, generator=generator)
    v = torch.randn(1, 30, 2, 16, generator=generator)
    return {"q": q, "k": k, "v": v, **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q": torch.zeros(20, 4, 16)}, "q has 3 dimensions, expected 4"),
        ({"q": torch.zeros(1, 20, 4, 16, dtype=torch.int32)}, "q is int32; it takes"),
        ({"k": torch.zeros(1, 30, 2, 16, dtype=torch.float16)}, "k is float16, q is float32"),
        ({"k": torch.zeros(1, 30, 3, 16), "v": torch.zeros(1, 30, 3, 16)}, "no multiple of 3"),
        ({"k": torch.zeros(1, 30, 2, 8)}, "k is 1x30x2x8, expected 1x?x?x16"),
        ({"v": torch.zeros(1, 29, 2, 16)}, "v is 1x29x2x16, expected 1x30x2x?"),
        ({"v": torch.zeros(1, 30, 2, 257)}, "heads of v have 257 elements"),
        ({"scale": -1.0}, "scale is -1.0, not positive"),
        ({"left": -2}, "a side of the window is below -1"),
        ({"dropout": 1.0}, "dropout is 1.0, not from 0 to below 1"),
        ({"soft_cap": -1.0}, "soft_cap is -1.0, negative"),
        ({"sinks": torch.zeros(3)}, "sinks is 3, expected 4"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        rectangular.attention(**_given(**changed))
    assert message in str(caught.value)


def test_any_strides() -> None:
    """Heads before rows, keys and values in one tensor, and elements that lie apart."""
    given = _given()
    q = given["q"].transpose(1, 2).contiguous().transpose(1, 2)
    both = torch.stack([given["k"], given["v"]], 3)
    apart = both[:, :, :, 0].transpose(2, 3).contiguous().transpose(2, 3)
    expected, lse = rectangular.attention_reference(**given, causal=True)
    with wavecast.device("gfx942"):
        out, got = rectangular.attention(q, apart, both[:, :, :, 1], causal=True)
    torch.testing.assert_close(out, expected, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(got, lse, atol=2e-6, rtol=1e-5)


def test_queries_that_see_nothing() -> None:
    """With more queries than keys, the first see none under a causal mask."""
    given = _given(q=torch.randn(1, 40, 4, 16), causal=True)
    with wavecast.device("gfx942"):
        out, lse = rectangular.attention(**given)
    assert not out[:, :10].any()
    assert bool(torch.isinf(lse[:, :, :10]).all())
    assert bool(torch.isfinite(lse[:, :, 10:]).all())


def test_empty_tensors() -> None:
    none = _given(q=torch.zeros(1, 0, 4, 16))
    with wavecast.device("gfx942"):
        out, lse = rectangular.attention(**none)
        gradients = rectangular.attention_backward(out, None, out=out, lse=lse, **none)
    assert out.shape == (1, 0, 4, 16)
    assert lse.shape == (1, 4, 0)
    assert [g.shape for g in gradients[:3]] == [none[name].shape for name in "qkv"]
    assert not gradients[1].any()


def test_no_keys() -> None:
    empty = torch.zeros(1, 0, 2, 16)
    with wavecast.device("gfx942"):
        out, lse = rectangular.attention(torch.randn(1, 3, 4, 16), empty, empty)
    assert not out.any()
    assert bool((lse == float("-inf")).all())


def test_packed_sequences_equal_their_own_calls() -> None:
    """Bit by bit: the same tiles in the same order."""
    given = _given()
    starts_q, starts_k = (torch.tensor([0, n], dtype=torch.int32) for n in (20, 30))
    q, k, v = (given[name] for name in "qkv")
    alone = rectangular.attention_reference(q, k, v)
    packed = varlen.attention_varlen_reference(q[0], k[0], v[0], starts_q, starts_k, 20, 30)
    assert torch.equal(alone[0][0], packed[0])
    assert torch.equal(alone[1][0], packed[1])


@pytest.mark.parametrize(("left", "right"), [(-1, -1), (-1, 0), (3, 0), (2, 5), (0, 0)])
@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (5, 9), (9, 5)])
def test_scores_are_counted_exactly(queries: int, keys: int, left: int, right: int) -> None:
    place = range(keys - queries, keys)
    seen = sum(
        (right < 0 or j <= i + right) and (left < 0 or j >= i - left)
        for i in place
        for j in range(keys)
    )
    assert scores(queries, keys, left, right) == seen


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"])
@pytest.mark.parametrize("space", [spaces.FORWARD, spaces.BACKWARD_KV, spaces.BACKWARD_Q])
@pytest.mark.parametrize(("head", "dtype"), [(8, "float32"), (128, "bfloat16"), (256, "float32")])
def test_every_target_has_configurations(target: str, space: Space, head: int, dtype: str) -> None:
    shape = (1, 100, 4, head)
    q = torch.empty(shape, dtype=getattr(torch, dtype))
    call = rectangular._call(q, q, q, True, None, -1, -1, None, None, 0.0, 0.0, 0)
    assert space.ranked(call.problem(), arch.load(target))
