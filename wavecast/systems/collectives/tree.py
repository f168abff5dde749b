"""The double binary tree of NCCL and RCCL: two trees, each for half of the data.

Each carries its half to its root, which adds up, and back down. Source: NCCL's
src/graph/trees.cc (`ncclGetBtree`, `ncclGetDtree`): the parent of a rank is found at its lowest
bit; the second tree is the mirror image for an even number of ranks, else one rank on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

TREES = 2


@dataclass(frozen=True, slots=True)
class BinaryTree:
    """By label: parent (-1 of the root, label 0), children, rounds up from the lowest leaf below,
    and rounds down from the root."""

    parents: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    heights: tuple[int, ...]
    depths: tuple[int, ...]

    @property
    def rounds(self) -> int:
        """Rounds up, each of which needs the one before; as many go down."""
        return self.heights[0]


def _parent(label: int, size: int) -> int:
    bit = label & -label
    up = (label ^ bit) | bit << 1
    return up if up < size else label ^ bit


@cache
def binary_tree(size: int) -> BinaryTree:
    """The tree of `size` ranks."""
    parents = [-1, *(_parent(label, size) for label in range(1, size))]
    children: list[list[int]] = [[] for _ in range(size)]
    for label in range(1, size):
        children[parents[label]].append(label)
    depths, order = [0] * size, [0]
    for label in order:
        for child in children[label]:
            depths[child] = depths[label] + 1
            order.append(child)
    heights = [0] * size
    for label in reversed(order[1:]):
        heights[parents[label]] = max(heights[parents[label]], heights[label] + 1)
    return BinaryTree(tuple(parents), tuple(map(tuple, children)), tuple(heights), tuple(depths))


def relabel(tree: int, rank: int, size: int) -> int:
    """The label of a rank in a tree."""
    if tree == 0:
        return rank
    return size - 1 - rank if size % 2 == 0 else (rank - 1) % size


def rank_of(tree: int, label: int, size: int) -> int:
    """The rank with a label of a tree."""
    if tree == 0:
        return label
    return size - 1 - label if size % 2 == 0 else (label + 1) % size


def tree_sends(size: int, rank: int, number: int) -> Iterator[tuple[int, int, bool]]:
    """What a rank sends in round `number`: the partner, which tree's half of the data, and whether
    the partner adds it to its own."""
    shape = binary_tree(size)
    for tree in range(TREES):
        label = relabel(tree, rank, size)
        if number < shape.rounds:
            if label and shape.heights[label] == number:
                yield rank_of(tree, shape.parents[label], size), tree, True
        elif shape.depths[label] == number - shape.rounds:
            for child in shape.children[label]:
                yield rank_of(tree, child, size), tree, False


__all__ = ["TREES", "BinaryTree", "binary_tree", "rank_of", "relabel", "tree_sends"]
