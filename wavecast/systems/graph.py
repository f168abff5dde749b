"""The kernels of one step of a model on one GPU, as an engine launches them.

A step computes some sequences by one token each (decode) and some chunks of prompts (prefill).
`layer_nodes` and `head_nodes` give its kernels in order; a node is one operation of `model.ops`
with the name of the module it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from wavecast.perfmodel.ops.collectives import Collective
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.systems.architecture import Layer
from wavecast.systems.attention_parts import attention_nodes
from wavecast.systems.fused_products import with_fused_products
from wavecast.systems.mlp_parts import mlp_nodes
from wavecast.systems.parts import MODULES, Builder, Node, Step, copy, norm


def layer_nodes(builder: Builder, layer: Layer, step: Step) -> Iterator[Node]:
    """The kernels of a layer."""
    nodes = chain(attention_nodes(builder, layer, step), mlp_nodes(builder, layer, step))
    yield from with_fused_products(nodes, builder.engine)


def stage_nodes(builder: Builder, step: Step) -> Iterator[Node]:
    """What a stage of the pipeline sends to the next, for every pair of neighbours."""
    system, parallel = builder.system, builder.parallel
    if parallel.pipeline == 1:
        return
    size = builder.own(step).rows * builder.architecture.hidden * 2
    group = system.group(2, parallel.tensor) if system else None
    for _ in range(parallel.pipeline - 1):
        yield Node("send", "collective", Collective("broadcast", max(1, size), 2, group=group))


def head_nodes(builder: Builder, step: Step) -> Iterator[Node]:
    """The last norm, the output projection, and the choice of tokens."""
    model, tensor = builder.architecture, builder.parallel.tensor
    part = -(-model.vocabulary // tensor)
    sequences = max(1, step.sampled)
    if model.streams > 1:
        mixed = (model.mixed + model.hidden) // 2
        yield Node("mix streams", "norm", copy(sequences, mixed))
    yield Node("norm", "norm", norm(sequences, model.hidden, model.norm))
    projection = builder.product(sequences, part, model.hidden, builder.precision.head)
    yield Node("lm_head", "head", projection)
    if tensor > 1:
        size = sequences * part * tensor * 2
        yield builder.collective("gather logits", "all_gather", size)
    logits = (sequences, model.vocabulary)
    yield Node("sample", "head", Elementwise.of("scale", logits, "fp32"))


__all__ = ["MODULES", "Builder", "Node", "Step", "head_nodes", "layer_nodes", "stage_nodes"]
