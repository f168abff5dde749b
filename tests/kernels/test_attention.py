"""What the cases of the attention operators do not say: bad arguments, strides, empty tensors."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.symbolic_shapes import ShapeEnv  # noqa: E402

import wavecast  # noqa: E402
from tests.targets import thorough_beyond  # noqa: E402
from wavecast import arch, ops  # noqa: E402
from wavecast.compile.configuration import Configuration  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.kernels.attention import attention as rectangular  # noqa: E402
from wavecast.kernels.attention import fp8, mla_prefill, specs, varlen  # noqa: E402
from wavecast.kernels.attention.call import AttentionOptions, Call  # noqa: E402
from wavecast.kernels.attention.sizes import scores  # noqa: E402
from wavecast.kernels.spec import KernelSpec  # noqa: E402
from wavecast.runtimes.triton import capture  # noqa: E402

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
        ({"q": torch.zeros(20, 4, 16)}, "q is 20x4x16, expected ?x?x?x?"),
        ({"q": torch.zeros(1, 20, 4, 16, dtype=torch.int32)}, "q is int32; it takes"),
        ({"k": torch.zeros(1, 30, 2, 16, dtype=torch.float16)}, "k is float16; it takes float32"),
        (
            {"k": torch.zeros(1, 30, 3, 16), "v": torch.zeros(1, 30, 3, 16)},
            "4 heads of q do not share 3",
        ),
        ({"k": torch.zeros(1, 30, 2, 8)}, "k is 1x30x2x8, expected 1x?x?x16"),
        ({"v": torch.zeros(1, 29, 2, 16)}, "v is 1x29x2x16, expected 1x30x2x?"),
        ({"v": torch.zeros(1, 30, 2, 257)}, "heads of v have 257 elements"),
        ({"scale": -1.0}, "scale is -1.0, not positive"),
        ({"left": -2}, "a side of the window is below -1"),
        ({"dropout": 1.0}, "dropout is 1.0, not from 0 to below 1"),
        ({"soft_cap": -1.0}, "soft_cap is -1.0, negative"),
        ({"sinks": torch.zeros(3)}, "sinks is 3, expected 4"),
        ({"mask": torch.ones(1, 1, 20, 30)}, "mask is float32; it takes bool"),
        ({"mask": torch.ones(1, 2, 20, 30, dtype=torch.bool)}, "mask is 1x2x20x30: it has 1 or 4"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        rectangular.attention(**_given(**changed))
    assert message in str(caught.value)


def test_masks_of_any_strides() -> None:
    """Of keys alone, which all queries share, and with elements that lie apart; the gradients too.
    PyTorch's attention is the oracle."""
    given = {name: tensor.requires_grad_() for name, tensor in _given().items()}
    keys = torch.arange(30) % 7 > 0
    apart = (torch.arange(600).reshape(30, 20) % 5 > 0).t()
    for mask in (keys.expand(1, 1, 20, 30), apart.expand(1, 1, 20, 30)):
        heads = [tensor.transpose(1, 2) for tensor in given.values()]
        expected = torch.nn.functional.scaled_dot_product_attention(
            *heads, attn_mask=mask, enable_gqa=True
        )
        grads = torch.autograd.grad(expected.square().sum(), tuple(given.values()))
        with wavecast.device("gfx942"):
            out, _ = ops.attention(**given, mask=mask)
            got = torch.autograd.grad(out.square().sum(), tuple(given.values()))
        torch.testing.assert_close(out.transpose(1, 2), expected, atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(got, grads, atol=1e-5, rtol=1e-5)


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


def test_unknown_sizes_stay_unknown() -> None:
    """`torch.compile` compiles once for batches of any size."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    q, k = (mode.from_tensor(torch.empty(3, rows, heads, 16)) for rows, heads in ((20, 4), (30, 2)))
    with mode:
        out, lse = torch.ops.wavecast.attention(q, k, k)
    assert mode.shape_env is not None
    assert not any(size.is_number for size in mode.shape_env.replacements.values())
    assert out.shape == q.shape
    assert lse.shape == (q.shape[0], q.shape[2], q.shape[1])


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
    positions = range(keys - queries, keys)
    seen = sum(
        (right < 0 or j <= i + right) and (left < 0 or j >= i - left)
        for i in positions
        for j in range(keys)
    )
    assert scores(queries, keys, left, right) == seen


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"])
@pytest.mark.parametrize("spec", [specs.FORWARD, specs.BACKWARD_KV, specs.BACKWARD_Q])
@pytest.mark.parametrize(("head", "dtype"), [(8, "float32"), (128, "bfloat16"), (256, "float32")])
def test_every_target_has_configurations(
    target: str, spec: KernelSpec, head: int, dtype: str
) -> None:
    q = torch.empty((1, 100, 4, head), dtype=getattr(torch, dtype))
    call = Call("attention", q, q, q, AttentionOptions(causal=True))
    assert spec.ranked(call.problem(), arch.load(target))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float32"])
def test_variants_have_configurations(target: str, dtype: str) -> None:
    q = torch.empty((1, 100, 4, 128), dtype=getattr(torch, dtype))
    rope = q[..., :64], q[:, :, 0, :64]
    call = Call("attention", q, q, q, AttentionOptions(causal=True), rope=rope)
    assert specs.FORWARD.ranked(call.problem(), arch.load(target))


@pytest.mark.parametrize(
    ("pack", "ahead"),
    thorough_beyond([(4, False)], [(1, False), (4, False), (4, True)]),
)
def test_heads_that_share_keys_in_one_block(pack: int, ahead: bool) -> None:
    """Every query sees its own window, and every head its own sink and slope."""
    given = _given(q=torch.randn(1, 37, 4, 16), k=torch.randn(1, 45, 1, 16))
    given |= {"v": torch.randn(1, 45, 1, 16), "causal": True, "left": 9, "dropout": 0.25, "seed": 3}
    given |= {"sinks": torch.randn(4), "alibi": torch.rand(4)}
    expected, lse = rectangular.attention_reference(**given)
    settings = {"BLOCK_M": 32, "BLOCK_N": 16, "EDGE": 16, "CHUNK": 0, "PACK": pack}
    forced = Configuration.of({**settings, "AHEAD": ahead, "num_warps": 2, "num_stages": 1})
    with wavecast.device("gfx942"), choice.forced("attention_kernel", forced):
        out, got = rectangular.attention(**given)
    torch.testing.assert_close(out, expected, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(got, lse, atol=2e-6, rtol=1e-5)


def _mla(keys: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    shapes = {"q_nope": (12, 2, 16), "q_rope": (12, 2, 8), "k_nope": (keys, 2, 16)}
    shapes |= {"k_rope": (keys, 8), "v": (keys, 2, 16)}
    given: dict[str, Any] = {n: torch.randn(s, generator=generator) for n, s in shapes.items()}
    starts = {"cu_seqlens_q": 12, "cu_seqlens_k": keys}
    given |= {n: torch.tensor([0, stop], dtype=torch.int32) for n, stop in starts.items()}
    return {**given, "max_q": 12, "max_k": keys}


def _part(given: dict[str, Any], start: int, stop: int, causal: bool) -> dict[str, Any]:
    """The same queries over some of the keys."""
    keys = {name: given[name][start:stop] for name in ("k_nope", "k_rope", "v")}
    starts = torch.tensor([0, stop - start], dtype=torch.int32)
    return {**given, **keys, "cu_seqlens_k": starts, "max_k": stop - start, "causal": causal}


def test_chunks_of_a_context_are_merged_by_their_lse() -> None:
    given = _mla(40)
    expected, lse = mla_prefill.mla_prefill_reference(**given)
    with wavecast.device("gfx942"):
        parts = [
            mla_prefill.mla_prefill(**_part(given, *span))
            for span in ((0, 11, False), (11, 28, False), (28, 40, True))
        ]
    stacked = torch.stack([part[1] for part in parts])
    torch.testing.assert_close(torch.logsumexp(stacked, 0), lse, atol=2e-6, rtol=1e-5)
    weights = torch.softmax(stacked, 0).transpose(1, 2)[..., None]
    merged = (torch.stack([part[0] for part in parts]) * weights).sum(0)
    torch.testing.assert_close(merged, expected, atol=2e-6, rtol=1e-5)


def test_parts_of_heads_may_be_views_of_one_tensor() -> None:
    given = _mla(20)
    q = torch.cat([given["q_nope"], given["q_rope"]], -1)
    kv = torch.cat([given["k_nope"], given["v"]], -1)
    views = {"q_nope": q[..., :16], "q_rope": q[..., 16:], "k_nope": kv[..., :16]}
    with wavecast.device("gfx942"):
        got = mla_prefill.mla_prefill(**{**given, **views, "v": kv[..., 16:]})
        expected = mla_prefill.mla_prefill(**given)
    assert torch.equal(got[0], expected[0])
    assert torch.equal(got[1], expected[1])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k_rope": torch.zeros(20, 2, 8)}, "k_rope is 20x2x8, expected 20x8"),
        ({"q_rope": torch.zeros(12, 1, 8)}, "q_rope is 12x1x8, expected 12x2x?"),
        ({"q_rope": torch.zeros(12, 2, 8).half()}, "q_rope is float16; it takes float32"),
        ({"q_rope": torch.zeros(12, 2, 0), "k_rope": torch.zeros(20, 0)}, "0 elements"),
    ],
)
def test_bad_rope_parts(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        mla_prefill.mla_prefill(**{**_mla(20), **changed})
    assert message in str(caught.value)


def _eight(dtype: Any = torch.float8_e4m3fn, **changed: Any) -> dict[str, Any]:
    given = {name: tensor.to(dtype) for name, tensor in _given().items()}
    one = torch.full((1,), 0.5)
    return {**given, "q_descale": one, "k_descale": one, "v_descale": one, **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q": torch.zeros(1, 20, 4, 16)}, "q is float32; it takes float8_e4m3fn"),
        ({"v_descale": torch.ones(1, 2)}, "v_descale is 1x2, expected 1"),
        ({"q_descale": torch.ones(1, 4)}, "k_descale is 1, expected 1x4"),
        ({f"{x}_descale": torch.ones(1, 4) for x in "qkv"}, "q_descale is 1x4, expected 1x2"),
        ({"k_descale": torch.ones(1).double()}, "k_descale is float64; it takes float32"),
        ({"out_dtype": torch.int8}, "no result of torch.int8"),
    ],
)
def test_bad_fp8_arguments(changed: dict[str, Any], message: str) -> None:
    with wavecast.device("gfx942"), pytest.raises(ArgumentError) as caught:
        fp8.attention_fp8(**_eight(**changed))
    assert message in str(caught.value)


def test_a_format_the_gpu_has_no_code_for() -> None:
    with capture("sm_90"), pytest.raises(ArgumentError, match="has no float8_e4m3fnuz"):
        fp8.attention_fp8(**_eight(torch.float8_e4m3fnuz))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e4m3fnuz])
def test_a_nan_stays_in_its_row_and_column(dtype: Any) -> None:
    """In fp8 that is multiplied as it is, and in fp8 that is widened."""
    given = _eight(dtype)
    q, v = given["q"].float(), given["v"].float()
    q[0, 3, 1, 2], v[0, 5, 0, 7] = float("nan"), float("nan")
    with wavecast.device("gfx942"):
        out, lse = fp8.attention_fp8(**{**given, "q": q.to(dtype), "v": v.to(dtype)})
    wrong = torch.zeros_like(out, dtype=torch.bool)
    wrong[0, 3, 1] = True
    wrong[0, :, :2, 7] = True
    assert torch.equal(out.isnan(), wrong)
    assert torch.equal(lse.isnan(), wrong[..., 0].transpose(1, 2))


@pytest.mark.parametrize("left", thorough_beyond([1], [-1, 1]))
def test_a_sink_of_minus_infinity_is_none(left: int) -> None:
    """Also for queries that see nothing, and in the gradient."""
    q, k, v = (torch.randn(1, tokens, 2, 8, requires_grad=True) for tokens in (5, 3, 3))
    sinks = torch.tensor([-torch.inf, 0.5], requires_grad=True)
    found = []
    for context in (contextlib.nullcontext(), wavecast.device("gfx942")):
        with context:
            out, lse = ops.attention(q, k, v, causal=True, left=left, sinks=sinks)
            grads = torch.autograd.grad(out.square().sum(), (q, k, v, sinks))
        found.append((out, lse, *grads))
    assert not found[0][0][0, :2, 0].any()
    assert bool((found[0][1][0, 0, :2] == -torch.inf).all())
    for right, got in zip(*found, strict=True):
        torch.testing.assert_close(got, right)


WINDOWS = [(70, 70, 40, 0), (37, 90, 5, 3), (40, 20, 100, -1)]
AHEAD = [("gfx942", {"kpack": 2}), ("gfx950", {})]


@pytest.mark.parametrize(
    ("queries", "keys", "left", "right", "target", "rest"),
    thorough_beyond(
        [(*WINDOWS[0], *AHEAD[0]), (*WINDOWS[1], *AHEAD[1]), (*WINDOWS[2], *AHEAD[0])],
        [(*window, *ahead) for window in WINDOWS for ahead in AHEAD],
    ),
)
def test_windows_with_tiles_a_step_ahead(
    queries: int, keys: int, left: int, right: int, target: str, rest: dict[str, int]
) -> None:
    """As judged shapes have them: heads that share keys in a block, an edge on each side or none in
    full view, fewer keys than the window holds."""
    q = torch.randn(1, queries, 8, 64, dtype=torch.bfloat16)
    k, v = (torch.randn(1, keys, 2, 64, dtype=torch.bfloat16) for _ in range(2))
    sinks = torch.randn(8, dtype=torch.bfloat16)
    given = {"left": left, "right": right, "sinks": sinks}
    settings = {
        "BLOCK_M": 64,
        "BLOCK_N": 32,
        "EDGE": 32,
        "PACK": 4,
        "CHUNK": 0,
        "AHEAD": True,
        "matrix_instr_nonkdim": 32,
        "num_warps": 2,
        "num_stages": 1,
        **rest,
    }
    with wavecast.device(target), choice.forced("attention_kernel", Configuration.of(settings)):
        out, lse = ops.attention(q, k, v, **given)
    right_out, right_lse = rectangular.attention_reference(q, k, v, **given)
    torch.testing.assert_close(out.float(), right_out.float(), rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(lse, right_lse, rtol=1e-3, atol=1e-3)
