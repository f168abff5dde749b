"""Attention in graphs: written out, or with a mask as a tensor that is a causal band."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import Graph, Node

from wavecast.frameworks.torch.graphs.nodes import (
    ANDS,
    Report,
    argument,
    name,
    pairs,
    put,
    uncast,
    value,
)
from wavecast.frameworks.torch.substitutes import autocast_operands, floating


@dataclass(frozen=True, slots=True)
class Band:
    """Which keys a query sees, the last query at the last key: none after it if `causal`, and
    `left` before it (-1: all)."""

    causal: bool = False
    left: int = -1

    def join(self, other: Band) -> Band:
        """What both let a query see."""
        lefts = [band.left for band in (self, other) if band.left >= 0]
        return Band(self.causal or other.causal, min(lefts, default=-1))


def fuse_masked_attention(graph: Graph, node: Node, report: Report) -> bool:
    """scaled_dot_product_attention with a mask made of positions -> attention, causal or in a
    window."""
    if node.target is not F.scaled_dot_product_attention:
        return False
    mask = argument(node, 3, "attn_mask")
    band = read_mask(mask) if isinstance(mask, Node) else None
    if band is None or argument(node, 4, "dropout_p", 0.0) or argument(node, 5, "is_causal"):
        return False
    q, k, v = node.args[:3]
    if not _takes(q, k, v):
        return False
    scale = node.kwargs.get("scale")
    put(graph, node, banded_attention, (q, k, v, band.causal, band.left, scale, 0.0))
    report(node, "attention with a mask of positions", "attention")
    return True


def fuse_attention(graph: Graph, node: Node, report: Report) -> bool:
    """softmax(q · kᵀ · scale, with a soft cap, plus a mask of positions) · v -> attention."""
    if name(node) != "matmul" or len(node.args) != 2:
        return False
    probabilities, v = node.args
    softmax = _through_dropout(probabilities)
    if name(softmax) != "softmax" or argument(softmax, 1, "dim") != -1:
        return False
    logits, band = _split_mask(softmax.args[0])
    if band is None:
        return False
    logits, cap = _split_soft_cap(logits)
    product, scale = _split_scale(logits)
    if name(product) != "matmul":
        return False
    q, k = product.args
    if name(k) != "transpose" or set(k.args[1:]) not in ({2, 3}, {-1, -2}):
        return False
    q, k, v = q, _strip_repeat(k.args[0]), _strip_repeat(v)
    if not _takes(q, k, v) or value(node).dtype != value(q).dtype:
        return False
    put(graph, node, banded_attention, (q, k, v, band.causal, band.left, scale, cap))
    report(node, "softmax(q · kᵀ) · v", "attention")
    return True


def banded_attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, left: int, scale: float | None, soft_cap: float
) -> Tensor:
    """Attention of [batch, heads, tokens, width]."""
    q, k, v = (tensor.transpose(1, 2) for tensor in autocast_operands(q, k, v))
    out, _ = torch.ops.wavecast.attention(
        q, k, v, causal=causal, scale=scale, left=left, soft_cap=soft_cap
    )
    return out.transpose(1, 2)


def _takes(*nodes: Any) -> bool:
    q, k, v = (value(node) for node in nodes)
    if floating(q, k, v) is not None or q.dim() != 4:
        return False
    return max(q.shape[-1], v.shape[-1]) <= 256 and q.shape[1] % k.shape[1] == 0


def _through_dropout(node: Any) -> Any:
    """Probabilities before a cast and a dropout that drops nothing."""
    node = uncast(node)
    if name(node) == "dropout":
        dropped = argument(node, 1, "p", 0.5) and argument(node, 2, "training", True)
        return None if dropped else uncast(node.args[0])
    return node


def _split_mask(node: Any) -> tuple[Any, Band | None]:
    """(logits, the band that was added to them as a mask), None for another mask."""
    node = uncast(node)
    if name(node) == "add":
        for logits, mask in pairs(node):
            band = read_mask(mask)
            if band is not None:
                return logits, band
        return node, None
    return node, Band()


def _split_soft_cap(node: Any) -> tuple[Any, float]:
    """(logits, c) of c · tanh(logits / c)."""
    for tanh, cap in pairs(node) if name(node) == "mul" else ():
        ratio: Any = tanh.args[0] if name(tanh) == "tanh" else None
        if name(ratio) in ("div", "truediv") and ratio.args[1] == cap:
            return ratio.args[0], float(cap)
    return node, 0.0


def _split_scale(node: Any) -> tuple[Any, float]:
    """(product, what it is multiplied by)."""
    for product, scale in pairs(node) if name(node) == "mul" else ():
        if isinstance(scale, (int, float)):
            return product, float(scale)
    if name(node) in ("div", "truediv") and isinstance(node.args[1], (int, float)):
        return node.args[0], 1.0 / node.args[1]
    return node, 1.0


def _strip_repeat(node: Any) -> Any:
    """Keys before each head was repeated for the queries that share it."""
    wide: Any = node.args[0] if name(node) == "reshape" else None
    narrow: Any = wide.args[0] if name(wide) == "expand" else None
    if name(narrow) != "getitem" or not isinstance(narrow.args[1], tuple):
        return node
    every = slice(None, None, None)
    return narrow.args[0] if narrow.args[1] == (every, every, None, every, every) else node


def read_mask(node: Any) -> Band | None:
    """The band that a mask is: a tensor of booleans made of the positions of queries and keys, or
    of zeros and least values chosen by one. None for any other mask."""
    node = _strip_expand(node)
    if name(node) == "where":
        visible, hidden = node.args[1:]
        zero = name(visible) == "zeros" or visible == 0
        least = isinstance(hidden, float) and hidden <= torch.finfo(torch.float16).min
        return read_mask(node.args[0]) if zero and least else None
    if name(node) in ANDS:
        bands = [read_mask(operand) for operand in node.args]
        band, other = bands
        return None if band is None or other is None else band.join(other)
    if name(node) in ("new_ones", "ones"):
        return Band()
    if name(node) in ("le", "ge", "gt", "lt"):
        return _comparison_band(node)
    return None


def _strip_expand(node: Any) -> Any:
    every = slice(None, None, None)
    while name(node) in ("expand", "to", "contiguous") or (
        name(node) == "getitem" and all(index == every for index in node.args[1])
    ):
        node = node.args[0]
    return node


def _comparison_band(node: Any) -> Band | None:
    """The band of a comparison of the positions of keys and queries."""
    operand, other = node.args
    relation = name(node)
    swapped = {"le": "ge", "ge": "le", "lt": "gt", "gt": "lt"}
    key = _positions(operand, 3)
    if key is None:
        operand, other, relation = other, operand, swapped[relation]
        key = _positions(operand, 3)
    shift = 0
    if name(other) == "sub" and isinstance(other.args[1], int):
        other, shift = other.args[0], other.args[1]
    query = _positions(other, 2)
    if key is None or query is None or sum(key) != sum(query):  # the last query at the last key
        return None
    if relation == "le" and shift == 0:
        return Band(causal=True)
    if relation == "gt" and shift > 0:
        return Band(left=shift - 1)
    return Band(left=shift) if relation == "ge" and shift >= 0 else None


def _positions(node: Any, dimension: int) -> tuple[int, int] | None:
    """(first, count) of consecutive positions along one of four dimensions."""
    index = tuple(slice(None, None, None) if at == dimension else None for at in range(4))
    if getattr(node, "target", None) is not operator.getitem or node.args[1] != index:
        return None
    node, first = node.args[0], 0
    if name(node) == "add" and isinstance(node.args[1], int):
        node, first = node.args[0], node.args[1]
    is_arange = name(node) == "arange" and len(node.args) == 1 and isinstance(node.args[0], int)
    return (first, node.args[0]) if is_arange else None


__all__ = ["Band", "banded_attention", "fuse_attention", "fuse_masked_attention", "read_mask"]
