"""Semantics of the binary32 rows integer code leans on: division through reciprocals, conversions.

Rows take and return bit patterns; source modifiers are applied by the executor, output modifiers
make a result unknown to it. Sources: the same guides as `scalar` and `vector`.
"""

from __future__ import annotations

from wavecast.isa.semantics.combine import Function, V
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.vector import on_both

_SIGN = 0x80000000


def add(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.f32_add(a, b),)


def subtract(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.f32_add(a, o.xor(b, o.const(_SIGN, 32), 32)),)


def subtract_reversed(o: Ops[V], a: V, b: V) -> tuple[V]:
    return subtract(o, b, a)


def multiply(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.f32_mul(a, b),)


def multiply_add(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    return (o.f32_fma(a, b, c),)


def accumulate(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
    return (o.f32_fma(a, b, old),)


def reciprocal(o: Ops[V], a: V) -> tuple[V]:
    return (o.f32_reciprocal(a),)


def truncate(o: Ops[V], a: V) -> tuple[V]:
    return (o.f32_round_to_zero(a),)


def floor(o: Ops[V], a: V) -> tuple[V]:
    return (o.f32_floor(a),)


def from_unsigned(o: Ops[V], a: V) -> tuple[V]:
    return (o.f32_from_unsigned(a),)


def from_signed(o: Ops[V], a: V) -> tuple[V]:
    return (o.f32_from_signed(a),)


def to_unsigned(o: Ops[V], a: V) -> tuple[V]:
    return (o.f32_to_unsigned(a),)


def to_signed(o: Ops[V], a: V) -> tuple[V]:
    return (o.f32_to_signed(a),)


def compare(relation: str) -> Function:
    """Relations as the mnemonics spell them: `nlt` is `not (a < b)`, `lg` ordered and unequal."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_relate(o, relation, a, b),)

    return evaluate


def _relate(o: Ops[V], relation: str, a: V, b: V) -> V:
    if relation in ("o", "u"):
        ordered = o.and_(o.f32_equal(a, a), o.f32_equal(b, b), 1)
        return ordered if relation == "o" else o.not_(ordered, 1)
    if relation.startswith("n"):
        return o.not_(_relate(o, {"neq": "eq"}.get(relation, relation[1:]), a, b), 1)
    less, equal, greater = o.f32_less(a, b), o.f32_equal(a, b), o.f32_less(b, a)
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
