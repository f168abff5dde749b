"""Sampling: filters at their limits, ties, greedy rows, distributions, what is refused."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402

pytestmark = pytest.mark.torch


def _ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_ties_at_the_threshold_are_kept() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 2.0, 0.0], [5.0, 5.0, 5.0, 1.0, 1.0]])
    with wavecast.device("gfx942"):
        kept = ops.top_k_top_p_mask(logits, torch.ones(2), _ints(2, 1)).isfinite()
    assert kept.tolist() == [[False, True, True, True, False], [True, True, True, False, False]]


def test_limits_of_the_filters() -> None:
    logits = torch.randn(5, 300)
    ones = torch.ones(5)
    ks = _ints(0, -3, 300, 5000, 1)
    ps = torch.tensor([1.0, 2.0, 1.0, 1.0, 1e-9])
    with wavecast.device("gfx1100"):
        counts = ops.top_k_top_p_mask(logits, ones, ks, ps, torch.zeros(5)).isfinite().sum(1)
        largest = ops.top_k_top_p_mask(logits, ones, None, torch.zeros(5)).isfinite()
    assert counts.tolist() == [300, 300, 300, 300, 1]
    assert torch.equal(largest, logits == logits.max(1, keepdim=True).values)


def test_greedy_and_forbidden_tokens() -> None:
    logits = torch.full((3, 2000), -torch.inf)
    logits[0, 1999] = -50.0
    logits[1, [7, 1500]] = 2.0
    logits[2, 3:9] = torch.randn(6)
    heat = torch.tensor([1.0, 0.0, 1.0])
    with wavecast.device("gfx942"):
        tokens = ops.top_k_top_p_sample(logits, heat, _ints(50, 50, 50), torch.full((3,), 0.9))
    assert tokens[:2].tolist() == [1999, 7]
    assert 3 <= int(tokens[2]) < 9


def test_tokens_are_drawn_by_their_probabilities() -> None:
    share = torch.tensor([0.5, 0.25, 0.125, 0.125])
    logits = share.log().expand(4000, 4)
    drawn = ops.operator("top_k_top_p_sample").reference(logits, torch.ones(4000), seed=5)
    found = torch.bincount(drawn, minlength=4) / 4000
    assert (found - share).abs().max() < 0.03


def test_one_seed_gives_the_same_tokens() -> None:
    logits, heat = torch.randn(16, 500).half(), torch.full((16,), 2.0)
    with wavecast.device("gfx950"):
        first, again, other = (
            ops.top_k_top_p_sample(logits[:, ::2], heat, seed=seed) for seed in (1, 1, 2)
        )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    right = ops.operator("top_k_top_p_sample").reference(logits[:, ::2], heat, seed=1)
    assert torch.equal(first, right)


def test_no_rows() -> None:
    with wavecast.device("gfx942"):
        assert ops.top_k_top_p_sample(torch.ones(0, 9), torch.ones(0)).shape == (0,)
        assert ops.top_k_top_p_mask(torch.ones(0, 9), torch.ones(0)).shape == (0, 9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((torch.ones(2, 0), torch.ones(2)), "the vocabulary is empty"),
        ((torch.ones(2, 3), torch.ones(3)), "temperature is 3, expected 2"),
        ((torch.ones(2, 3), torch.ones(2), torch.ones(2)), "top_k is float32; it takes int32"),
        ((torch.ones(2, 3).double(), torch.ones(2)), "logits is float64"),
    ],
)
def test_bad_arguments(given: tuple[torch.Tensor, ...], message: str) -> None:
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.top_k_top_p_sample(*given)


def test_penalties_change_what_a_greedy_row_takes() -> None:
    logits = torch.tensor([[3.0, 2.0, -1.0], [3.0, 2.0, -1.0], [-3.0, -2.0, -2.5]])
    counts = torch.tensor([[1, 0, 2], [2, 1, 0], [0, 0, 0]], dtype=torch.int16)
    prompt = torch.tensor([[0, 0, 0], [0, 0, 0], [0, 1, 0]], dtype=torch.bool)
    with wavecast.device("gfx942"):
        repeated = ops.penalise(logits, counts, prompt, torch.tensor([2.0, 1.0, 2.0]))
        fewer = ops.penalise(
            logits[:, ::2].expand(3, 2),
            counts[:, ::2],
            presence=torch.tensor([1.0, 0.0, 1.0]),
            frequency=torch.tensor([0.0, 0.5, 1.0]),
        )
        tokens = ops.top_k_top_p_sample(repeated, torch.zeros(3))
    assert repeated.tolist() == [[1.5, 2.0, -2.0], [3.0, 2.0, -1.0], [-3.0, -4.0, -2.5]]
    assert fewer.tolist() == [[2.0, -2.0], [2.0, -1.0], [-3.0, -2.5]]
    assert tokens.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": torch.zeros(2, 3)}, "counts is float32; it takes int32, int16"),
        ({"prompt": torch.zeros(2, 3)}, "prompt is float32; it takes bool, uint8"),
        ({"repetition": torch.ones(3)}, "repetition is 3, expected 2"),
        ({"logits": torch.ones(3)}, "logits is 3, expected ?x?"),
    ],
)
def test_bad_penalties(change: dict[str, torch.Tensor], message: str) -> None:
    given = {"logits": torch.ones(2, 3), "counts": torch.zeros(2, 3, dtype=torch.int32)}
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=re.escape(message)):
        ops.penalise(**{**given, **change})
