"""The branches that decide whether a block of a function runs: its control dependences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol


class ControlBlock(Protocol):
    """A block of a function, and where control goes after it."""

    @property
    def label(self) -> str:
        """Its name."""
        ...

    @property
    def targets(self) -> Sequence[str]:
        """The names of the blocks that may follow."""
        ...


def control_dependences(blocks: Mapping[str, ControlBlock]) -> dict[str, tuple[str, ...]]:
    """By block the blocks whose branch decides whether it runs, as Ferrante, Ottenstein and Warren
    define it: it follows one side of the branch on every path, and not the other."""
    labels = list(blocks)
    after = _post_dominators(blocks, labels)
    deciding: dict[str, list[str]] = {label: [] for label in labels}
    for number, (label, block) in enumerate(blocks.items()):
        if len(block.targets) < 2:
            continue
        dependent = 0
        for target in block.targets:
            dependent |= after.get(target, 0)
        dependent &= ~(after[label] & ~(1 << number))
        for other in _labels(dependent, labels):
            deciding[other].append(label)
    return {label: tuple(branches) for label, branches in deciding.items()}


def _post_dominators(blocks: Mapping[str, ControlBlock], labels: list[str]) -> dict[str, int]:
    """By block the blocks that every path from it to the end goes through, itself among them, as
    bits in the order of `labels`."""
    everything = (1 << len(labels)) - 1
    after = dict.fromkeys(labels, everything)
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(labels))):
            block = blocks[labels[number]]
            common = everything if block.targets else 0
            for target in block.targets:
                common &= after.get(target, 0)
            common |= 1 << number
            if after[block.label] != common:
                after[block.label], changed = common, True
    return after


def _labels(bits: int, labels: list[str]) -> Iterator[str]:
    while bits:
        yield labels[(bits & -bits).bit_length() - 1]
        bits &= bits - 1


__all__ = ["ControlBlock", "control_dependences"]
