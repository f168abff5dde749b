"""Gates, rotary embeddings and experts written out."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import Graph, Node

from wavecast.frameworks.torch.graphs.nodes import (
    FLOOR_DIVISIONS,
    Report,
    alike,
    argument,
    calls,
    is_number,
    name,
    pairs,
    put,
    put_parts,
    uncast,
    value,
)
from wavecast.frameworks.torch.substitutes import autocast_operands


def fuse_gated_activation(graph: Graph, node: Node, report: Report) -> bool:
    """silu(gate) * up -> silu_mul, gelu(gate) * up -> gelu_mul."""
    if name(node) != "mul":
        return False
    for activation, other in pairs(node):
        if (
            not (isinstance(activation, Node) and isinstance(other, Node))
            or len(activation.users) != 1
        ):
            continue
        if activation.target not in (F.silu, F.gelu) or not alike(
            value(activation.args[0]), value(other)
        ):
            continue
        gate = activation.args[0]
        if activation.target is F.silu and not argument(activation, 1, "inplace", False):
            put(graph, node, torch.ops.wavecast.silu_mul.default, (gate, other))
            report(node, "silu(x) * y", "silu_mul")
            return True
        if activation.target is F.gelu:
            form = activation.kwargs.get("approximate", "none")
            put(graph, node, torch.ops.wavecast.gelu_mul.default, (gate, other, form))
            report(node, "gelu(x) * y", "gelu_mul")
            return True
    return False


def rotary(graph: Graph, node: Node, report: Report) -> bool:
    """x * cos + cat(-x₂, x₁) * sin of queries and of keys, [batch, heads, tokens, width], whose
    tables are the same angles twice -> rope, of both at once."""
    first = _rotation(node)
    if first is None:
        return False
    x, cos, sin = first
    for other in calls(graph):
        rotation = _rotation(other) if other is not node else None
        if rotation is None or rotation[1:] != (cos, sin):
            continue
        if not _precedes(graph, rotation[0], node):
            continue
        tables = cos.args[0], sin.args[0]
        put_parts(graph, node, apply_rotary, (x, rotation[0], *tables), node, other)
        report(node, "x * cos + rotate_half(x) * sin", "rope")
        return True
    return False


def _precedes(graph: Graph, earlier: Node, other: Node) -> bool:
    """Whether a node comes before another."""
    for node in graph.nodes:
        if node is earlier:
            return True
        if node is other:
            return False
    return False


def apply_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys [batch, heads, tokens, width] rotated by tables [batch or 1, tokens, width],
    whose halves are equal."""
    half = cos.shape[-1] // 2
    tables = [table[..., :half].reshape(-1, half) for table in (cos, sin)]
    positions = None
    if cos.shape[0] > 1:
        positions = torch.arange(tables[0].shape[0], device=q.device).view(cos.shape[:2])
    outputs = torch.ops.wavecast.rope(q.transpose(1, 2), k.transpose(1, 2), *tables, positions)
    return outputs[0].transpose(1, 2), outputs[1].transpose(1, 2)


def _rotation(node: Any) -> tuple[Node, Node, Node] | None:
    """(x, cos, sin), the tables with a dimension for heads."""
    if name(node) != "add":
        return None
    for straight, turned in pairs(node):
        if name(straight) != "mul" or name(turned) != "mul":
            continue
        (x, cos), (half, sin) = straight.args, turned.args
        if _is_half_rotated(half, x) and _is_table(cos, "cos") and _is_table(sin, "sin"):
            same = value(x).dtype == value(node).dtype
            return (x, cos, sin) if same else None
    return None


def _is_half_rotated(node: Any, x: Any) -> bool:
    """Whether a node is cat((-x[..., n:], x[..., :n]), -1), n half of the width."""
    if name(node) != "cat" or argument(node, 1, "dim") != -1 or len(node.args[0]) != 2:
        return False
    second, first = node.args[0]
    if name(second) != "neg" or not isinstance(value(x), Tensor) or value(x).dim() != 4:
        return False
    half = value(x).shape[-1] // 2
    return _is_part(second.args[0], x, slice(half, None, None)) and _is_part(
        first, x, slice(None, half, None)
    )


def _is_part(node: Any, of: Any, part: slice) -> bool:
    return node.target is operator.getitem and node.args == (of, (Ellipsis, part))


def _is_table(node: Any, function: str) -> bool:
    """Whether a node is [batch, 1, tokens, width] of cos or sin of angles that come twice."""
    if name(node) != "unsqueeze" or argument(node, 1, "dim") != 1:
        return False
    node = uncast(node.args[0])
    while name(node) == "mul":  # the scaling of attention in long contexts
        tensors = [operand for operand in node.args if not is_number(operand)]
        if len(tensors) != 1:
            return False
        node = uncast(tensors[0])
    angles: Any = uncast(node.args[0]) if name(node) == function else None
    if name(angles) != "cat" or argument(angles, 1, "dim") != -1:
        return False
    parts = angles.args[0]
    return len(parts) == 2 and parts[0] is parts[1]


def experts(graph: Graph, node: Node, report: Report) -> bool:
    """Transformers' grouped products of tokens sorted by expert -> moe_experts."""
    arguments = _experts(node)
    if arguments is None:
        return False
    put(graph, node, mixture_of_experts, arguments)
    report(node, "grouped products of experts", "moe_experts")
    return True


def mixture_of_experts(
    hidden: Tensor, weights: Tensor, indices: Tensor, w1: Tensor, w2: Tensor, activation: str
) -> Tensor:
    """The experts of a model of transformers: weights [experts, out, in]."""
    hidden_cast, w1, w2 = autocast_operands(hidden, w1, w2)
    output = torch.ops.wavecast.moe_experts(
        hidden_cast, weights.float(), indices.to(torch.int32), w1, w2, None, None, activation
    )
    return output.to(hidden.dtype)


def _experts(node: Node) -> tuple[Any, ...] | None:
    """The arguments of `mixed` where a node is sum(y[inverse order].view(tokens, k, width), 1)."""
    if name(node) != "sum" or argument(node, 1, "dim") != 1:
        return None
    view: Any = node.args[0]
    unsorted: Any = view.args[0] if name(view) == "view" else None
    weighted: Any = unsorted.args[0] if name(unsorted) == "getitem" else None
    if name(weighted) != "mul":
        return None
    second, column = weighted.args
    shares: Any = column.args[0] if name(column) == "unsqueeze" else None
    if not _is_grouped(second) or name(shares) != "getitem":
        return None
    inner = _gate(uncast(second.args[0]))
    if inner is None:
        return None
    first, activation = inner
    rows, order = uncast(first.args[0]), shares.args[1]
    weights: Any = shares.args[0]
    sorting: Any = order.args[0] if name(order) == "getitem" else None
    if name(rows) != "getitem" or name(sorting) != "sort" or name(weights) != "reshape":
        return None
    tokens: Any = rows.args[1]
    indices: Any = sorting.args[0]
    if (
        name(tokens) not in FLOOR_DIVISIONS
        or tokens.args[0] is not order
        or name(indices) != "reshape"
    ):
        return None
    if not _is_inverse(unsorted.args[1], order):
        return None
    return (
        *(rows.args[0], weights.args[0], indices.args[0]),
        *(first.args[1].args[0], second.args[1].args[0], activation),
    )


def _is_inverse(node: Any, order: Node) -> bool:
    """Whether a node is new memory in which an order is inverted: node[order] = arange(…)."""
    if name(node) != "empty_like":
        return False
    written = [user.args for user in node.users if name(user) == "setitem"]
    return len(written) == 1 and written[0][1] is order and name(written[0][2]) == "arange"


def _is_grouped(node: Any) -> bool:
    """Whether a node is a product of groups of rows with transposed weights."""
    if "grouped_mm" not in name(node) or len(node.args) < 2:
        return False
    return name(node.args[1]) == "transpose" and set(node.args[1].args[1:]) == {-2, -1}


def _gate(node: Any) -> tuple[Any, str] | None:
    """(the product, the activation) of activation(first half) * second half of a product."""
    for gate, up in pairs(node) if name(node) == "mul" else ():
        if getattr(gate, "target", None) not in (F.silu, F.gelu) or name(up) != "getitem":
            continue
        half, parts = gate.args[0], up.args[0]
        if name(half) != "getitem" or name(parts) != "chunk" or half.args[0] is not parts:
            continue
        first: Any = parts.args[0]
        halves = (half.args[1], up.args[1]) == (0, 1) and parts.args[1] == 2
        if not halves or argument(parts, 2, "dim") != -1 or not _is_grouped(first):
            continue
        if gate.target is F.silu:
            return first, "silu"
        return first, "gelu_tanh" if gate.kwargs.get("approximate") == "tanh" else "gelu"
    return None


__all__ = ["apply_rotary", "experts", "fuse_gated_activation", "mixture_of_experts", "rotary"]
