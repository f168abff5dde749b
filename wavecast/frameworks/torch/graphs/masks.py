"""Masks in graphs: what of them is a band around the diagonal, and what is left."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from wavecast.frameworks.torch.graphs.nodes import ANDS, argument, name, value

_EVERY: Final = slice(None, None, None)


@dataclass(frozen=True, slots=True)
class Band:
    """Which keys a query sees, the last query at the last key: `left` before it and `right` after
    it (-1: all)."""

    left: int = -1
    right: int = -1

    def join(self, other: Band) -> Band:
        """What both let a query see."""
        return Band(*(_least(*sides) for sides in zip(self.sides, other.sides, strict=True)))

    @property
    def sides(self) -> tuple[int, int]:
        return self.left, self.right


def _least(side: int, other: int) -> int:
    return min((size for size in (side, other) if size >= 0), default=-1)


@dataclass(frozen=True, slots=True)
class Mask:
    """A band, and nodes of booleans that have to be true as well."""

    band: Band
    rest: tuple[Node, ...] = ()


def read_mask(node: Any) -> Mask | None:
    """What a mask is: a tensor of booleans, or of zeros and least values chosen by positions. None
    for any other mask, and for none."""
    stripped = _strip_expand(node)
    if name(stripped) == "where":
        visible, hidden = stripped.args[1:]
        zero = name(visible) == "zeros" or visible == 0
        least = isinstance(hidden, float) and hidden <= torch.finfo(torch.float16).min
        mask = read_mask(stripped.args[0]) if zero and least else None
        # a query that sees nothing has a softmax of least values there, and none where they are
        # booleans
        return None if mask is None or mask.rest else mask
    operands = list(_conjuncts(node))
    packed = tuple(_strip_expand(base) for base in map(_sequences, operands) if base is not None)
    band, rest = Band(), []
    for operand in operands:
        part = _read_band(_strip_expand(operand), packed)
        if part is not None:
            band = band.join(part)
        elif _is_boolean(operand):
            rest.append(operand)
        else:
            return None
    return Mask(band, tuple(rest))


def _is_boolean(node: Any) -> bool:
    tensor = value(node)
    return isinstance(node, Node) and isinstance(tensor, Tensor) and tensor.dtype == torch.bool


def _conjuncts(node: Any) -> Iterator[Any]:
    """The operands of the conjunctions that a mask is made of; the mask itself if it is none."""
    stripped = _strip_expand(node)
    if name(stripped) in ANDS and len(stripped.args) == 2:
        for operand in stripped.args:
            yield from _conjuncts(operand)
    else:
        yield node


def _strip_expand(node: Any) -> Any:
    """A tensor before it was expanded, or moved with the dtype it has."""
    while isinstance(node, Node):
        label = name(node)
        same = label in ("expand", "contiguous", "unsqueeze") or (
            label == "getitem" and isinstance(node.args[1], tuple) and _is_whole(node.args[1])
        )
        if not same and not (label == "to" and _keeps_dtype(node)):
            break
        node = node.args[0]
    return node


def _is_whole(index: tuple[Any, ...]) -> bool:
    return all(isinstance(part, slice) and part == _EVERY for part in index)


def _keeps_dtype(node: Node) -> bool:
    before, after = value(node.args[0]), value(node)
    return isinstance(before, Tensor) and before.dtype == after.dtype


def _read_band(node: Any, packed: tuple[Node, ...]) -> Band | None:
    """The band that booleans are, None for others. `packed` are positions in sequences whose
    queries see no keys of other sequences: within one, a token has the position after that of the
    token before."""
    label = name(node)
    if label in ("new_ones", "ones"):
        return Band()
    if label == "eq":
        base = _sequences(node)
        return Band() if base is not None and _first_position(base) is not None else None
    if label not in ("le", "ge", "gt", "lt"):
        return None
    if label == "ge" and node.args[1] == 0:  # of all positions
        return Band() if _positions(node.args[0], 2, packed) else None
    return _distance_band(node, packed) or _comparison_band(node, packed)


def _comparison_band(node: Node, packed: tuple[Node, ...]) -> Band | None:
    """The band of a comparison of the positions of keys and queries."""
    operand, other = node.args
    relation = name(node)
    swapped = {"le": "ge", "ge": "le", "lt": "gt", "gt": "lt"}
    key = _positions(operand, 3, packed)
    if key is None:
        operand, other, relation = other, operand, swapped[relation]
        key = _positions(operand, 3, packed)
    shift = 0
    if name(other) == "sub" and isinstance(other, Node) and isinstance(other.args[1], int):
        other, shift = other.args[0], other.args[1]
    query = _positions(other, 2, packed)
    if key is None or query is None or not _last_at_last(key, query):
        return None
    if relation == "le" and shift == 0:
        return Band(right=0)
    if relation == "gt" and shift > 0:
        return Band(left=shift - 1)
    return Band(left=shift) if relation == "ge" and shift >= 0 else None


def _distance_band(node: Node, packed: tuple[Node, ...]) -> Band | None:
    """The band of abs(query - key) <= distance."""
    difference: Any = node.args[0].args[0] if name(node.args[0]) == "abs" else None  # pyright: ignore
    distance = node.args[1]
    if name(node) != "le" or not isinstance(distance, int) or name(difference) != "sub":
        return None
    key, query = (
        _positions(difference.args[1], 3, packed),
        _positions(difference.args[0], 2, packed),
    )
    if key is None or query is None or distance < 0 or not _last_at_last(key, query):
        return None
    return Band(distance, distance)


def _last_at_last(key: tuple[Any, Any], query: tuple[Any, Any]) -> bool:
    """Whether the last query is at the last key, whatever unknown sizes are."""
    return statically_known_true(sum(key) == sum(query))


def _positions(node: Any, dimension: int, packed: tuple[Node, ...]) -> tuple[Any, Any] | None:
    """(first, count) of consecutive positions along one of four dimensions."""
    if getattr(node, "target", None) is not operator.getitem:
        return None
    source, index = node.args
    if isinstance(index, tuple) and len(index) == 2:  # position_ids[batch, index]
        positions = _positions(index[1], dimension, packed)
        first = 0 if _strip_expand(source) in packed else _first_position(source)
        return None if positions is None or first is None else (positions[0] + first, positions[1])
    if index != tuple(_EVERY if at == dimension else None for at in range(4)):
        return None
    first, arange = _split_offset(source)
    count = value(arange.args[0]) if _counts_from_zero(arange) else None
    return None if first is None or count is None else (first, count)


def _split_offset(node: Any) -> tuple[Any, Any]:
    """(what is added to it, a tensor); None for a tensor that is added."""
    first: Any = 0
    while name(node) == "add" and len(node.args) == 2:
        offset = value(node.args[1])
        if not isinstance(offset, (int, torch.SymInt)):
            return None, node
        node, first = node.args[0], first + offset
    return first, node


def _counts_from_zero(node: Any) -> bool:
    return name(node) == "arange" and len(node.args) == 1


def _first_position(node: Any) -> Any:
    """The first of positions [batch, tokens] that are consecutive in every row; None for others."""
    first, arange = _split_offset(_strip_expand(node))
    return first if _counts_from_zero(arange) else None


def _sequences(node: Any) -> Node | None:
    """The positions [batch, tokens] of packed sequences, of a mask whose queries see the keys of
    their sequence: transformers numbers sequences by the positions that do not follow the one
    before, and compares those of query and key. None for another mask."""
    node = _strip_expand(node)
    if name(node) != "eq" or not all(isinstance(operand, Node) for operand in node.args):
        return None
    numbers, of_keys = (
        operand.args[0] if name(operand) == "getitem" else None for operand in node.args
    )
    if numbers is not of_keys or name(numbers) != "cumsum":
        return None
    starts: Any = numbers.args[0]  # pyright: ignore[reportOptionalMemberAccess]
    if name(starts) != "ne" or starts.args[1] != 1 or name(starts.args[0]) != "diff":
        return None
    difference = starts.args[0]
    before: Any = argument(difference, 3, "prepend")
    positions = difference.args[0]
    if name(before) != "sub" or before.args[1] != 1 or name(before.args[0]) != "getitem":
        return None
    return positions if before.args[0].args[0] is positions else None


__all__ = ["Band", "Mask", "read_mask"]
