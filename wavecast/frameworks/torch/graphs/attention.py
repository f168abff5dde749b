"""Attention in graphs: written out, or with a mask as a tensor."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.fx import Graph, Node

from wavecast.frameworks.torch.graphs.masks import Band, read_mask
from wavecast.frameworks.torch.graphs.nodes import (
    Report,
    argument,
    is_number,
    name,
    pairs,
    put,
    uncast,
    value,
)
from wavecast.frameworks.torch.substitutes import autocast_operands, floating, mask_operand


def fuse_masked_attention(graph: Graph, node: Node, report: Report) -> bool:
    """scaled_dot_product_attention with a mask of booleans -> attention: causal or in a window as
    far as the mask is made of positions, with a mask of the rest of it."""
    if node.target is not F.scaled_dot_product_attention:
        return False
    mask = read_mask(argument(node, 3, "attn_mask"))
    if mask is None or argument(node, 4, "dropout_p", 0.0) or argument(node, 5, "is_causal"):
        return False
    q, k, v = node.args[0], _strip_repeat(node.args[1]), _strip_repeat(node.args[2])
    if not _takes(q, k, v):
        return False
    scale, band = node.kwargs.get("scale"), mask.band
    put(graph, node, banded_attention, (q, k, v, band.left, band.right, scale, 0.0, *mask.rest))
    kind = "a mask" if mask.rest else "a mask of positions"
    report(node, f"attention with {kind}", "attention")
    return True


def fuse_operator_mask(graph: Graph, node: Node, report: Report) -> bool:
    """The operator with a mask of positions, from the attention function of transformers -> causal
    or in a window."""
    del report  # the operator was there before
    operator = torch.ops.wavecast.attention
    operand = node.kwargs.get("mask")
    if node.target not in (operator, operator.default) or not isinstance(operand, Node):
        return False
    mask = read_mask(operand)
    options = dict(node.kwargs)
    widest = options.get("left", -1) == -1 and options.get("right", -1) == -1
    if mask is None or mask.band == Band() or not widest or options.get("causal"):
        return False
    del options["mask"]
    options |= {"left": mask.band.left, "right": mask.band.right}
    put(graph, node, masked_operator, (*node.args[:3], *mask.rest), **options)
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
    put(graph, node, banded_attention, (q, k, v, band.left, band.right, scale, cap))
    report(node, "softmax(q · kᵀ) · v", "attention")
    return True


def banded_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    left: int,
    right: int,
    scale: float | None,
    soft_cap: float,
    *masks: Tensor,
) -> Tensor:
    """Attention of [batch, heads, tokens, width], of what all `masks` have true."""
    q, k, v = (tensor.transpose(1, 2) for tensor in autocast_operands(q, k, v))
    options = {"scale": scale, "left": left, "right": right, "soft_cap": soft_cap}
    out, _ = masked_operator(q, k, v, *masks, **options)
    return out.transpose(1, 2)


def masked_operator(
    q: Tensor, k: Tensor, v: Tensor, *masks: Tensor, **options: Any
) -> tuple[Tensor, Tensor]:
    """The operator, of what all `masks` have true."""
    mask = None
    for part in masks:
        mask = part if mask is None else mask & part
    if mask is not None:
        mask = mask_operand(mask, q.shape[1], k.shape[1])
    return torch.ops.wavecast.attention(q, k, v, mask=mask, **options)


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
        for logits, operand in pairs(node):
            mask = read_mask(operand)
            if mask is not None and not mask.rest:
                return logits, mask.band
        return node, None
    return node, Band()


def _split_soft_cap(node: Any) -> tuple[Any, Any]:
    """(logits, c) of c · tanh(logits / c)."""
    for tanh, cap in pairs(node) if name(node) == "mul" else ():
        ratio: Any = tanh.args[0] if name(tanh) == "tanh" else None
        if name(ratio) in ("div", "truediv") and ratio.args[1] == cap:
            return ratio.args[0], _number(cap)
    return node, 0.0


def _split_scale(node: Any) -> tuple[Any, Any]:
    """(product, what it is multiplied by)."""
    for product, scale in pairs(node) if name(node) == "mul" else ():
        if is_number(scale):
            return product, _number(scale)
    if name(node) in ("div", "truediv") and isinstance(node.args[1], (int, float)):
        return node.args[0], 1.0 / node.args[1]
    return node, 1.0


def _number(argument: Any) -> Any:
    """A number as a float; of a node, which stands for one, the node."""
    return argument if isinstance(argument, Node) else float(argument)


def _strip_repeat(node: Any) -> Any:
    """Keys before each head was repeated for the queries that share it."""
    wide: Any = node.args[0] if name(node) == "reshape" else None
    narrow: Any = wide.args[0] if name(wide) == "expand" else None
    if name(narrow) != "getitem" or not isinstance(narrow.args[1], tuple):
        return node
    every = slice(None, None, None)
    return narrow.args[0] if narrow.args[1] == (every, every, None, every, every) else node


__all__ = [
    "banded_attention",
    "fuse_attention",
    "fuse_masked_attention",
    "fuse_operator_mask",
    "masked_operator",
]
