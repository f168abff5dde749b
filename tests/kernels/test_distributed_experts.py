"""Tokens to their experts on other GPUs and back, against a loop over tokens."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from wavecast.errors import ArgumentError, WavecastError  # noqa: E402
from wavecast.kernels.distributed import functions as distributed  # noqa: E402

pytestmark = pytest.mark.torch


def _slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.thorough)


@pytest.mark.parametrize(
    ("target", "tokens", "experts", "topk", "columns", "dtype"),
    [
        ("gfx942", (5, 0), 4, 2, 70, torch.bfloat16),
        _slow("gfx942", (5, 3), 4, 2, 70, torch.bfloat16),
        _slow("gfx942", (2, 0, 3, 1), 8, 3, 33, torch.float32),
        _slow("gfx942", (2, 9, 4, 4, 0, 3, 1, 20), 16, 8, 130, torch.float16),
        _slow("gfx942", (0, 0), 2, 1, 16, torch.float32),
        _slow("gfx90a", (5, 3), 4, 2, 70, torch.bfloat16),
        _slow("gfx950", (5, 3), 4, 2, 70, torch.bfloat16),
        _slow("gfx1100", (5, 3), 4, 2, 70, torch.float16),
        _slow("gfx1201", (5, 3), 4, 2, 70, torch.float16),
    ],
)
def test_there_and_back(
    target: str, tokens: tuple[int, ...], experts: int, topk: int, columns: int, dtype: Any
) -> None:
    world, made = len(tokens), torch.Generator().manual_seed(7)
    each = experts // world
    xs = [torch.randn(n, columns, generator=made).to(dtype) for n in tokens]
    choices = [
        torch.stack([torch.randperm(experts, generator=made)[:topk] for _ in range(n)])
        if n
        else torch.zeros(0, topk, dtype=torch.int64)
        for n in tokens
    ]
    if tokens[0]:
        choices[0][0, -1] = -1
    weights = [torch.rand(n, topk, generator=made) for n in tokens]

    def rank(number: int) -> Any:
        x, chosen, weight = (
            t.to(f"cuda:{number}") for t in (xs[number], choices[number], weights[number])
        )
        got = distributed.expert_dispatch(x, chosen, experts, groups[number])
        # Expert e multiplies by e + 1: exact in these dtypes for what few experts there are.
        factor = torch.arange(each).repeat_interleave(got.counts.cpu()) + number * each + 1
        made_of = (got.tokens.cpu().float() * factor[:, None]).to(dtype).to(x.device)
        out = distributed.expert_combine(made_of, weight, got, groups[number])
        return got, out

    with wavecast.device(target, count=world, check=True) as hooks:
        # Small buffers: rows take several launches of some columns each.
        groups = distributed.groups(world, half=1 << 10)
        results = hooks.ranks(rank)
    for number, (got, out) in enumerate(results):
        rows = [
            (e, r, t, c)
            for e in range(number * each, (number + 1) * each)
            for r in range(world)
            for t in range(tokens[r])
            for c in range(topk)
            if int(choices[r][t, c]) == e
        ]
        assert got.tokens.shape == (len(rows), columns)
        assert got.sources.cpu().tolist() == [list(row[1:]) for row in rows]
        counts = [sum(row[0] == number * each + e for row in rows) for e in range(each)]
        assert got.counts.tolist() == counts
        for row, (_, r, t, _) in zip(got.tokens.cpu(), rows, strict=True):
            assert torch.equal(row, xs[r][t])
        x, weight = xs[number].float(), weights[number]
        expected = torch.zeros_like(x)
        for c in range(topk):
            chosen = choices[number][:, c]
            made_of = (x * (chosen[:, None] + 1)).to(dtype).float()
            expected += torch.where(chosen[:, None] < 0, 0.0, weight[:, c : c + 1] * made_of)
        assert out.dtype == dtype
        torch.testing.assert_close(out.cpu(), expected.to(dtype), rtol=1.6e-2, atol=1e-4)


@pytest.mark.parametrize("target", ["gfx942", _slow("gfx1100")])
@pytest.mark.parametrize("tokens", [(4, 0), _slow((2, 5, 0, 3))])
def test_gradients(target: str, tokens: tuple[int, ...]) -> None:
    """Of a loss of the whole, with experts that multiply by e + 1 and square, in float64 on one
    device; a choice of -1 has no expert."""
    world, made, columns, topk = len(tokens), torch.Generator().manual_seed(9), 6, 2
    experts = 2 * world
    xs, factors = ([torch.randn(n, columns, generator=made) for n in tokens] for _ in range(2))
    weights = [torch.rand(n, topk, generator=made) for n in tokens]
    choices = [torch.randint(experts, (n, topk), generator=made) for n in tokens]
    choices[0][1, 0] = -1

    def rank(number: int) -> Any:
        x, weight = (one[number].to("cuda").requires_grad_() for one in (xs, weights))
        chosen = choices[number].to("cuda")
        sent = distributed.expert_dispatch(x, chosen, experts, groups[number])
        factor = torch.arange(2).repeat_interleave(sent.counts.cpu()) + 2 * number + 1
        y = (sent.tokens * factor.to("cuda").unsqueeze(1)) ** 2
        out = distributed.expert_combine(y, weight, sent, groups[number])
        (out * factors[number].to("cuda")).sum().backward()
        return [one.cpu() for one in (out.detach(), x.grad, weight.grad)]

    with wavecast.device(target, count=world, check=True) as hooks:
        groups = distributed.groups(world, half=1 << 10)
        results = hooks.ranks(rank)
    for number, found in enumerate(results):
        x, weight = (one[number].double().requires_grad_() for one in (xs, weights))
        chosen = choices[number].unsqueeze(2)
        y = (x.unsqueeze(1) * (chosen + 1)) ** 2  # nothing for -1
        out = (y * weight.unsqueeze(2)).sum(1)
        (out * factors[number]).sum().backward()
        for one, wanted in zip(found, (out.detach(), x.grad, weight.grad), strict=True):
            torch.testing.assert_close(one.double(), wanted, rtol=1e-4, atol=1e-4)


def test_arguments_that_do_not_fit() -> None:
    with wavecast.device("gfx942", count=2) as hooks:
        pair = distributed.groups(2, half=1 << 12)
        x = torch.zeros(2, 4, device="cuda:0")
        chosen = torch.zeros(2, 1, dtype=torch.int64)
        with pytest.raises(ArgumentError, match="2 ranks do not divide 3 experts"):
            distributed.expert_dispatch(x, chosen, 3, pair[0])
        with pytest.raises(ArgumentError, match="choices is float32"):
            distributed.expert_dispatch(x, chosen.float(), 4, pair[0])

        def rank(number: int) -> Any:
            mine = torch.zeros(2, 4, device="cuda")
            far = torch.full((2, 1), 4 * number)
            return distributed.expert_dispatch(mine, far, 4, pair[number])

        with pytest.raises(WavecastError, match="rank 1 chose an expert not from -1 to 3"):
            hooks.ranks(rank)
