"""Random programs as data: typed values, statements, and the regions that hold them.

Types are named as LLVM writes them: `i17`, `bfloat`, `<2 x half>`. A value is a number; statements
define one value each and use earlier ones or constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FLOATS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")


def lanes_of(kind: str) -> int:
    """Elements of a vector type, 0 for a scalar."""
    match = _VECTOR.fullmatch(kind)
    return int(match[1]) if match else 0


def element_of(kind: str) -> str:
    match = _VECTOR.fullmatch(kind)
    return match[2] if match else kind


def element_bits(kind: str) -> int:
    """Width in bits of a scalar, or of a vector's element."""
    single = element_of(kind)
    return FLOATS[single] if single in FLOATS else int(single[1:])


def is_float(kind: str) -> bool:
    return element_of(kind) in FLOATS


def with_element(kind: str, element: str) -> str:
    """The same shape with another element."""
    count = lanes_of(kind)
    return f"<{count} x {element}>" if count else element


def stored_bits(kind: str) -> int:
    """Width of an element in memory: a power of two, at least 8."""
    bits = 8
    while bits < element_bits(kind):
        bits *= 2
    return bits


@dataclass(frozen=True, slots=True)
class Const:
    """A constant: `bits` holds one pattern per element, one for a scalar."""

    kind: str
    bits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """The value of an earlier statement."""

    number: int
    kind: str


Operand = Const | Use


@dataclass(frozen=True, slots=True)
class Statement:
    """`number = operation(arguments)` of type `kind`; `detail` belongs to the operation."""

    number: int
    kind: str
    operation: str
    arguments: tuple[Operand, ...]
    detail: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """`if condition then … else …`; each result is (number, type, then-value, else-value)."""

    condition: Operand
    first: tuple[Node, ...]
    second: tuple[Node, ...]
    results: tuple[tuple[int, str, Operand, Operand], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """Runs `body` count & 7 times. `counter` is the number of the i32 trip variable; each of
    `carried` is (number in the body, type, start, next, number after the loop)."""

    count: Operand
    counter: int
    body: tuple[Node, ...]
    carried: tuple[tuple[int, str, Operand, Operand, int], ...]


Node = Statement | Choice | Loop


@dataclass(frozen=True, slots=True)
class Exchange:
    """`number = operation(value, …)` between lanes; 32 bits. Only between top-level nodes."""

    number: int
    operation: str
    arguments: tuple[Operand, ...]
    detail: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """Inputs (number, type) per lane and per launch, nodes in order, outputs.

    `settled` are the values whose NaN patterns are defined.
    """

    inputs: tuple[tuple[int, str], ...]
    uniforms: tuple[tuple[int, str], ...]
    nodes: tuple[Node | Exchange, ...]
    outputs: tuple[Use, ...]
    settled: frozenset[int] = field(default_factory=frozenset)


def statements(nodes: tuple[Node | Exchange, ...]) -> Iterator[Statement]:
    """Every statement, those of regions too."""
    for node in nodes:
        if isinstance(node, Statement):
            yield node
        elif isinstance(node, Choice):
            yield from statements(node.first)
            yield from statements(node.second)
        elif isinstance(node, Loop):
            yield from statements(node.body)


def uses(node: Node | Exchange) -> Iterator[Operand]:
    """Every operand a node names, those inside regions too."""
    if isinstance(node, Statement | Exchange):
        yield from node.arguments
    elif isinstance(node, Choice):
        yield node.condition
        for inner in (*node.first, *node.second):
            yield from uses(inner)
        for _, _, a, b in node.results:
            yield from (a, b)
    else:
        yield node.count
        for inner in node.body:
            yield from uses(inner)
        for _, _, start, following, _ in node.carried:
            yield from (start, following)


def defined(node: Node | Exchange) -> Iterator[tuple[int, str]]:
    """Values a node defines for the nodes after it."""
    if isinstance(node, Statement):
        yield node.number, node.kind
    elif isinstance(node, Exchange):
        yield node.number, "i32"
    elif isinstance(node, Choice):
        for number, kind, _, _ in node.results:
            yield number, kind
    else:
        for _, kind, _, _, after in node.carried:
            yield after, kind
