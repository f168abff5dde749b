"""Sliding windows, perceptrons without a gate, and compressed keys in the kernels of a step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.perfmodel.ops.attention import Attention
from wavecast.systems import huggingface
from wavecast.systems.architecture import CompressedAttention
from wavecast.systems.graph import Node, Step, layer_nodes
from wavecast.systems.parallel import Parallelism, check
from wavecast.systems.windows import in_pieces, with_window

CHUNK = Attention(
    batch=1, heads=8, kv_heads=1, seq_q=1024, seq_k=1024, head=64, head_v=64, dtype="bf16",
    causal=True,
)  # fmt: skip


def pairs(op: Attention) -> float:
    """Pairs of query and key that a causal operation computes."""
    return op.batch * op.seq_q * (op.seq_k - (op.seq_q - 1) / 2)


@pytest.mark.parametrize(
    ("queries", "before", "window"),
    [(4096, 0, 128), (8192, 8192, 128), (8192, 0, 4096), (2048, 3000, 4096), (300, 0, 128)],
)
def test_a_chunk_sees_its_window_and_no_more(queries: int, before: int, window: int) -> None:
    op = replace(CHUNK, seq_q=queries, seq_k=queries + before)
    exact = sum(min(window, before + query + 1) for query in range(queries))
    found = with_window(op, window)
    assert exact <= pairs(found) * 1.02
    # A block computes half of its own keys beyond the window.
    assert pairs(found) <= exact * (1 + 1.2 * found.seq_q / window)
    assert pairs(found) <= pairs(op)


def test_short_sequences_and_single_queries_keep_their_form() -> None:
    assert with_window(CHUNK, 1024) == CHUNK
    one = replace(CHUNK, seq_q=1, seq_k=5000, causal=False)
    assert with_window(one, 128) == replace(one, seq_k=128)


@pytest.mark.parametrize("queries", [8192, 16384, 12288])
def test_a_prompt_is_computed_piece_by_piece(queries: int) -> None:
    op = replace(CHUNK, seq_q=queries, seq_k=queries)
    exact = sum(query % 8192 + 1 for query in range(queries))
    assert pairs(in_pieces(op, 8192)) == pytest.approx(exact, rel=0.15)


def test_short_sequences_keep_their_form_and_others_see_half_a_piece() -> None:
    assert in_pieces(CHUNK, 1024) == CHUNK
    one = replace(CHUNK, seq_q=1, seq_k=5000, causal=False)
    assert in_pieces(one, 128) == replace(one, seq_k=64)
    part = replace(CHUNK, seq_q=64, seq_k=5000)
    assert in_pieces(part, 128) == replace(part, seq_k=96)


def test_time_of_a_windowed_layer_grows_with_the_chunk_not_with_its_square(ready) -> None:
    prices = ready("gpt-oss-20b", "mi300x").model
    builder = prices.builder
    layer = next(la for la, _ in builder.architecture.layers if la.attention.window)
    seconds = [
        prices.prices.of(_named(builder, layer, Step(chunks=1, tokens=tokens))["prefill attention"])
        for tokens in (4096, 16384)
    ]
    assert seconds[1].seconds < 5 * seconds[0].seconds


def _named(builder, layer, step: Step) -> dict[str, Node]:
    return {node.name: node for node in layer_nodes(builder, layer, step)}


@pytest.mark.parametrize(
    ("model", "present", "absent"),
    [
        ("OPT-66B", {"up_proj", "cache write", "post_norm"}, {"gate_up_proj", "rope, cache write"}),
        ("Falcon-40B", {"up_proj", "rope, cache write"}, {"post_norm"}),
        ("BLOOM-176B", {"up_proj", "cache write"}, {"gate_up_proj"}),
    ],
)
def test_layers_in_the_form_of_gpt(ready, model, present, absent) -> None:
    builder = ready(model, "8xMI300X", 8, engine="atom").model.builder
    builder = replace(builder, engine=replace(builder.engine, fused_reduce_norm=False))
    (layer, _), *_ = builder.architecture.layers
    nodes = list(layer_nodes(builder, layer, Step(decode=4, context=100)))
    names = {node.name for node in nodes}
    assert present <= names
    assert not absent & names
    norms = [node.op for node in nodes if node.name.endswith("norm")]
    assert all(op.function == "layer_norm" for op in norms)  # type: ignore[attr-defined]
    reduced = sum(node.name == "all_reduce" for node in nodes)
    assert reduced == (1 if layer.parallel else 2)


def test_compressed_attention_reads_its_window_and_compressed_keys(ready) -> None:
    builder = ready("DeepSeek-V4-Flash", "8xMI355X", 8, dtype="fp8").model.builder
    context = 65536
    read = {}
    for layer, _ in builder.architecture.layers:
        nodes = _named(builder, layer, Step(decode=2, context=context))
        op = nodes["decode attention"].op
        read[layer.attention.rate] = op.seq_k  # type: ignore[attr-defined]
        assert ("choose keys" in nodes) == (layer.attention.indexer is not None)
        assert {"mix streams", "add to streams", "o_a_proj", "compress"} <= set(nodes)
    assert read == {4: 128 + 512, 128: 128 + context // 128}


def test_cache_of_compressed_attention_grows_with_compressed_keys_only(ready) -> None:
    dense, compressed = (
        ready(name, "8xMI355X", 8, dtype="fp8").memory
        for name in ("DeepSeek-R1", "DeepSeek-V4-Flash")
    )
    assert compressed.token < dense.token / 5
    assert compressed.sequence > 0


def test_groups_of_heads_must_divide() -> None:
    name, values, *_ = huggingface.load("DeepSeek-V4-Flash")
    model = huggingface.read({**values, "o_groups": 4}, name)
    with pytest.raises(UsageError, match="4 groups of heads do not divide among 8 GPUs"):
        check(model, Parallelism(tensor=8), system("8xMI355X"))


def test_layer_types_of_compression_ratios() -> None:
    name, values, *_ = huggingface.load("DeepSeek-V4-Flash")
    ratios = {**values, "num_hidden_layers": 4, "compress_ratios": [0, 4, 128, 4]}
    rates: list[int] = []
    for layer, count in huggingface.read(ratios, name).layers:
        assert isinstance(layer.attention, CompressedAttention)
        rates += [layer.attention.rate] * count
    assert sorted(rates) == [0, 4, 4, 128]
    zero = {"compressed_sparse_attention": 0}
    for wrong, message in ((3, "not a mapping"), (zero, "compressed_sparse_attention is 0")):
        with pytest.raises(UsageError, match=message):
            huggingface.read({**values, "compress_rates": wrong}, name)
    with pytest.raises(UsageError, match="rate 7"):
        huggingface.read({**ratios, "compress_ratios": [7, 4, 128, 4]}, name)
