"""Whole models of Hugging Face in one graph of `torch.compile`: what is replaced in it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections import Counter
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
transformers = pytest.importorskip("transformers", reason="needs transformers")

import torch.nn.functional as F  # noqa: E402

import wavecast  # noqa: E402
from tests.targets import thorough_beyond  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.frameworks.torch import inductor  # noqa: E402
from wavecast.frameworks.torch.graphs import attention, nodes  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
SMALL = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 50, "max_position_embeddings": 64,
}  # fmt: skip
HEADS = {"head_dim": 16}
EXPERTS = {**HEADS, "moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2}
DENSE = {"attention": 2, "rms_norm_residual": 4, "rms_norm": 1, "rope": 2, "silu_mul": 2}
GELU = {"gelu_mul" if name == "silu_mul" else name: count for name, count in DENSE.items()}
SPARSE = {**DENSE, "moe_experts": 2, "rms_norm": 5, "matmul": 11}
MODELS = {
    "Llama": ({}, {**DENSE, "matmul": 15}),
    "Mistral": ({**HEADS, "sliding_window": 4}, {**DENSE, "matmul": 15}),
    "Gemma": (HEADS, {**GELU, "matmul": 15}),
    "Gemma2": ({**HEADS, "sliding_window": 4}, {**GELU, "rms_norm": 5, "matmul": 15}),
    "Qwen3Moe": (EXPERTS, {one: n for one, n in SPARSE.items() if one != "silu_mul"}),
}
"""What differs from `SMALL` in the configuration, and how often each operator is in the graph."""


def made(name: str, **changed: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **MODELS[name][0], **changed})
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def rewritten(function: Any, rewriting: Any, dynamic: bool | None = None) -> Any:
    """A function in one graph that the pass has rewritten, run node by node."""

    def backend(graph: Any, inputs: Any) -> Any:
        del inputs
        rewriting(graph.graph)
        graph.recompile()
        return graph.forward

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", thorough_beyond(("Mistral", "Qwen3Moe"), MODELS))
def test_blocks_of_models_are_operators_in_one_graph(name: str, dynamic: bool | None) -> None:
    model, rewriting = made(name), ops.inductor_pass()
    tokens = torch.randint(3, 50, (2, 9))
    with torch.no_grad():
        expected = model(tokens).logits
        found = rewritten(model, rewriting, dynamic)(tokens).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert Counter(one.operator for one in rewriting.replaced.done) == MODELS[name][1]


def generated(model: Any, call: Any) -> tuple[list[Any], list[Any]]:
    """Logits of a prompt and of two tokens after it, and the keys and values of all layers."""
    tokens = torch.randint(3, 50, (2, 8), generator=torch.Generator().manual_seed(1))
    cache = transformers.StaticCache(config=model.config, max_cache_len=16)
    cache.early_initialization(2, 1, 16, torch.float32, torch.device("cpu"))
    found = [call(one, cache) for one in tokens.split([6, 1, 1], dim=1)]
    return found, [one for layer in cache.layers for one in (layer.keys, layer.values)]


def with_cache(model: Any) -> Any:
    """A call of the model with a cache, which newer releases of transformers name `cache`."""
    named = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    return lambda tokens, cache: model(tokens, use_cache=True, **{named: cache}).logits


def test_caches_of_a_fixed_length() -> None:
    """Queries and keys are rotated, keys and values written and attention computed by one operator
    each, and a write that nothing in the graph reads is not deleted as dead code."""
    model, rewriting = made("Llama", num_hidden_layers=1), ops.inductor_pass()
    with torch.no_grad():
        expected = generated(model, with_cache(model))
        with wavecast.device("gfx942") as device:
            found = generated(model, rewritten(with_cache(model), rewriting))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    done = Counter(one.operator for one in rewriting.replaced.done)
    assert done["kv_cache_write"] == 2  # of a prompt and of a token
    assert done["rope"] == done["attention"] == 2
    assert not rewriting.replaced.left
    assert device.executed


def test_writes_stay() -> None:
    """Values that nothing reads in the graph, by methods, operators and functions."""

    def program(x: Any, sums: Any, counts: Any, kept: Any) -> Any:
        sums.add_(x)
        counts += 1
        torch.mul(x, 2, out=kept)
        return torch.relu(x) * 1

    def given() -> Any:
        return torch.full((3,), 2.0), torch.zeros(3), torch.zeros(3), torch.zeros(3)

    rewriting, expected, tensors = ops.inductor_pass(), given(), given()
    result = rewritten(program, rewriting)(*tensors)
    assert torch.equal(result, program(*expected))
    assert all(torch.equal(one, other) for one, other in zip(tensors, expected, strict=True))


@pytest.mark.thorough
def test_the_backend_by_name_writes_caches() -> None:
    model = made("Llama")
    with torch.no_grad():
        expected = generated(model, with_cache(model))
        torch._dynamo.reset()
        call = torch.compile(with_cache(model), backend="wavecast", fullgraph=True)
        found = generated(model, call)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_they_run_machine_code(name: str) -> None:
    model, tokens = made(name), torch.randint(3, 50, (1, 9))
    with torch.no_grad():
        expected = model(tokens).logits
        with wavecast.device("gfx942") as device:
            rewriting = ops.inductor_pass()
            found = rewritten(model, rewriting)(tokens).logits
    assert Counter(one.operator for one in rewriting.replaced.done) == MODELS[name][1]
    assert device.executed >= sum(MODELS[name][1].values())
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.thorough
def test_the_backend_by_name_compiles_a_model() -> None:
    model, tokens = made("Llama"), torch.randint(3, 50, (1, 9))
    with torch.no_grad():
        expected = model(tokens).logits
        found = torch.compile(model, backend="wavecast", fullgraph=True)(tokens).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["wavecast", "inductor"])
def test_graphs_of_any_size_on_an_emulated_device(backend: str) -> None:
    """The first input of such a graph is a size, and has no device. What is no operator of the
    library is a kernel of the device, too."""
    linear = torch.nn.Linear(16, 16)

    def program(x: Any) -> Any:
        return linear(x).sin() * x.shape[0]

    with torch.no_grad(), wavecast.device("gfx942") as device:
        call = torch.compile(program, backend=backend, dynamic=True)
        for rows in (5, 9):
            x = torch.randn(rows, 16)
            before = device.executed
            torch.testing.assert_close(call(x), program(x), rtol=1e-4, atol=1e-5)
            assert device.executed >= before + (2 if backend == "wavecast" else 1)


def mask_of(queries: int, first: int, keys: int, relation: Any) -> Any:
    q = (torch.arange(queries) + first)[None, None, :, None]
    k = torch.arange(keys)[None, None, None, :]
    return relation(q, k)


def bands(graph: Any) -> list[tuple[int, int, list[tuple[int, ...]]]]:
    """(left, right) of the attention in a rewritten graph, with the shapes of its masks."""
    calls = [node.args[3:] for node in graph.nodes if node.target is attention.banded_attention]
    return [
        (left, right, [tuple(nodes.value(mask).shape) for mask in masks])
        for left, right, _, _, *masks in calls
    ]


@pytest.mark.parametrize(
    ("relation", "first", "band"),
    [
        (lambda q, k: k <= q, 3, (-1, 0, [])),
        (lambda q, k: (k <= q) & (k > q - 3), 3, (2, 0, [])),
        (lambda q, k: (q >= k) & (k >= q - 2), 3, (2, 0, [])),
        (lambda q, k: (q - k).abs() <= 2, 3, (2, 2, [])),
        # the last query is not at the last key
        (lambda q, k: k <= q, 0, (-1, -1, [(1, 1, 4, 7)])),
        (lambda q, k: k < q, 3, (-1, -1, [(1, 1, 4, 7)])),
        (lambda q, k: (k <= q) | (k > q - 3), 3, (-1, -1, [(1, 1, 4, 7)])),
        (lambda q, k: (k <= q) & (k % 3 > 0), 3, (-1, 0, [(1, 1, 1, 7)])),
    ],
)
def test_masks_of_positions(relation: Any, first: int, band: Any) -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask_of(4, first, 7, relation))

    q, k, v = torch.randn(1, 2, 4, 16), torch.randn(1, 2, 7, 16), torch.randn(1, 2, 7, 16)
    found, graphs = read(program, q, k, v)
    torch.testing.assert_close(found, program(q, k, v), rtol=1e-4, atol=1e-5, equal_nan=True)
    assert bands(graphs[0]) == [band]


def read(function: Any, *args: Any, dynamic: bool | None = None, **keywords: Any) -> Any:
    """The result of a function whose graphs the pass has rewritten, and the graphs."""
    rewriting, graphs = ops.inductor_pass(), []

    def rewrite(graph: Any) -> None:
        rewriting(graph)
        graphs.append(graph)

    return rewritten(function, rewrite, dynamic=dynamic)(*args, **keywords), graphs


PADDED = torch.tensor([[1] * 9, [0] * 3 + [1] * 6])
PACKED = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6, 7, 8]])


@pytest.mark.parametrize(
    ("given", "masks"),
    [
        ({"use_cache": False}, []),
        ({"attention_mask": torch.ones_like(PADDED)}, [(2, 1, 1, 9)]),
        ({"attention_mask": PADDED}, [(2, 1, 1, 9)]),
        ({"attention_mask": PADDED.flip(1), "use_cache": False}, [(2, 1, 1, 9)]),
        ({"position_ids": PACKED, "use_cache": False}, [(2, 1, 9, 9)]),
    ],
    ids=["no-cache", "ones", "left", "right", "packed"],
)
@pytest.mark.parametrize("name", thorough_beyond(("Mistral",), ("Llama", "Mistral")))
def test_masks_of_tokenizers(name: str, given: Any, masks: Any) -> None:
    """They stay causal, and in their windows: only what depends on data is a mask, with a row of
    padding for all queries."""
    model, tokens = made(name), torch.randint(3, 50, (2, 9))
    with torch.no_grad():
        expected = model(tokens, **given).logits
        found, graphs = read(model, tokens, **given)
    torch.testing.assert_close(found.logits, expected, rtol=1e-4, atol=1e-5)
    left = 3 if name == "Mistral" else -1
    assert bands(graphs[0]) == [(left, 0, masks)] * 2


def test_masks_of_any_length_in_training() -> None:
    """The second length makes a graph for all lengths; gradients are those of PyTorch."""
    model = made("Llama").train()
    rewriting, graphs = ops.inductor_pass(), []

    def rewrite(graph: Any) -> None:
        rewriting(graph)
        graphs.append(graph)

    call = rewritten(model, rewrite, dynamic=None)
    for length in (9, 11, 14):
        tokens, seen = torch.randint(3, 50, (2, length)), torch.ones(2, length, dtype=torch.long)
        seen[1, :2] = 0
        losses = [one(tokens, attention_mask=seen, labels=tokens).loss for one in (model, call)]
        expected, found = (torch.autograd.grad(loss, tuple(model.parameters())) for loss in losses)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert [(left, right) for graph in graphs for left, right, _ in bands(graph)] == [(-1, 0)] * 4
    assert not rewriting.replaced.left


def test_encoders_with_padding() -> None:
    config = transformers.BertConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        vocab_size=50,
    )  # fmt: skip
    model, tokens = transformers.BertModel(config).eval(), torch.randint(3, 50, (2, 9))
    with torch.no_grad():
        expected = model(tokens, attention_mask=PADDED).last_hidden_state
        found, graphs = read(model, tokens, attention_mask=PADDED)
    torch.testing.assert_close(found.last_hidden_state, expected, rtol=1e-4, atol=1e-5)
    assert bands(graphs[0]) == [(-1, -1, [(2, 1, 1, 9)])]


def test_the_attention_of_a_replaced_model_is_causal() -> None:
    """transformers passes its mask to the operator; the pass reads what of it is a band."""
    model, tokens = made("Llama"), torch.randint(3, 50, (2, 9))
    with torch.no_grad():
        expected = model(tokens, attention_mask=PADDED).logits
        ops.replace(model)
        found, graphs = read(model, tokens, attention_mask=PADDED)
    torch.testing.assert_close(found.logits, expected, rtol=1e-4, atol=1e-5)
    calls = [node for node in graphs[0].nodes if node.target is attention.masked_operator]
    assert [(node.kwargs["right"], len(node.args)) for node in calls] == [(0, 4), (0, 4)]


def test_what_is_left_is_said_once_with_its_place() -> None:
    """On stderr, and in the report: of layers of one kind the first is named. A cached graph is
    read again."""
    model, tokens = made("Llama", attention_dropout=0.5).train(), torch.randint(3, 50, (1, 9))
    ops.in_graphs().left.clear()
    inductor._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            torch._dynamo.reset()
            torch.compile(model, backend="wavecast")(tokens)
    said = [str(one.message) for one in caught if one.category is inductor.LeftToPyTorchWarning]
    [line] = said
    place = r"model\.layers\.0\.self_attn \(modeling_llama\.py:\d+\) and 1 more"
    reason = "2 x scaled_dot_product_attention left: dropout"
    assert re.fullmatch(rf"wavecast: {reason} \(at {place}\)", line)
    assert len(ops.in_graphs().left) == 4
    assert "4 x scaled_dot_product_attention left: dropout" in str(ops.in_graphs())


@pytest.mark.operators
def test_masks_of_positions_on_an_emulated_device() -> None:
    """Dynamo traces the device's function mode, where operators are methods."""

    def program(q: Any, k: Any, v: Any) -> Any:
        mask = mask_of(4, 3, 7, lambda q, k: q.new_ones((), dtype=torch.bool) & (k > q - 3))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    q, k, v = torch.randn(1, 2, 4, 16), torch.randn(1, 2, 7, 16), torch.randn(1, 2, 7, 16)
    rewriting, expected = ops.inductor_pass(), program(q, k, v)
    with wavecast.device("gfx942") as device:
        found = rewritten(program, rewriting)(q, k, v)
    assert [one.operator for one in rewriting.replaced.done] == ["attention"]
    assert device.executed
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_attention_written_out_with_a_soft_cap() -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        logits = torch.tanh(q @ k.transpose(2, 3) * 0.25 / 5.0) * 5.0
        return torch.softmax(logits, dim=-1, dtype=torch.float32).to(q.dtype) @ v

    given = [torch.randn(1, 2, 5, 16) for _ in range(3)]
    rewriting = ops.inductor_pass()
    found = rewritten(program, rewriting)(*given)
    torch.testing.assert_close(found, program(*given), rtol=1e-4, atol=1e-5)
    assert [one.operator for one in rewriting.replaced.done] == ["attention"]


def test_a_norm_that_is_quantised() -> None:
    def program(x: Any, weight: Any) -> Any:
        wide = x.float()
        y = weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
        scale = y.abs().amax(dim=-1, keepdim=True).clamp(min=1e-9) / 448.0
        return (y / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale

    x, weight = torch.randn(6, 64), torch.rand(64)
    rewriting = ops.inductor_pass()
    q, scale = rewritten(program, rewriting)(x, weight)
    right, right_scale = program(x, weight)
    assert [one.operator for one in rewriting.replaced.done][-1] == "rms_norm_quantised"
    torch.testing.assert_close(scale, right_scale, rtol=1e-5, atol=0)
    torch.testing.assert_close(q.float() * scale, right.float() * right_scale, rtol=0.07, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_by_their_function(dtype: Any) -> None:
    """With the addition before them, and with the `eps` that PyTorch has by default: values are so
    small that it counts."""

    def program(x: Any, residual: Any, weight: Any) -> Any:
        total = x + residual
        return F.rms_norm(total, (64,), weight), total, F.rms_norm(x, (64,), weight, 1e-6)

    given = [torch.randn(6, 64) * 1e-3, torch.randn(6, 64) * 1e-3, torch.rand(64)]
    given = [one.to(dtype) for one in given]
    rewriting = ops.inductor_pass()
    for one, right in zip(rewritten(program, rewriting)(*given), program(*given), strict=True):
        torch.testing.assert_close(one, right)
    assert [one.operator for one in rewriting.replaced.done] == ["rms_norm_residual", "rms_norm"]


def test_rotations_of_other_angles_stay() -> None:
    def program(q: Any, k: Any, angles: Any) -> Any:
        cos, sin = (one.unsqueeze(1) for one in (angles.cos(), angles.sin()))

        def turned(x: Any) -> Any:
            half = x.shape[-1] // 2
            return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin

        return turned(q), turned(k)

    given = torch.randn(1, 2, 5, 8), torch.randn(1, 1, 5, 8), torch.randn(1, 5, 8)
    rewriting = ops.inductor_pass()
    for one, right in zip(rewritten(program, rewriting)(*given), program(*given), strict=True):
        assert torch.equal(one, right)
    assert not rewriting.replaced.done
