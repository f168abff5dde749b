"""Semantics of floating-point comparison rows and class tests.

Sources: the guides named in `floats`, chapters on VOPC and SOPC.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.arithmetic import FLOATS_BY_NAME, Float
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.integer_comparisons import compare_constant, on_both
from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")


def compare(f: Float, relation: str) -> Function:
    """Relations as the mnemonics spell them: `nlt` is `not (a < b)`, `lg` ordered and unequal."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_relate(o, f, relation, a, b),)

    return evaluate


def _relate(o: Ops[V], f: Float, relation: str, a: V, b: V) -> V:
    if relation in ("o", "u"):
        ordered = o.and_(f.equal(o, a, a), f.equal(o, b, b), 1)
        return ordered if relation == "o" else o.not_(ordered, 1)
    if relation.startswith("n"):
        return o.not_(_relate(o, f, {"neq": "eq"}.get(relation, relation[1:]), a, b), 1)
    if relation == "eq":
        return f.equal(o, a, b)
    if relation in ("lt", "gt"):
        return f.less(o, a, b) if relation == "lt" else f.less(o, b, a)
    if relation == "lg":
        return o.or_(f.less(o, a, b), f.less(o, b, a), 1)
    less = f.less(o, a, b) if relation == "le" else f.less(o, b, a)
    return o.or_(less, f.equal(o, a, b), 1)


def classify(f: Float) -> Function:
    """Whether the bit of the second operand that stands for the first one's class is set.

    Bits: signalling NaN, quiet NaN, -infinity, -normal, -denormal, -0, +0, +denormal, +normal,
    +infinity.
    """

    def evaluate(o: Ops[V], a: V, classes: V) -> tuple[V]:
        if f.half:
            a = o.low_half(a)
        bits = f.bits
        magnitude = f.absolute(o, a)
        infinity = f.const(o, f.fmt.exponent_mask)
        normal = f.const(o, 1 << f.fmt.fraction)
        # the index among positive classes: 6 zero, 7 denormal, 8 normal, 9 infinity
        index = o.const(8, 32)
        index = o.select(o.less_unsigned(magnitude, normal, bits), o.const(7, 32), index, 32)
        index = o.select(o.eq(magnitude, o.zero(bits), bits), o.const(6, 32), index, 32)
        index = o.select(o.eq(magnitude, infinity, bits), o.const(9, 32), index, 32)
        negative = o.not_(o.eq(magnitude, a, bits), 1)
        index = o.select(negative, o.sub(o.const(11, 32), index, 32), index, 32)
        quiet = o.nonzero(o.and_(a, f.const(o, f.fmt.quiet), bits), bits)
        nan = o.zero_extend(quiet, 1, 32)
        index = o.select(f.is_nan(o, a), nan, index, 32)
        return (o.truncate(o.lshr(classes, index, 32), 32, 1),)

    return evaluate


RELATIONS = ["lt", "le", "gt", "ge", "eq", "lg", "nlt", "nle", "ngt", "nge", "neq", "nlg", "o", "u"]


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {}
    for name in ("f16", "f32", "f64"):
        f = FLOATS_BY_NAME[name]
        functions = {relation: compare(f, relation) for relation in RELATIONS}
        if name != "f64":
            table |= {f"s_cmp_{relation}_{name}": item for relation, item in functions.items()}
        functions |= {"f": compare_constant(0), "t": compare_constant(1), "class": classify(f)}
        for relation, function in functions.items():
            table[f"v_cmp_{relation}_{name}"] = function
            table[f"v_cmpx_{relation}_{name}"] = function
            table[f"v_cmpx_{relation}_{name}_mask"] = on_both(function)
    return table


COMPARISONS: dict[str, Function] = _tables()
"""Row name -> semantics."""

WITHOUT_NAN: dict[str, int] = {
    f"{form}_{relation}_{name}": ordered
    for form in ("v_cmp", "v_cmpx", "s_cmp")
    for relation, ordered in (("o", 1), ("u", 0))
    for name in ("f16", "f32", "f64")
    if f"{form}_{relation}_{name}" in COMPARISONS
}
"""Row name -> the result for operands that are not NaN, of comparisons that only test for NaN."""
