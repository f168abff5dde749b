"""Writes of new keys and values to caches of a fixed length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from wavecast.frameworks.torch.graphs.nodes import Report, argument, name, value
from wavecast.frameworks.torch.substitutes import FLOATS


def fuse_cache_write(graph: Graph, node: Node, report: Report) -> bool:
    """keys.index_copy_(2, positions, k) and, next to it, the same of values -> kv_cache_write, of
    both at once."""
    first, second = _match_index_copy(node), _match_index_copy(node.next)
    if first is None or second is None or first[1] is not second[1]:
        return False
    keys, values = value(first[0]), value(second[0])
    if keys.dtype != values.dtype or keys.shape[:3] != values.shape[:3]:
        return False
    both = node, node.next
    with graph.inserting_after(both[1]):
        arguments = (first[0], second[0], first[1], first[2], second[2])
        graph.call_function(cache_write_, arguments).meta = dict(node.meta)
    report(node, "index_copy_ of keys and of values", "kv_cache_write")
    for copy, (cache, _, _) in zip(both, (first, second), strict=True):
        copy.replace_all_uses_with(cache)
        graph.erase_node(copy)
    return True


def cache_write_(keys: Tensor, values: Tensor, positions: Tensor, k: Tensor, v: Tensor) -> None:
    """Write new keys and values [batch, heads, tokens, width] to `positions` [tokens] of caches
    [batch, heads, length, width]."""
    batch, heads, length, _ = keys.shape
    sequences = torch.arange(batch, device=positions.device, dtype=positions.dtype)
    slots = (sequences[:, None] * length + positions).flatten()
    new = (
        tensor.transpose(1, 2).reshape(slots.shape[0], heads, tensor.shape[3]) for tensor in (k, v)
    )
    torch.ops.wavecast.kv_cache_write(*new, keys.transpose(1, 2), values.transpose(1, 2), slots)


def _match_index_copy(node: Any) -> tuple[Any, Any, Any] | None:
    """(cache, positions, new rows) of an index_copy_ along the tokens of a cache [batch, heads,
    length, width] of the dtype of the rows."""
    if name(node) != "index_copy_" or len(node.args) != 4 or argument(node, 1, "dim") != 2:
        return None
    cache, _, positions, rows = node.args
    into, new = value(cache), value(rows)
    if not isinstance(into, Tensor) or not isinstance(new, Tensor) or into.dim() != 4:
        return None
    if into.dtype not in FLOATS or new.dtype != into.dtype or not isinstance(positions, Node):
        return None
    return cache, positions, rows


__all__ = ["cache_write_", "fuse_cache_write"]
