"""Semantics of vector comparisons of integers.

Sources: the guides named in `vector`, chapter on VOPC.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.scalar import relate

V = TypeVar("V")


def compare(relation: str, bits: int, signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        if bits == 16:
            a, b = o.truncate(a, 32, 16), o.truncate(b, 32, 16)
        return (relate(o, relation, a, b, bits, signed),)

    return evaluate


def on_both(function: Function) -> Function:
    """The gfx9 form of `v_cmpx`, which writes a mask besides EXEC."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V, V]:
        (result,) = function(o, a, b)
        return result, result

    return evaluate


def compare_constant(value: int) -> Function:
    def evaluate(o: Ops[V], _a: V, _b: V) -> tuple[V]:
        return (o.const(value, 1),)

    return evaluate


RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        f"v_cmpx_{relation}_{kind}": on_both(compare_constant(value))
        for kind in ("i16", "u16")
        for relation, value in (("f", 0), ("t", 1))
    }
    for kind in ("i16", "u16", "i32", "u32", "i64", "u64"):
        signed, bits = kind[0] == "i", int(kind[1:])
        relations = {name: compare(name, bits, signed) for name in RELATIONS}
        relations |= {"f": compare_constant(0), "t": compare_constant(1)}
        for relation, function in relations.items():
            table[f"v_cmp_{relation}_{kind}"] = function
            if bits == 16 and relation in ("f", "t"):
                continue
            table[f"v_cmpx_{relation}_{kind}"] = function
            table[f"v_cmpx_{relation}_{kind}_mask"] = on_both(function)
    return table


INTEGER_COMPARISONS: dict[str, Function] = _tables()
"""Row name -> semantics."""
