"""Paged caches: bad arguments, odd strides, empty tensors, lengths of 0, and graphs of shapes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.integrations.triton import capture  # noqa: E402
from wavecast.kernels.checks import ArgumentError  # noqa: E402
from wavecast.kernels.inputs import Make  # noqa: E402

pytestmark = pytest.mark.torch
CASES = {
    name: ops.operator(name)
    for name in ("paged_decode", "paged_attention", "mla_decode", "kv_cache_write")
}


def given(name: str, **changed: Any) -> dict[str, Any]:
    """Arguments of an operator's first case with some replaced."""
    operator = CASES[name]
    return {**operator.inputs(Make(5), **operator.cases[0]), **changed}


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("paged_decode", {"q": torch.zeros(3, 8, 64)}, "q is float32"),
        ("paged_decode", {"q": torch.zeros(3, 7, 64).bfloat16()}, "7 heads do not share 2"),
        ("paged_decode", {"q": torch.zeros(3, 8, 32).bfloat16()}, "key_cache is"),
        ("paged_decode", {"q": torch.zeros(3, 8, 64).half()}, "16-bit caches have the dtype of q"),
        ("paged_decode", {"lengths": torch.zeros(2).int()}, "block_table is 3x"),
        ("paged_decode", {"lengths": torch.zeros(3)}, "lengths is float32"),
        ("paged_decode", {"window": -1}, "window is negative"),
        ("paged_decode", {"k_scale": torch.ones(3)}, "k_scale has not 1 or 2 values"),
        ("paged_decode", {"sinks": torch.ones(3)}, "sinks is 3, expected 8"),
        ("paged_attention", {"starts": torch.zeros(3).int()}, "starts is 3, expected 4"),
        ("mla_decode", {"rope": 60}, "rope is 60"),
        ("mla_decode", {"cache": torch.zeros(4, 16, 99).bfloat16()}, "cache is 4x16x99"),
        ("kv_cache_write", {"slots": torch.zeros(21)}, "slots is float32"),
        ("kv_cache_write", {"value": torch.zeros(21, 2, 64)}, "value is 21x2x64"),
        ("kv_cache_write", {"k_scale": torch.ones(1)}, "has no scale"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    name: str, changed: dict[str, Any], message: str
) -> None:
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message) as caught:
        CASES[name].call(**given(name, **changed))
    assert "\n" not in str(caught.value)


def test_fnuz_caches_are_for_amd_gpus() -> None:
    inputs = given("paged_decode")
    for name in ("key_cache", "value_cache"):
        inputs[name] = inputs[name].to(torch.float8_e4m3fnuz)
    with capture("sm_90"), pytest.raises(ArgumentError, match="AMD GPUs only"):
        CASES["paged_decode"].call(**inputs)


def test_any_strides_give_the_same_result() -> None:
    inputs = given("paged_decode")
    q, keys, values, table = (
        inputs[name] for name in ("q", "key_cache", "value_cache", "block_table")
    )
    both = torch.stack([keys, values], dim=1)  # one allocation, halves of each block
    spread = {
        **inputs,
        "q": q.transpose(0, 1).contiguous().transpose(0, 1),
        "key_cache": both[:, 0],
        "value_cache": both[:, 1],
        "block_table": table.t().contiguous().t().long(),
        "lengths": inputs["lengths"].long(),
    }
    with wavecast.device("gfx942"):
        assert torch.equal(ops.paged_decode(**inputs), ops.paged_decode(**spread))


def test_a_sequence_of_no_tokens_gives_zeros() -> None:
    inputs = given("paged_decode")
    inputs["lengths"][1] = 0
    with wavecast.device("gfx1100"):
        found = ops.paged_decode(**inputs)
    assert not found[1].any()
    assert found[0].any()
    assert torch.equal(found[1], ops.paged_decode(**inputs)[1])


def test_nothing_to_do() -> None:
    inputs = given("paged_decode")
    none = {"q": inputs["q"][:0], "block_table": inputs["block_table"][:0]}
    with wavecast.device("gfx942"):
        found = ops.paged_decode(**{**inputs, **none, "lengths": inputs["lengths"][:0]})
        assert found.shape == (0, 8, 64)
        bare = {"block_table": inputs["block_table"][:, :0], "lengths": inputs["lengths"] * 0}
        assert not ops.paged_decode(**{**inputs, **bare}).any()


def test_rows_past_the_end_of_a_cache_are_never_multiplied() -> None:
    """What lies in a block beyond a sequence's length may be anything, NaN included."""
    inputs = given("paged_attention")
    dirty = {name: inputs[name].clone() for name in ("key_cache", "value_cache")}
    size = dirty["key_cache"].shape[1]
    for row, length in zip(inputs["block_table"].tolist(), inputs["lengths"].tolist(), strict=True):
        if length % size:
            for cache in dirty.values():
                cache[row[length // size], length % size :] = float("nan")
    with wavecast.device("gfx942"):
        clean = ops.paged_attention(**inputs)
        assert torch.equal(clean, ops.paged_attention(**{**inputs, **dirty}))


def test_a_skipped_token_writes_nothing() -> None:
    inputs = given("kv_cache_write")
    inputs["slots"][:] = -1
    before = inputs["key_cache"].clone()
    with wavecast.device("gfx942"):
        ops.kv_cache_write(**inputs)
    assert torch.equal(before, inputs["key_cache"])
