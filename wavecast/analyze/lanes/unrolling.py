"""Loops of one block with a few iterations, as one block per iteration.

Shuffles of a loop move other lanes in every iteration. The compiler unrolls most such loops itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from wavecast.analyze.lanes.per_lane import LaneValues
from wavecast.compile.ir_blocks import IrBlock, IrInstruction

MOST: Final = 16
"""Iterations beyond which a loop stays one."""
EXCHANGE: Final = "llvm.amdgcn.ds.bpermute"


def unroll_loops(blocks: Mapping[str, IrBlock], values: LaneValues) -> dict[str, IrBlock]:
    """The blocks with every loop unrolled that has exchanges and a known number of iterations."""
    unrolled_blocks: dict[str, IrBlock] = {}
    for label, block in blocks.items():
        copies = _iterations(block, values) if _exchanges(block) else None
        if copies is None:
            unrolled_blocks[label] = block
            continue
        for copy in copies:
            unrolled_blocks[copy.label] = copy
    return _redirect_entries(unrolled_blocks, blocks)


def _exchanges(block: IrBlock) -> bool:
    return block.label in block.targets and any(i.detail == EXCHANGE for i in block.instructions)


def _iterations(block: IrBlock, values: LaneValues) -> list[IrBlock] | None:
    """A block per iteration, the last with the labels and names of the loop; None if their number
    is not known."""
    start, copies = _copy_values(values), []
    names: dict[str, str] = {}
    for number in range(MOST):
        copy, names = _copy(block, number, names)
        for instruction in copy.instructions:
            start.evaluate(instruction)
        condition = start.of(copy.condition) if copy.condition else None
        word = None if condition is None else condition.complete()
        if word is None or len(set(word)) != 1:
            return None
        copies.append(copy)
        if block.targets[0 if word[0] else 1] != block.label:
            return _chain_iterations(block, copies)
    return None


def _copy_values(values: LaneValues) -> LaneValues:
    """The same values, to be added to apart."""
    copy = LaneValues(values.start)
    copy.values = dict(values.values)
    return copy


def _copy(block: IrBlock, number: int, before: Mapping[str, str]) -> tuple[IrBlock, dict[str, str]]:
    """An iteration, and its names of the loop's values. `before` has those of the one before."""
    names = {i.result: f"{i.result}@{number}" for i in block.instructions if i.result}
    copies = []
    for instruction in block.instructions:
        operands: tuple[str, ...]
        if instruction.opcode == "phi":
            operands = tuple(
                before.get(operand, operand)
                for operand, source in zip(instruction.operands, instruction.sources, strict=True)
                if (source == block.label) == bool(number)
            )
            sources = (f"{block.label}@{number - 1}",) if number else _outside(instruction, block)
        else:
            operands = tuple(names.get(operand, operand) for operand in instruction.operands)
            sources = ()
        result = names.get(instruction.result, "")
        copies.append(replace(instruction, result=result, operands=operands, sources=sources))
    condition = names.get(block.condition, block.condition)
    return replace(
        block, label=f"{block.label}@{number}", instructions=copies, condition=condition
    ), names


def _outside(instruction: IrInstruction, block: IrBlock) -> tuple[str, ...]:
    return tuple(source for source in instruction.sources if source != block.label)


def _chain_iterations(block: IrBlock, copies: list[IrBlock]) -> list[IrBlock]:
    """Iterations one after another. The last has the loop's own label and names, which what
    follows uses."""
    (after,) = (target for target in block.targets if target != block.label)
    suffix = f"@{len(copies) - 1}"

    def base_name(name: str) -> str:
        return name.removesuffix(suffix)

    last = copies[-1]
    instructions = [
        replace(i, result=base_name(i.result), operands=tuple(base_name(o) for o in i.operands))
        for i in last.instructions
    ]
    for copy, following in pairwise(copies):
        copy.targets, copy.condition = (base_name(following.label),), ""
    ending = IrBlock(block.label, instructions, "", (after,))
    return [*copies[:-1], ending]


def _redirect_entries(
    unrolled_blocks: dict[str, IrBlock], blocks: Mapping[str, IrBlock]
) -> dict[str, IrBlock]:
    """Branches to an unrolled loop lead to its first iteration."""
    first = {label: f"{label}@0" for label in blocks if f"{label}@0" in unrolled_blocks}
    for block in unrolled_blocks.values():
        if block.label.partition("@")[0] not in first:
            block.targets = tuple(first.get(target, target) for target in block.targets)
    for label in first:
        unrolled_blocks[label].targets = tuple(
            first.get(target, target) for target in unrolled_blocks[label].targets
        )
    return unrolled_blocks


__all__ = ["EXCHANGE", "unroll_loops"]
