"""The kernels of the multilayer perceptron of a layer in one step: dense, or experts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.systems.architecture import DenseMlp, ExpertMlp, Layer
from wavecast.systems.parts import Builder, Node, Step, copy


def mlp_nodes(builder: Builder, layer: Layer, step: Step) -> Iterator[Node]:
    """The norm before the perceptron or the experts, and these."""
    rows, hidden, tensor = step.rows, builder.architecture.hidden, builder.parallel.tensor
    rank_rows = builder.own(step).rows
    if not layer.parallel:
        yield from builder.norm("post_norm", rank_rows, builder.parallel.attention_tensor)
    if isinstance(layer.mlp, ExpertMlp) and builder.parallel.dispatches(layer.mlp.topk):
        yield from _dispatch(builder, layer.mlp, step)
        yield from builder.add_streams(rank_rows)
        return
    separate = builder.parallel.attention_data and tensor > 1
    if separate:
        yield builder.collective("gather tokens", "all_gather", rows * hidden * 2)
    if isinstance(layer.mlp, DenseMlp):
        yield from _dense(builder, "", rows, replace(layer.mlp, inter=layer.mlp.inter // tensor))
    else:
        yield from _experts(builder, layer.mlp, rows)
    if separate:
        yield builder.collective("scatter tokens", "reduce_scatter", rows * hidden * 2)
    elif tensor > 1:
        yield builder.reduce(rows)
    yield from builder.add_streams(rank_rows)


def _dense(builder: Builder, prefix: str, rows: int, mlp: DenseMlp) -> Iterator[Node]:
    hidden, narrow, inter = builder.architecture.hidden, builder.precision.dense, mlp.inter
    name, width = ("gate_up_proj", 2 * inter) if mlp.gated else ("up_proj", inter)
    yield from builder.quantise(rows, hidden, narrow)
    yield Node(f"{prefix}{name}", "mlp", builder.product(rows, width, hidden, narrow))
    yield Node(f"{prefix}activation", "mlp", Elementwise.of(mlp.activation, (rows, inter), "bf16"))
    yield from builder.quantise(rows, inter, narrow)
    yield Node(f"{prefix}down_proj", "mlp", builder.product(rows, hidden, inter, narrow))


def _experts(builder: Builder, mlp: ExpertMlp, rows: int) -> Iterator[Node]:
    tensor, ranks = builder.parallel.tensor, builder.parallel.expert
    yield from _route(builder, mlp, rows, max(1, mlp.shared // tensor) if mlp.shared else 0)
    if ranks == 1:
        yield from _expert_products(builder, rows, mlp.inter // tensor, mlp.experts, mlp.topk)
    else:
        yield from _own_experts(builder, mlp, rows * mlp.topk / ranks)


def _dispatch(builder: Builder, mlp: ExpertMlp, step: Step) -> Iterator[Node]:
    """Experts on the GPUs of several replicas: each sends its tokens to those of their experts
    and adds what comes back. Shared experts are on every GPU."""
    hidden, rows = builder.architecture.hidden, step.rows
    if builder.parallel.attention_data:
        rows = builder.own(step).rows
    elif builder.parallel.tensor > 1:
        rows = -(-rows // builder.parallel.tensor)
    yield from _route(builder, mlp, rows, mlp.shared)
    narrow = builder.precision.experts.quantised_activations
    size = rows * hidden
    yield builder.exchange("dispatch", size * (1 if narrow else 2), mlp.topk)
    yield from _own_experts(builder, mlp, rows * mlp.topk)
    yield builder.exchange("combine", 2 * size, mlp.topk)
    if builder.parallel.tensor > 1 and not builder.parallel.attention_data:
        whole = rows * builder.parallel.tensor * hidden * 2
        yield builder.collective("gather tokens", "all_gather", whole)


def _route(builder: Builder, mlp: ExpertMlp, rows: int, shared: int) -> Iterator[Node]:
    """The choice of experts for `rows` tokens, and `shared` units of the experts of all."""
    product = builder.product(
        rows, mlp.experts, builder.architecture.hidden, builder.precision.head
    )
    if builder.engine.router == "fp32":
        yield Node("router input", "experts", copy(rows, 2 * builder.architecture.hidden))
        product = replace(product, dtype="fp32", weight="", scaling="")
    yield Node("router", "experts", product)
    yield Node("topk", "experts", Elementwise.of("scale", (rows, mlp.experts), "fp32"))
    if shared:
        yield from _dense(builder, "shared ", rows, DenseMlp(shared))
        if mlp.shared_gate:
            yield from _weigh_shared(builder, rows)
        size = (rows, builder.architecture.hidden)
        yield Node("add shared", "experts", Elementwise.of("add", size, "bf16"))


def _weigh_shared(builder: Builder, rows: int) -> Iterator[Node]:
    """The result of the shared experts times a gate."""
    hidden = builder.architecture.hidden
    nodes = {
        "gate_proj": Gemm(m=rows, n=1, k=hidden, dtype="bf16"),
        "sigmoid": copy(rows, 1),
        "multiply": copy(rows, hidden),
    }
    for name in builder.engine.shared_gate_kernels:
        yield Node(f"shared {name}", "experts", nodes[name])


def _own_experts(builder: Builder, mlp: ExpertMlp, mean: float) -> Iterator[Node]:
    """The experts of the busiest GPU, where a GPU gets `mean` pairs of token and expert."""
    ranks = builder.parallel.expert
    parallel = builder.parallel
    pairs = mean * parallel.load.busiest(mlp.experts, ranks, parallel.redundant)
    topk = max(1, mlp.topk // ranks)
    tokens = max(1, round(pairs / topk))
    yield from _expert_products(builder, tokens, mlp.inter, parallel.own_experts(mlp.experts), topk)


def _expert_products(
    builder: Builder, tokens: int, inter: int, experts: int, topk: int
) -> Iterator[Node]:
    """The products of the experts, and the kernels before them that `FusedMoe` leaves out."""
    form, hidden = builder.precision.experts, builder.architecture.hidden
    around, tile = builder.engine.expert_kernels, builder.engine.experts_tile
    if "sort" in around:
        pairs = Elementwise.of("copy", (tokens, topk), "fp32")
        yield Node("sort tokens", "experts", pairs)
    scaling = form.scaling if form.scaling in ("token", "block", "mx") else ""
    # Micro-scaled formats are quantised by the kernel that sorts.
    if "quantise" in around and form.quantised_activations and scaling != "mx":
        yield Node("quantise tokens", "experts", copy(tokens, hidden))
    op = FusedMoe(
        tokens,
        hidden,
        inter,
        experts,
        min(topk, experts),
        dtype=form.activations,
        weights=form.stored,
        scaling=scaling,
    )
    if tile and scaling == "block" and inter % tile[1] == 0 and tokens > tile[2]:
        part = builder.engine.experts_part
        op = replace(op, part=part, block_m=tile[0], tile_n=tile[1])
    yield Node("experts", "experts", op)


__all__ = ["mlp_nodes"]
