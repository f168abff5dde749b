"""Attention over ranks: what a step of the ring takes, and the ring against gathered keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wavecast import arch
from wavecast.arch.systems import system
from wavecast.errors import UnknownName, Unpredictable, UsageError
from wavecast.perfmodel.ops import op
from wavecast.perfmodel.ops.attention import Attention
from wavecast.perfmodel.ops.collectives.context import ContextAttention


def _problem(tokens: int = 8192, **options: object) -> ContextAttention:
    sizes = {"batch": 1, "heads": 8, "kv_heads": 8, "head": 128, "gpus": 8}
    return ContextAttention(tokens=tokens, **{**sizes, **options})  # type: ignore[arg-type]


def test_the_faster_algorithm_is_taken() -> None:
    device = arch.load("mi300x")
    for tokens, fastest in ((1024, "gather"), (65536, "ring")):
        times = {
            name: _problem(tokens, algorithm=name).predict(device).seconds
            for name in ("ring", "gather")
        }
        best = _problem(tokens).predict(device)
        assert best.assumed["algorithm"] == fastest == min(times, key=lambda name: times[name])
        assert best.seconds == min(times.values())
        assert best.low < best.seconds < best.high


@pytest.mark.parametrize("tokens", [512, 8192])
@pytest.mark.parametrize("causal", [False, True])
def test_a_ring_takes_as_long_as_attention_or_its_links(tokens: int, causal: bool) -> None:
    device = arch.load("mi300x")
    result = _problem(tokens, causal=causal, algorithm="ring").predict(device)
    assert result.seconds >= max(result.bounds.values())
    assert result.seconds <= sum(result.bounds.values()) * (1 + 1e-12)
    # Seven steps bring the keys and values of a rank, each over one of its links of 64 GB/s.
    assert result.bounds["links"] > 7 * 2 * tokens * 8 * 128 * 2 / 64e9
    part = Attention(
        batch=1, heads=8, kv_heads=8, seq_q=tokens, seq_k=tokens, head=128, head_v=128,
        dtype="bf16", library="triton",
    )  # fmt: skip
    first = replace(part, causal=causal).predict(device).seconds
    attention = first + 7 * part.predict(device).seconds
    assert result.bounds["attention"] == pytest.approx(attention)


def test_the_work_is_that_of_the_last_rank() -> None:
    tokens, gpus = 16, 4
    problem = _problem(tokens, gpus=gpus, causal=True)
    scores = sum(tokens * (gpus - 1) + row + 1 for row in range(tokens))
    assert problem.work().flops == {"bf16": 8 * scores * 2 * (128 + 128)}


def test_command_line_and_errors() -> None:
    parse = op("context_attention").parse
    options = {"gpus": "8", "dtype": "bf16", "causal": "true", "algorithm": "ring"}
    problem = parse("1x64x8x4096x128", options)
    assert str(problem) == "attention 1x64x8x4096x128 bf16 on 8 GPUs causal ring"
    assert hash(problem) == hash(parse("1x64x8x4096x128", options))
    for change, error in (
        ({"gpus": "1"}, UsageError),
        ({"dtype": "fp8"}, UnknownName),
        ({"algorithm": "tree"}, UnknownName),
        ({"library": "none"}, UnknownName),
        ({"colour": "red"}, UnknownName),
    ):
        with pytest.raises(error):
            parse("1x64x8x4096x128", {**options, **change})
    with pytest.raises(UsageError, match="gpus"):
        parse("1x64x8x4096x128", {"dtype": "bf16"})
    machine = system("2x8xMI300X")
    with pytest.raises(Unpredictable, match="one node"):
        _problem(gpus=16, group=machine.group(16)).predict(machine.device)
