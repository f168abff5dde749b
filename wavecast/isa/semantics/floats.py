"""Semantics of the binary32 rows integer code leans on: division through reciprocals, conversions.

Rows take and return bit patterns; source modifiers are applied by the executor, output modifiers
make a result unknown to it. Sources: the same guides as `scalar` and `vector`.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.formats import F32
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.scalar import Function
from wavecast.isa.semantics.vector import on_both

V = TypeVar("V")


def add(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.f_add(a, b, F32),)


def subtract(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.f_add(a, o.f_negate(b, F32), F32),)


def subtract_reversed(o: Ops[V], a: V, b: V) -> tuple[V]:
    return subtract(o, b, a)


def multiply(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.f_mul(a, b, F32),)


def multiply_add(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    return (o.f_fma(a, b, c, F32),)


def accumulate(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
    return (o.f_fma(a, b, old, F32),)


def reciprocal(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_div(o.const(F32.one, 32), a, F32),)


def truncate(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_round(a, F32, "trunc"),)


def floor(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_round(a, F32, "floor"),)


def from_unsigned(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_from_int(a, 32, False, F32),)


def from_signed(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_from_int(a, 32, True, F32),)


def to_unsigned(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_to_int(a, F32, 32, False),)


def to_signed(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_to_int(a, F32, 32, True),)


def compare(relation: str) -> Function:
    """Relations as the mnemonics spell them: `nlt` is `not (a < b)`, `lg` ordered and unequal."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_relate(o, relation, a, b),)

    return evaluate


def _relate(o: Ops[V], relation: str, a: V, b: V) -> V:
    if relation in ("o", "u"):
        ordered = o.and_(o.f_equal(a, a, F32), o.f_equal(b, b, F32), 1)
        return ordered if relation == "o" else o.not_(ordered, 1)
    if relation.startswith("n"):
        return o.not_(_relate(o, {"neq": "eq"}.get(relation, relation[1:]), a, b), 1)
    less, equal, greater = o.f_less(a, b, F32), o.f_equal(a, b, F32), o.f_less(b, a, F32)
    if relation == "lg":
        return o.or_(less, greater, 1)
    if relation in ("le", "ge"):
        return o.or_(less if relation == "le" else greater, equal, 1)
    return {"lt": less, "gt": greater, "eq": equal}[relation]


RELATIONS = ["lt", "le", "gt", "ge", "eq", "lg", "nlt", "nle", "ngt", "nge", "neq", "nlg", "o", "u"]


def _tables() -> dict[str, Function]:
    found: dict[str, Function] = {
        "v_add_f32": add,
        "v_sub_f32": subtract,
        "v_subrev_f32": subtract_reversed,
        "v_mul_f32": multiply,
        "v_fma_f32": multiply_add,
        "v_fmamk_f32": multiply_add,
        "v_fmaak_f32": multiply_add,
        "v_fmac_f32": accumulate,
        "v_rcp_f32": reciprocal,
        "v_rcp_iflag_f32": reciprocal,
        "v_trunc_f32": truncate,
        "v_floor_f32": floor,
        "v_cvt_f32_u32": from_unsigned,
        "v_cvt_f32_i32": from_signed,
        "v_cvt_u32_f32": to_unsigned,
        "v_cvt_i32_f32": to_signed,
        "v_s_rcp_f32": reciprocal,
        "s_add_f32": add,
        "s_sub_f32": subtract,
        "s_mul_f32": multiply,
        "s_fmac_f32": accumulate,
        "s_fmamk_f32": multiply_add,
        "s_fmaak_f32": multiply_add,
        "s_trunc_f32": truncate,
        "s_floor_f32": floor,
        "s_cvt_f32_u32": from_unsigned,
        "s_cvt_f32_i32": from_signed,
        "s_cvt_u32_f32": to_unsigned,
        "s_cvt_i32_f32": to_signed,
    }
    for relation in RELATIONS:
        function = compare(relation)
        for prefix in ("v_cmp", "v_cmpx", "s_cmp"):
            found[f"{prefix}_{relation}_f32"] = function
        found[f"v_cmpx_{relation}_f32_mask"] = on_both(function)
    return found


FLOATS: dict[str, Function] = _tables()
"""Row name -> semantics."""
