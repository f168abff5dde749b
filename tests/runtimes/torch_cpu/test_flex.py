"""FlexAttention's modifiers by the library's attention."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
flex: Any = pytest.importorskip("torch.nn.attention.flex_attention")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import UsageError  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
TOKENS, HEADS = 24, 4
DOCUMENTS = torch.tensor([0] * 7 + [1] * 1 + [2] * 16)
OTHERS = torch.stack([DOCUMENTS, torch.tensor([0] * 20 + [1] * 4)])
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def window(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q - kv <= 5


def both_sides(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (kv < q + 3) & (kv > q - 4)


def documents(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return DOCUMENTS[q] == DOCUMENTS[kv]


def documents_of_batches(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return OTHERS[b, q] == OTHERS[b, kv]


def capped(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return 2.0 * torch.tanh(score / 2.0)


def alibi(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return score + torch.exp2(-((h + 1) * 8.0 / HEADS)) * (kv - q)


def table(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return score - SLOPES[h] * torch.abs(q - kv)


def hidden(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return torch.where(q >= kv, capped(score, b, h, q, kv), -math.inf)


def tensors(keys: int = TOKENS, shared: int = HEADS) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    shapes = (2, HEADS, TOKENS, 16), (2, shared, keys, 16), (2, shared, keys, 16)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


def written_out(q: Any, k: Any, v: Any, score_mod: Any, mask: Any) -> tuple[Any, Any]:
    """The definition, element by element."""
    groups = q.shape[1] // k.shape[1]
    k, v = (one.repeat_interleave(groups, 1) for one in (k, v))
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    index = torch.meshgrid(*(torch.arange(size) for size in scores.shape), indexing="ij")
    scores = scores if score_mod is None else score_mod(scores, *index)
    if mask is not None:
        scores = scores.masked_fill(~mask(*index), -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


CASES = [
    (None, None),
    (None, causal),
    (None, window),
    (None, both_sides),
    (None, flex.and_masks(causal, window)),
    (None, documents),
    (None, flex.and_masks(documents_of_batches, causal)),
    (capped, causal),
    (alibi, causal),
    (table, None),
    (hidden, None),
    (hidden, window),
]


@pytest.mark.parametrize(("score_mod", "mask"), CASES)
def test_modifiers_are_options_of_attention(score_mod: Any, mask: Any) -> None:
    given = tensors()
    found, lse = ops.flex_attention(*given, score_mod=score_mod, block_mask=mask, return_lse=True)
    expected, right = written_out(given[0], given[1], given[2], score_mod, mask)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(lse, right, rtol=1e-4, atol=1e-5)


@pytest.mark.operators
def test_block_masks_and_shared_heads_run_machine_code() -> None:
    given = tensors(shared=2)
    block_mask = flex.create_block_mask(causal, None, None, TOKENS, TOKENS, device="cpu")
    expected = flex.flex_attention(*given, score_mod=alibi, block_mask=block_mask, enable_gqa=True)
    with wavecast.device("gfx942") as device:
        found = ops.flex_attention(*given, score_mod=alibi, block_mask=block_mask, enable_gqa=True)
    assert device.executed == 1
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_positions_begin_at_the_first_query() -> None:
    q, k, v = tensors(keys=40)

    def early(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return kv <= q + 20

    found = ops.flex_attention(q, k, v, block_mask=early)
    torch.testing.assert_close(found, written_out(q, k, v, None, early)[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(UsageError, match="a band of 40 keys that ends before 24 queries"):
        ops.flex_attention(q, k, v, block_mask=causal)


@pytest.mark.parametrize(
    ("score_mod", "mask", "reason"),
    [
        (lambda s, b, h, q, kv: s * 2, None, "it ends in mul"),
        (lambda s, b, h, q, kv: s + torch.ones(4)[q], None, "it ends in add"),
        (lambda s, b, h, q, kv: torch.where(q >= kv, s, -1e9), None, "puts -1000000000.0"),
        (alibi, None, "not causal"),
        (None, lambda b, h, q, kv: (q >= kv) | (kv < 4), "not a band of positions or documents"),
        (None, lambda b, h, q, kv: h == 0, "not a band of positions or documents"),
        (None, lambda b, h, q, kv: torch.tensor([0, 1] * 12)[q] == kv, "not a band of positions"),
        (None, lambda b, h, q, kv: q >= kv if bool(b == 0) else q < kv, "cannot be traced"),
    ],
)
def test_other_modifiers_are_refused(score_mod: Any, mask: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        ops.flex_attention(*tensors(), score_mod=score_mod, block_mask=mask)


def test_documents_in_pieces_and_shared_heads_without_leave_are_refused() -> None:
    pieces = torch.tensor([0, 1] * 12)
    with pytest.raises(UsageError, match="not neighbours"):
        ops.flex_attention(*tensors(), block_mask=lambda b, h, q, kv: pieces[q] == pieces[kv])
    with pytest.raises(UsageError, match="enable_gqa"):
        ops.flex_attention(*tensors(shared=2))
