"""Making a failing program small: what can be left out without losing the failure is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.emulate.differential.program import (
    Choice,
    Const,
    Exchange,
    Loop,
    Node,
    Operand,
    Program,
    Statement,
    Use,
    defined,
    lanes_of,
    uses,
)

Fails = Callable[[Program], bool]
_CONSTANTS = (0, 1, 0x3C00, 0x3F800000)


def reduced(program: Program, fails: Fails, seconds: float = 60) -> Program:
    """The smallest program found within the time that still fails."""
    deadline = time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for candidate in _candidates(program):
            if time.monotonic() > deadline:
                return program
            smaller = without_dead(candidate)
            if smaller != program and fails(smaller):
                program, changed = smaller, True
                break
    return program


def without_dead(program: Program) -> Program:
    """The program without nodes nothing uses."""
    needed = {use.number for use in program.outputs}
    kept: list[Node | Exchange] = []
    for node in reversed(program.nodes):
        node = _trimmed(node, needed)
        if any(number in needed for number, _ in defined(node)):
            kept.append(node)
            needed |= {use.number for use in uses(node) if isinstance(use, Use)}
    inputs = tuple(item for item in program.inputs if item[0] in needed)
    uniforms = tuple(item for item in program.uniforms if item[0] in needed)
    return replace(program, nodes=tuple(reversed(kept)), inputs=inputs, uniforms=uniforms)


def _trimmed(node: Node | Exchange, needed: set[int]) -> Node | Exchange:
    """A region without results and statements nothing uses."""
    if isinstance(node, Choice):
        results = tuple(item for item in node.results if item[0] in needed)
        ends = [{v.number for v in item[2:] if isinstance(v, Use)} for item in results]
        wanted = set().union(*ends)
        return replace(
            node,
            results=results,
            first=_live(node.first, wanted),
            second=_live(node.second, wanted),
        )
    if isinstance(node, Loop):
        wanted = {item[3].number for item in node.carried if isinstance(item[3], Use)}
        return replace(node, body=_live(node.body, wanted))
    return node


def _live(body: tuple[Node, ...], wanted: set[int]) -> tuple[Node, ...]:
    needed, kept = set(wanted), []
    for node in reversed(body):
        trimmed = _trimmed(node, needed)
        assert not isinstance(trimmed, Exchange)
        if any(number in needed for number, _ in defined(trimmed)):
            kept.append(trimmed)
            needed |= {use.number for use in uses(trimmed) if isinstance(use, Use)}
    return tuple(reversed(kept))


def _candidates(program: Program) -> Iterator[Program]:
    """Programs a step smaller, the boldest steps first."""
    for output in program.outputs:
        if len(program.outputs) > 1:
            yield replace(program, outputs=(output,))
    for node in reversed(program.nodes):
        for number, kind in defined(node):
            yield from _replaced(program, number, kind)
        if isinstance(node, Choice):
            yield _spliced(program, node, node.first, {n: a for n, _, a, _ in node.results})
            yield _spliced(program, node, node.second, {n: b for n, _, _, b in node.results})
        elif isinstance(node, Loop):
            yield from _unrolled(program, node)
    for statement in _inner(program.nodes):
        yield from _replaced(program, statement.number, statement.kind)
    for number, kind in (*program.inputs, *program.uniforms):
        yield from _replaced(program, number, kind)


def _inner(nodes: tuple[Node | Exchange, ...]) -> Iterator[Statement]:
    for node in nodes:
        bodies: tuple[tuple[Node, ...], ...] = ()
        if isinstance(node, Choice):
            bodies = (node.first, node.second)
        elif isinstance(node, Loop):
            bodies = (node.body,)
        for body in bodies:
            yield from (item for item in body if isinstance(item, Statement))
            yield from _inner(body)


def _replaced(program: Program, number: int, kind: str) -> Iterator[Program]:
    """The value replaced by one of the inputs of its type, or a constant."""
    if any(use.number == number for use in program.outputs) and len(program.outputs) == 1:
        return
    for other, of_kind in (*program.inputs, *program.uniforms):
        if of_kind == kind and other != number and other in program.settled:
            yield substituted(program, {number: Use(other, kind)})
    for bits in _CONSTANTS:
        value = Const(kind, (bits,) * (lanes_of(kind) or 1))
        yield substituted(program, {number: value})


def _spliced(
    program: Program, node: Node, body: tuple[Node, ...], values: dict[int, Operand]
) -> Program:
    index = program.nodes.index(node)
    nodes = (*program.nodes[:index], *body, *program.nodes[index + 1 :])
    return substituted(replace(program, nodes=nodes), values)


def _unrolled(program: Program, node: Loop) -> Iterator[Program]:
    """The loop replaced by one run of its body."""
    starts: dict[int, Operand] = {item[0]: item[2] for item in node.carried}
    starts[node.counter] = Const("i32", (0,))
    ends = {item[4]: item[3] for item in node.carried}
    once = _spliced(program, node, node.body, ends)
    yield substituted(once, starts)


def substituted(program: Program, values: dict[int, Operand]) -> Program:
    """The program with values replaced; outputs that became constants are dropped."""

    def of(operand: Operand) -> Operand:
        seen = set()
        while isinstance(operand, Use) and operand.number in values:
            if operand.number in seen:
                break
            seen.add(operand.number)
            operand = values[operand.number]
        return operand

    def node_of(node: Node) -> Node:
        if isinstance(node, Statement):
            return replace(node, arguments=tuple(of(x) for x in node.arguments))
        if isinstance(node, Choice):
            return Choice(
                of(node.condition),
                tuple(node_of(x) for x in node.first),
                tuple(node_of(x) for x in node.second),
                tuple((n, k, of(a), of(b)) for n, k, a, b in node.results),
            )
        return Loop(
            of(node.count),
            node.counter,
            tuple(node_of(x) for x in node.body),
            tuple((n, k, of(a), of(b), after) for n, k, a, b, after in node.carried),
        )

    nodes: list[Node | Exchange] = []
    for node in program.nodes:
        if isinstance(node, Exchange):
            nodes.append(replace(node, arguments=tuple(of(x) for x in node.arguments)))
        else:
            nodes.append(node_of(node))
    known = {number for number, _ in (*program.inputs, *program.uniforms)}
    outputs = [of(use) for use in program.outputs]
    kept = [use for use in outputs if isinstance(use, Use) and use.number not in known]
    return replace(program, nodes=tuple(nodes), outputs=tuple(kept) or program.outputs)
