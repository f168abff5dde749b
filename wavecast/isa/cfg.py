"""Instructions and labels to a `Program`: blocks, edges, dominators, natural loops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from wavecast.errors import ParseError
from wavecast.isa.instruction import Instruction, OperandClass, SourceLocation
from wavecast.isa.linking import called_function, symbol_of
from wavecast.isa.opcode import Control, OpcodeFlag
from wavecast.isa.program import Block, Loop, Program

# bound once: looking an enum member up costs ten times what comparing it does
_NONE = Control.NONE
_END = Control.END
_CALL = Control.CALL
_CONDITIONAL = Control.CONDITIONAL

_JUMP_EXPRESSION = re.compile(r"\(?(\.?[A-Za-z_$][\w.$]*)-")
_LONG_BRANCH_REACH = 8
_CALL_REACH = 64
"""Instructions before a call in which the address it goes to is looked for."""


def build_program(
    name: str,
    target: str,
    instructions: list[Instruction],
    labels: dict[str, int],
    file: str = "",
    *,
    entries: Mapping[str, int] | None = None,
) -> Program:
    """The control-flow graph of one function. `labels` maps a name to an instruction index.

    `entries` are the starts of all functions of a linked program: calls then end blocks and lead to
    the function called, or to all where it is computed; a return leads behind every call. Raises
    ParseError for a branch to a label the function does not have.
    """
    targets = _branch_targets(name, instructions, labels, file)
    jumps = _Jumps(instructions, entries or {})
    starts = _leaders(instructions, targets, jumps)
    blocks = _blocks(instructions, labels, targets, starts, jumps)
    order = _reverse_postorder(blocks)
    dominators = _dominators(blocks, order)
    loops = _loops(blocks, order, dominators, instructions)
    innermost: list[int | None] = [None] * len(blocks)
    for loop in loops:
        for block in loop.blocks:
            innermost[block] = loop.index
    return Program(
        name,
        target,
        tuple(instructions),
        tuple(blocks),
        tuple(dominators),
        tuple(loops),
        tuple(order),
        tuple(innermost),
        dict(entries or {}),
    )


def _branch_targets(
    name: str, instructions: list[Instruction], labels: dict[str, int], file: str
) -> dict[int, int]:
    """Branch instruction -> the instruction it jumps to, where that is in this function."""
    targets = {}
    for instruction in instructions:
        control = instruction.decoded.opcode.control
        if control is _NONE or control is _END or control is _CALL:
            continue
        if control is Control.INDIRECT:
            label = _long_branch(instructions, instruction.index, labels)
            if label is not None:
                targets[instruction.index] = labels[label]
            continue
        label = next((o.text for o in instruction.operands if o.kind is OperandClass.LABEL), None)
        if label is None or label not in labels:
            raise ParseError(
                f"branch to unknown label {label or instruction.decoded.text!r}",
                file=file,
                line=instruction.line,
                kernel=name,
            )
        targets[instruction.index] = labels[label]
    # A label behind the last instruction stands for code that is never reached: compilers leave
    # such blocks empty. Jumping there leaves the function, as running off its end does.
    return {index: to for index, to in targets.items() if to < len(instructions)}


def _long_branch(instructions: list[Instruction], index: int, labels: dict[str, int]) -> str | None:
    """The label of a far jump: code adds `label - here` or `label@rel32` to the program counter, or
    a register that it has set to a distance, `s_add_i32 s2, label, 4`."""
    for previous in reversed(instructions[max(0, index - _LONG_BRANCH_REACH) : index]):
        if OpcodeFlag.GETPC in previous.opcode.flags or previous.opcode.control is not _NONE:
            return None
        for operand in previous.operands:
            name = operand.text if operand.kind is OperandClass.LABEL else None
            if operand.kind is OperandClass.EXPRESSION:
                match, symbol = _JUMP_EXPRESSION.search(operand.text), symbol_of(operand.text)
                name = match[1] if match is not None else symbol and symbol[0]
            if name in labels:
                return name
    return None


class _Jumps:
    """Where calls and computed jumps of a linked program lead; nowhere in a single function."""

    def __init__(self, instructions: list[Instruction], entries: Mapping[str, int]) -> None:
        self.linked = bool(entries)
        self.calls: dict[int, tuple[int, ...]] = {}
        self.computed: tuple[int, ...] = ()
        self.starts = set(entries.values())
        if not entries:
            return
        functions = tuple(start for start in entries.values() if start)
        returns = set()
        for index, instruction in enumerate(instructions):
            if instruction.decoded.opcode.control is not _CALL:
                continue
            returns.add(index + 1)
            before = instructions[max(0, index - _CALL_REACH) : index]
            name = called_function(instruction.decoded, before, entries)
            self.calls[index] = functions if name is None else (entries[name],)
        self.starts |= returns
        self.computed = tuple(sorted(returns.union(functions)))

    def of(self, instruction: Instruction) -> tuple[int, ...]:
        """The instructions a call or computed jump without a label may lead to."""
        if instruction.decoded.opcode.control is _CALL:
            return self.calls.get(instruction.index, ())
        return self.computed


def _leaders(instructions: list[Instruction], targets: dict[int, int], jumps: _Jumps) -> list[int]:
    starts = {0, *targets.values(), *jumps.starts}
    for instruction in instructions:
        control = instruction.decoded.opcode.control
        if control is not _NONE and control is not _CALL:
            starts.add(instruction.index + 1)
    return sorted(start for start in starts if start < len(instructions))


def _blocks(
    instructions: list[Instruction],
    labels: dict[str, int],
    targets: dict[int, int],
    starts: list[int],
    jumps: _Jumps,
) -> list[Block]:
    by_start = {start: index for index, start in enumerate(starts)}
    label_at: dict[int, str] = {}
    for label, position in labels.items():
        if not label.startswith(".Ltmp"):
            label_at.setdefault(position, label)
    successors: list[tuple[int, ...]] = []
    for index, _ in enumerate(starts):
        stop = starts[index + 1] if index + 1 < len(starts) else len(instructions)
        last = instructions[stop - 1]
        follows = (index + 1,) if stop < len(instructions) else ()
        control = last.opcode.control
        jump = (by_start[targets[last.index]],) if last.index in targets else ()
        if control is _CONDITIONAL:
            successors.append(tuple(dict.fromkeys((*follows, *jump))))
        elif jumps.linked and (control is _CALL or (control is Control.INDIRECT and not jump)):
            successors.append(tuple(by_start[to] for to in jumps.of(last) if to in by_start))
        elif control in (Control.BRANCH, Control.INDIRECT, _END):
            successors.append(jump)
        else:
            successors.append(follows)
    predecessors: list[list[int]] = [[] for _ in starts]
    for index, following in enumerate(successors):
        for block in following:
            predecessors[block].append(index)
    return [
        Block(
            index,
            label_at.get(start, ""),
            start,
            starts[index + 1] if index + 1 < len(starts) else len(instructions),
            successors[index],
            tuple(predecessors[index]),
        )
        for index, start in enumerate(starts)
    ]


def _reverse_postorder(blocks: list[Block]) -> list[int]:
    discovered_blocks = {0}
    order: list[int] = []
    stack = [(0, iter(blocks[0].successors))]
    while stack:
        block, following = stack[-1]
        for successor in following:
            if successor not in discovered_blocks:
                discovered_blocks.add(successor)
                stack.append((successor, iter(blocks[successor].successors)))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order


def _dominators(blocks: list[Block], order: list[int]) -> list[int]:
    """Immediate dominators, by Cooper, Harvey and Kennedy's iteration over the order."""
    position = {block: number for number, block in enumerate(order)}
    dominator: list[int] = [-1] * len(blocks)
    dominator[0] = 0

    def common(a: int, b: int) -> int:
        while a != b:
            while position[a] > position[b]:
                a = dominator[a]
            while position[b] > position[a]:
                b = dominator[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = -1
            for predecessor in blocks[block].predecessors:
                if predecessor in position and dominator[predecessor] != -1:
                    new = predecessor if new == -1 else common(predecessor, new)
            if dominator[block] != new:
                dominator[block] = new
                changed = True
    dominator[0] = -1
    return dominator


class _Tree:
    """The tree of immediate dominators, numbered so that a subtree is a range."""

    def __init__(self, dominators: list[int], order: list[int]) -> None:
        size = [1] * len(dominators)
        for block in reversed(order[1:]):
            size[dominators[block]] += size[block]
        self._first = [-1] * len(dominators)
        self._size = size
        following = [0] * len(dominators)
        for block in order:
            parent = dominators[block]
            self._first[block] = following[parent] if parent != -1 else 0
            if parent != -1:
                following[parent] += size[block]
            following[block] = self._first[block] + 1

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path to `b`, which can be reached, goes through `a`."""
        return self._first[a] <= self._first[b] < self._first[a] + self._size[a]


def _loops(
    blocks: list[Block],
    order: list[int],
    dominators: list[int],
    instructions: list[Instruction],
) -> list[Loop]:
    latches: dict[int, list[int]] = {}
    tree = _Tree(dominators, order)
    for block in order:
        for successor in blocks[block].successors:
            if tree.dominates(successor, block):
                latches.setdefault(successor, []).append(block)
    reachable = frozenset(order)
    bodies = {header: _body(blocks, header, tails) & reachable for header, tails in latches.items()}
    headers = sorted(bodies, key=lambda header: (-len(bodies[header]), header))
    loops: list[Loop] = []
    around: list[list[int]] = [[] for _ in blocks]
    children: dict[int | None, list[int]] = {}
    for header in headers:
        parent = next(
            (o for o in reversed(around[header]) if bodies[header] < loops[o].blocks), None
        )
        children.setdefault(parent, []).append(len(loops))
        for block in bodies[header]:
            around[block].append(len(loops))
        depth = loops[parent].depth + 1 if parent is not None else 1
        loops.append(
            Loop(
                len(loops),
                header,
                tuple(latches[header]),
                bodies[header],
                depth,
                parent,
                (),
                _location(blocks, instructions, header, bodies[header]),
            )
        )
    return [replace(loop, children=tuple(children.get(loop.index, ()))) for loop in loops]


def _body(blocks: list[Block], header: int, tails: list[int]) -> frozenset[int]:
    body = {header}
    stack = list(tails)
    while stack:
        block = stack.pop()
        if block not in body:
            body.add(block)
            stack.extend(blocks[block].predecessors)
    return frozenset(body)


def _location(
    blocks: list[Block], instructions: list[Instruction], header: int, body: frozenset[int]
) -> SourceLocation | None:
    """The loop's source line: the first one its leaving or closing branches come from.

    Compilers give those branches the line of the loop statement, but a masked access that became
    the closing branch keeps its own, later line. Without located branches: the most frequent line.
    """
    closing = []
    for index in sorted(body):
        last = instructions[blocks[index].stop - 1]
        if last.opcode.control is _NONE or last.location is None:
            continue
        if any(target == header or target not in body for target in blocks[index].successors):
            closing.append(last.location.outermost)
    if closing:
        return min(closing, key=lambda location: (location.file, location.line))
    counts: Counter[SourceLocation] = Counter()
    for index in sorted(body):
        for instruction in instructions[blocks[index].start : blocks[index].stop]:
            if instruction.location is not None:
                counts[instruction.location.outermost] += 1
    return counts.most_common(1)[0][0] if counts else None
