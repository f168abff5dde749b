"""Comparisons, and branches on their results."""

from __future__ import annotations

from wavecast.isa.semantics.combine import Function, V
from wavecast.isa.semantics.ops import Ops


def compare(relation: str, bits: int, signed: bool) -> Function:
    """`relation` is one of eq, lg, lt, le, gt, ge."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (relate(o, relation, a, b, bits, signed),)

    return evaluate


def compare_immediate(relation: str, signed: bool) -> Function:
    """The 16-bit immediate is extended with the signedness of the comparison."""

    def evaluate(o: Ops[V], a: V, immediate: V) -> tuple[V]:
        narrow = o.truncate(immediate, 32, 16)
        return (relate(o, relation, a, o.extend(narrow, 16, 32, signed), 32, signed),)

    return evaluate


def relate(o: Ops[V], relation: str, a: V, b: V, bits: int, signed: bool) -> V:
    """One integer comparison; also spelled `ne` (vector) for `lg` (scalar)."""
    if relation in ("eq", "lg", "ne"):
        equal = o.eq(a, b, bits)
        return equal if relation == "eq" else o.not_(equal, 1)
    if relation in ("gt", "le"):
        a, b = b, a
    below = o.less(a, b, bits, signed)
    return below if relation in ("lt", "gt") else o.not_(below, 1)


def branch_if(bits: int, zero: bool) -> Function:
    """A conditional branch: its one output says whether it is taken."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        empty = o.eq(a, o.zero(bits), bits)
        return (empty if zero else o.not_(empty, 1),)

    return evaluate
