"""Paged caches: bad arguments, odd strides, empty tensors, lengths of 0, and taking tokens in
parts."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast  # noqa: E402
from tests.targets import QUICK, thorough_beyond  # noqa: E402
from wavecast import arch, ops  # noqa: E402
from wavecast.compile.configuration import Configuration  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.frameworks.torch.verify import verify  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.kernels.decode.combine import reduce_parts  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402
from wavecast.perfmodel.ranking.cache import splits  # noqa: E402
from wavecast.runtimes.triton import capture  # noqa: E402

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
        ("paged_decode", {"lengths": torch.zeros(2).int()}, "lengths is 2, expected 3"),
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
    with wavecast.device("gfx1100"):
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
    """Elements of a block past the length of a sequence may be anything, NaN included."""
    inputs = given("paged_attention")
    dirty = {name: inputs[name].clone() for name in ("key_cache", "value_cache")}
    size = dirty["key_cache"].shape[1]
    for row, length in zip(inputs["block_table"].tolist(), inputs["lengths"].tolist(), strict=True):
        if length % size:
            for cache in dirty.values():
                cache[row[length // size], length % size :] = float("nan")
    with wavecast.device("gfx90a"):
        clean = ops.paged_attention(**inputs)
        assert torch.equal(clean, ops.paged_attention(**{**inputs, **dirty}))


def test_a_skipped_token_writes_nothing() -> None:
    inputs = given("kv_cache_write")
    inputs["slots"][:] = -1
    before = inputs["key_cache"].clone()
    with wavecast.device("gfx942"):
        ops.kv_cache_write(**inputs)
    assert torch.equal(before, inputs["key_cache"])


def test_parts_are_joined_whatever_their_number() -> None:
    """Rows, parts and columns that fill no block, and a row none of whose parts has a token."""
    rows, parts, head = 5, 11, 80
    make = Make(7)
    part = make.normal((rows, parts, head), "float32")
    stat = torch.stack(
        [
            make.normal((rows, parts), "float32", 3.0),
            make.uniform((rows, parts), "float32", 0.5, 9.0),
        ]
    )
    stat[0, 2], stat[1, 2], part[2] = float("-inf"), 0.0, 0.0
    stat[0, 3, 4], stat[1, 3, 4], part[3, 4] = float("-inf"), 0.0, 0.0
    out = torch.full((rows, head), float("nan"))
    with wavecast.device("gfx1100"):
        reduce_parts(part, stat, out)
    weight = torch.exp2(stat[0].double() - stat[0].double().amax(1, keepdim=True)).nan_to_num()
    total = (weight * stat[1]).sum(1, keepdim=True)
    wanted = (weight[:, :, None] * part).sum(1) / torch.where(total > 0, total, 1.0)
    assert not out[2].any()
    assert torch.allclose(out.double(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "device", ["mi210", "mi300x", "mi355x", "rx7900xtx", "rx9070xt", "h100_sxm"]
)
def test_tokens_are_split_as_far_as_it_pays(device: str) -> None:
    """One sequence fills the GPU without parts too short to be worth it; very many are not split,
    since the parts would have to be written and joined."""
    gpu = arch.load(device)
    cost = {"token_bytes": 512.0, "token_flops": 8192.0, "result_bytes": 4096.0}

    def parts(programs: int, tokens: int) -> int:
        return splits(gpu, programs, tokens, resident=4, **cost)

    assert parts(8, 16384) * 8 >= gpu.compute_units
    assert all(tokens // parts(8, tokens) >= 64 for tokens in (64, 100, 1000, 16384))
    assert parts(64 * gpu.compute_units, 4096) == 1
    assert parts(1, 1) == 1


def test_transposed_products_are_the_same_products() -> None:
    """Both orders of the product with the values, which gfx950 chooses between."""
    operator = CASES["mla_decode"]
    sizes = {**operator.cases[1], "cache": "float8_e4m3fn", "scaled": True}
    inputs = operator.inputs(Make(5), **sizes)
    common = {"ROWS": 32, "VALUE": 512, "Q_LOADED": True, "PAIRED": False}
    common |= {"BLOCK_N": 32, "num_stages": 1}
    plain = {**common, "PIECE": 512, "TRANSPOSED": False, "num_warps": 2}
    transposed = {**common, "PIECE": 128, "TRANSPOSED": True, "num_warps": 4}
    found = []
    for settings in (plain, transposed):
        forced = choice.forced("mla_decode_kernel", Configuration.of(settings))
        with wavecast.device("gfx950"), forced, choice.record_decisions() as decisions:
            found.append(ops.mla_decode(**inputs).float())
        assert decisions[0].source == "forced"
    assert torch.allclose(*found, rtol=2e-2, atol=1e-2)
    assert found[0].abs().mean() > 0.01


@pytest.mark.parametrize(
    ("aligned", "target"),
    thorough_beyond(
        [(True, "gfx942"), (False, "gfx942"), (True, "gfx950")],
        itertools.product([True, False], ["gfx90a", "gfx942", "gfx950"]),
    ),
)
def test_sums_are_scaled_where_weights_grow(target: str, aligned: bool) -> None:
    """Scores that rise from tile to tile, by more than sums wait for, in some heads; also in a
    cache whose tokens do not start where loads of 16 bytes do, which is another kernel's."""
    operator = CASES["mla_decode"]
    inputs = operator.inputs(Make(5), **{**operator.cases[0], "heads": 33, "length": 200})
    blocks, size, whole = inputs["cache"].shape
    cache = inputs["cache"] if aligned else torch.empty(blocks, size, whole + 1).bfloat16()
    cache = cache[..., :whole].copy_(inputs["cache"])
    for row, length in zip(inputs["block_table"], inputs["lengths"], strict=True):
        for token in range(int(length)):
            cache[row[token // size], token % size, 0] = token / 8
    inputs["cache"] = cache
    inputs["q"][:, ::3, 0] = 8.0
    inputs["q"][:, 1::3, 0] = -8.0
    with wavecast.device(target), choice.record_decisions() as decisions:
        found = ops.mla_decode(**inputs)
    assert (decisions[0].spec.name == "mla_cdna_kernel") == aligned
    expected = operator.reference(**{**inputs, "q": inputs["q"].double(), "cache": cache.double()})
    assert torch.allclose(found.double(), expected.double(), rtol=2e-2, atol=2e-2)


def test_a_sink_of_minus_infinity_is_none() -> None:
    """Also where the first tile of a row with a window has nothing that it sees."""
    operator = CASES["paged_attention"]
    sizes = {"prefills": 1, "new": 100, "decodes": 0, "length": 100, "heads": 4, "kv_heads": 2}
    arguments = operator.inputs(Make(), **sizes, head=64, block_size=16, dtype="bfloat16")
    arguments["window"] = 8
    with wavecast.device("gfx942"):
        without = operator.call(**arguments)
        arguments["sinks"] = torch.full((4,), float("-inf"))
        found = operator.call(**arguments)
    assert not without.isnan().any()
    torch.testing.assert_close(found, without)


@pytest.mark.parametrize(
    ("name", "target", "check"),
    thorough_beyond(
        [
            *((name, "gfx942", False) for name in ("paged_attention", "paged_decode")),
            ("paged_attention", "gfx1201", False),
            ("paged_decode", "gfx1201", True),
        ],
        [
            (name, target, check)
            for name in ("paged_attention", "paged_decode")
            for target in ("gfx942", "gfx950", "gfx1100", "gfx1201")
            for check in (False, True)
            if check or target in QUICK
        ],
    ),
)
def test_wide_heads_have_their_values_divided_where_registers_are_few(
    name: str, target: str, check: bool
) -> None:
    """Gemma 4 has heads of 512: on RDNA two programs share them, each with all scores. Where one
    program has a head, checks cost most of the time and see the code of narrow heads."""
    operator = ops.operator(name)
    sizes = next(one for one in operator.thorough if one.get("head") == 512)
    verdict = verify(operator, sizes, target, check=check)
    assert not verdict.problems
    decision = next(one for one in verdict.decisions if one.spec.name == f"{name}_kernel")
    assert decision.problem["pieces"] == (1 if target in ("gfx90a", "gfx942", "gfx950") else 2)
    assert not decision.spills


def test_heads_beyond_512_are_refused() -> None:
    inputs = given("paged_decode")
    wide = {"q": torch.zeros(3, 8, 513).bfloat16()}
    wide |= {key: torch.zeros(9, 16, 2, 513).bfloat16() for key in ("key_cache", "value_cache")}
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match="it takes up to 512"):
        CASES["paged_decode"].call(**{**inputs, **wide})
