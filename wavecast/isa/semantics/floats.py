"""Semantics of floating-point arithmetic rows: sums, products, roundings, minima and maxima.

Rows take and return bit patterns; source modifiers (neg, abs) and output modifiers (omod, clamp)
are the executor's business. Sources: AMD instruction set architecture guides of MI300 (CDNA3),
CDNA4, RDNA3 and RDNA4, chapters on VOP1, VOP2, VOP3 and SOP2.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.arithmetic import (
    DOUBLE,
    FLOATS_BY_NAME,
    HALF,
    SINGLE,
    Float,
)
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.extremes import (
    maximum,
    maximum_number,
    median,
    minimum,
    minimum_number,
    of_three,
)
from wavecast.isa.semantics.formats import F32
from wavecast.isa.semantics.ops import Direction, Ops

V = TypeVar("V")


def add(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (f.add(o, a, b),)

    return evaluate


def subtract(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (f.subtract(o, a, b),)

    return evaluate


def subtract_reversed(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (f.subtract(o, b, a),)

    return evaluate


def multiply(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (f.multiply(o, a, b),)

    return evaluate


def multiply_add(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return (f.fma(o, a, b, c),)

    return evaluate


def accumulate(f: Float) -> Function:
    def evaluate(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
        return (f.fma(o, a, b, old),)

    return evaluate


def unfused_mad(f: Float) -> Function:
    """The `mad` rows of gfx9: the product is rounded, denormals are flushed whatever MODE says."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        a, b, c = (_flush_denormals(o, f, value) for value in (a, b, c))
        product = _flush_denormals(o, f, f.multiply(o, a, b))
        return (_flush_denormals(o, f, f.add(o, product, c)),)

    return evaluate


def unfused_accumulate(f: Float) -> Function:
    def evaluate(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
        return unfused_mad(f)(o, a, b, old)

    return evaluate


def _flush_denormals(o: Ops[V], f: Float, a: V) -> V:
    if not f.half:
        return o.without_denormals(a, f.fmt)
    return o.zero_extend(o.without_denormals(o.truncate(a, 32, 16), f.fmt), 16, 32)


def multiply_zero_wins(o: Ops[V], a: V, b: V) -> tuple[V]:
    """0 times anything is +0."""
    product = SINGLE.multiply(o, a, b)
    return (o.select(_any_zero(o, a, b), o.zero(32), product, 32),)


def multiply_add_zero_wins(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    total = SINGLE.fma(o, a, b, c)
    return (o.select(_any_zero(o, a, b), SINGLE.operand(o, c), total, 32),)


def accumulate_zero_wins(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
    return multiply_add_zero_wins(o, a, b, old)


def legacy_multiply_add(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    """v_mad_legacy_f32: 0 times anything is 0, the product is rounded, denormals are flushed."""
    (total,) = unfused_mad(SINGLE)(o, a, b, c)
    a, b, c = (o.without_denormals(value, F32) for value in (a, b, c))
    return (o.select(_any_zero(o, a, b), c, total, 32),)


def _any_zero(o: Ops[V], a: V, b: V) -> V:
    a, b = SINGLE.operand(o, a), SINGLE.operand(o, b)
    return o.or_(SINGLE.is_zero(o, a), SINGLE.is_zero(o, b), 1)


def multiply_lit(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    """a * b, or -FLT_MAX where b is it, -infinity or NaN, or c is not positive."""
    least = o.const(F32.sign | F32.largest, 32)
    low = o.or_(o.eq(b, least, 32), o.eq(b, o.const(F32.sign | F32.exponent_mask, 32), 32), 1)
    low = o.or_(low, o.f_is_nan(b, F32), 1)
    positive = SINGLE.less(o, o.zero(32), c)
    yields_least = o.or_(low, o.not_(positive, 1), 1)
    return (o.select(yields_least, least, SINGLE.multiply(o, a, b), 32),)


def round_to_integral(f: Float, direction: Direction) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return (f.round(o, a, direction),)

    return evaluate


def fraction(f: Float) -> Function:
    """a - floor(a), below 1 also where the difference rounds to 1."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        difference = f.subtract(o, a, f.round(o, a, "floor"))
        below = f.const(o, f.fmt.one - 1)
        reaches = o.eq(difference, f.const(o, f.fmt.one), f.bits)
        return (o.select(reaches, below, difference, f.bits),)

    return evaluate


def _arithmetic(name: str, f: Float) -> dict[str, Function]:
    """Rows that exist for F16, F32 and F64 as vector instructions."""
    return {
        f"v_add_{name}": add(f),
        f"v_mul_{name}": multiply(f),
        f"v_fma_{name}": multiply_add(f),
        f"v_fmac_{name}": accumulate(f),
        f"v_fmamk_{name}": multiply_add(f),
        f"v_fmaak_{name}": multiply_add(f),
        f"v_trunc_{name}": round_to_integral(f, "trunc"),
        f"v_floor_{name}": round_to_integral(f, "floor"),
        f"v_ceil_{name}": round_to_integral(f, "ceil"),
        f"v_rndne_{name}": round_to_integral(f, "even"),
        f"v_fract_{name}": fraction(f),
        f"v_min_num_{name}": minimum_number(f),
        f"v_max_num_{name}": maximum_number(f),
        f"v_minimum_{name}": minimum(f),
        f"v_maximum_{name}": maximum(f),
    }


def _single_and_half(name: str, f: Float) -> dict[str, Function]:
    """Rows that exist for F16 and F32, vector and scalar."""
    least, most = minimum_number(f), maximum_number(f)
    lower, upper = minimum(f), maximum(f)
    table: dict[str, Function] = {
        f"v_sub_{name}": subtract(f),
        f"v_subrev_{name}": subtract_reversed(f),
        f"v_mad_{name}": unfused_mad(f),
        f"v_mac_{name}": unfused_accumulate(f),
        f"v_madmk_{name}": unfused_mad(f),
        f"v_madak_{name}": unfused_mad(f),
        f"v_min3_num_{name}": of_three(least, least),
        f"v_max3_num_{name}": of_three(most, most),
        f"v_minmax_num_{name}": of_three(least, most),
        f"v_maxmin_num_{name}": of_three(most, least),
        f"v_minimum3_{name}": of_three(lower, lower),
        f"v_maximum3_{name}": of_three(upper, upper),
        f"v_minimummaximum_{name}": of_three(lower, upper),
        f"v_maximumminimum_{name}": of_three(upper, lower),
        f"v_med3_num_{name}": median(f),
        f"s_sub_{name}": subtract(f),
    }
    shared = ("add", "mul", "fmac", "trunc", "floor", "ceil", "rndne", "min_num", "max_num")
    vector = _arithmetic(name, f)
    for operation in (*shared, "minimum", "maximum"):
        table[f"s_{operation}_{name}"] = vector[f"v_{operation}_{name}"]
    return table


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        "v_mul_dx9_zero_f32": multiply_zero_wins,
        "v_fma_dx9_zero_f32": multiply_add_zero_wins,
        "v_fmac_dx9_zero_f32": accumulate_zero_wins,
        "v_mad_legacy_f32": legacy_multiply_add,
        "v_mullit_f32": multiply_lit,
        "v_fma_legacy_f16": multiply_add(HALF),
        "v_mad_legacy_f16": unfused_mad(HALF),
        "s_fmamk_f32": multiply_add(SINGLE),
        "s_fmaak_f32": multiply_add(SINGLE),
        "v_dual_max_f32": maximum_number(SINGLE),
        "v_dual_min_f32": minimum_number(SINGLE),
        "v_dual_max_num_f64": maximum_number(DOUBLE),
        "v_dual_min_num_f64": minimum_number(DOUBLE),
    }
    for name in ("f16", "f32", "f64"):
        table |= _arithmetic(name, FLOATS_BY_NAME[name])
        if name != "f64":
            table |= _single_and_half(name, FLOATS_BY_NAME[name])
    return table


FLOATS: dict[str, Function] = _tables()
"""Row name -> semantics."""
