"""Semantics of the transcendental rows: reciprocal, roots, exponential, logarithm, sine, cosine.

The guides state accuracies (1 ulp in F32 for all but sine and cosine), not results. Here each is
evaluated in F64 with a polynomial whose error is below 2^-40 and rounded once to F32, so it is the
correctly rounded result but for about one operand in 2^16, and every evaluator gives the same bits.
F16 and BF16 round that F32 once more, as hardware does.

F32 rows flush denormal operands and results whatever MODE says; compilers scale around that. Sine
and cosine take revolutions, and give 0 and 1 beyond 256 of them. Sources: the guides named in
`floats`; LLVM's lowering of exp2, log2 and division for what happens to denormals.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, log, pi, sqrt
from struct import pack, unpack
from typing import Any, TypeVar

from wavecast.isa.semantics.arithmetic import BRAIN, DOUBLE, HALF, SINGLE, Float
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.formats import F32, F64
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.rounding import narrow, to_double

V = TypeVar("V")
Double = Callable[[Ops[Any], Any], Any]
"""A function of one F64 value."""

_LN2 = log(2.0)
_ONES = 1.5 * 2.0**52
_EXPONENTIAL = [_LN2**k / factorial(k) for k in range(11)]
_LOGARITHM = [2.0 / (_LN2 * (2 * k + 1)) for k in range(7)]
_SINE = [(-1) ** k * (2 * pi) ** (2 * k + 1) / factorial(2 * k + 1) for k in range(8)]
_COSINE = [(-1) ** k * (2 * pi) ** (2 * k) / factorial(2 * k) for k in range(8)]
_TANGENT = [1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835]


def _pattern(value: float) -> int:
    return unpack("<Q", pack("<d", value))[0]


_ROOT_HALF = _pattern(sqrt(0.5))


def _number(o: Ops[V], value: float) -> V:
    return o.const(_pattern(value), 64)


def _polynomial(o: Ops[V], x: V, coefficients: list[float]) -> V:
    """Horner's rule; coefficients from the constant one on."""
    total = _number(o, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = o.f_add(o.f_mul(total, x, F64), _number(o, coefficient), F64)
    return total


def _clamp(o: Ops[V], x: V, limit: float) -> V:
    top, bottom = _number(o, limit), _number(o, -limit)
    x = o.select(o.f_less(top, x, F64), top, x, 64)
    return o.select(o.f_less(x, bottom, F64), bottom, x, 64)


def _low_word(o: Ops[V], whole: V) -> V:
    """The lowest bits of a whole number of less than 2^31 in size, as 64 bits: those of the sum
    with a number so large that its last bit counts ones. Hosts convert F64 lane by lane."""
    return o.f_add(whole, _number(o, _ONES), F64)


def exponential(o: Ops[V], x: V) -> V:
    """2^x; beyond 2^+-300 any value that F32 rounds to zero or infinity."""
    x = _clamp(o, x, 300.0)
    whole = o.f_round(x, F64, "even")
    part = o.f_add(x, o.f_negate(whole, F64), F64)
    steps = o.shl(_low_word(o, whole), o.const(F64.fraction, 64), 64)
    value = o.add(_polynomial(o, part, _EXPONENTIAL), steps, 64)
    return o.select(o.f_is_nan(x, F64), x, value, 64)


def logarithm(o: Ops[V], x: V) -> V:
    """log2(x): x = 2^e * m with m around 1, and log m = 2 atanh((m - 1) / (m + 1))."""
    steps = o.ashr(o.sub(x, o.const(_ROOT_HALF, 64), 64), o.const(F64.fraction, 64), 64)
    near_one = o.sub(x, o.shl(steps, o.const(F64.fraction, 64), 64), 64)
    unity = _number(o, 1.0)
    above = o.f_add(near_one, o.f_negate(unity, F64), F64)
    ratio = o.f_div(above, o.f_add(near_one, unity, F64), F64)
    series = _polynomial(o, o.f_mul(ratio, ratio, F64), _LOGARITHM)
    power = o.f_from_int(o.truncate(steps, 64, 32), 32, True, F64)
    value = o.f_add(power, o.f_mul(ratio, series, F64), F64)
    zero = o.zero(64)
    infinity = o.const(F64.exponent_mask, 64)
    value = o.select(o.f_equal(x, infinity, F64), infinity, value, 64)
    value = o.select(o.f_less(x, zero, F64), o.const(F64.nan, 64), value, 64)
    value = o.select(o.f_equal(x, zero, F64), o.f_negate(infinity, F64), value, 64)
    return o.select(o.f_is_nan(x, F64), x, value, 64)


def _revolution(o: Ops[V], x: V) -> tuple[V, V, V]:
    """Sine and cosine of the remainder after quarter revolutions, and their number (0 to 3)."""
    fraction = o.f_add(x, o.f_negate(o.f_round(x, F64, "even"), F64), F64)
    quarters = o.f_round(o.f_mul(fraction, _number(o, 4.0), F64), F64, "even")
    rest = o.f_add(fraction, o.f_mul(quarters, _number(o, -0.25), F64), F64)
    square = o.f_mul(rest, rest, F64)
    sine = o.f_mul(rest, _polynomial(o, square, _SINE), F64)
    cosine = _polynomial(o, square, _COSINE)
    return sine, cosine, o.low_bits(o.truncate(_low_word(o, quarters), 64, 32), 2, 32)


def _select_quadrant(o: Ops[V], even: V, odd: V, quadrant: V) -> V:
    magnitude = o.select(o.truncate(quadrant, 32, 1), odd, even, 64)
    negative = o.truncate(o.lshr(quadrant, o.const(1, 32), 32), 32, 1)
    return o.select(negative, o.f_negate(magnitude, F64), magnitude, 64)


def _in_range(o: Ops[V], x: V, value: V, outside: float) -> V:
    beyond = o.f_less(_number(o, 256.0), o.f_absolute(x, F64), F64)
    value = o.select(beyond, _number(o, outside), value, 64)
    invalid = o.or_(o.f_is_infinite(x, F64), o.f_is_nan(x, F64), 1)
    nan = o.select(o.f_is_nan(x, F64), x, o.const(F64.nan, 64), 64)
    return o.select(invalid, nan, value, 64)


def sine(o: Ops[V], x: V) -> V:
    """sin(2 pi x)."""
    even, odd, quadrant = _revolution(o, x)
    value = _in_range(o, x, _select_quadrant(o, even, odd, quadrant), 0.0)
    return o.select(o.f_is_zero(x, F64), x, value, 64)


def cosine(o: Ops[V], x: V) -> V:
    """cos(2 pi x)."""
    odd, even, quadrant = _revolution(o, x)
    # a quarter turn on, cosine is minus sine
    value = _select_quadrant(o, even, o.f_negate(odd, F64), quadrant)
    return _in_range(o, x, value, 1.0)


def hyperbolic_tangent(o: Ops[V], x: V) -> V:
    """(e^2x - 1) / (e^2x + 1), by its series near 0."""
    grown = exponential(o, o.f_mul(_clamp(o, x, 40.0), _number(o, 2 / _LN2), F64))
    unity = _number(o, 1.0)
    below = o.f_add(grown, o.f_negate(unity, F64), F64)
    far = o.f_div(below, o.f_add(grown, unity, F64), F64)
    near = o.f_mul(x, _polynomial(o, o.f_mul(x, x, F64), _TANGENT), F64)
    small = o.f_less(o.f_absolute(x, F64), _number(o, 0.1), F64)
    return o.select(small, near, far, 64)


def inverse(o: Ops[V], x: V) -> V:
    return o.f_div(_number(o, 1.0), x, F64)


def root(o: Ops[V], x: V) -> V:
    return o.f_sqrt(x, F64)


def inverse_root(o: Ops[V], x: V) -> V:
    return o.f_div(_number(o, 1.0), o.f_sqrt(x, F64), F64)


def on(f: Float, function: Double) -> Function:
    """A row of format `f` that computes `function`."""
    if f is DOUBLE:
        return _on_doubles(function)

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        a = o.without_denormals(a, F32) if f is SINGLE else f.operand(o, a)
        single = o.f_convert(function(o, to_double(o, a, f.fmt)), F64, F32)
        single = o.without_denormals(single, F32)
        if f is SINGLE:
            return (single,)
        return (f.result(o, narrow(o, single, f.fmt)),)

    return evaluate


def periodic(f: Float, function: Double) -> Function:
    """Sine and cosine, whose denormals follow MODE."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        value = function(o, to_double(o, f.operand(o, a), f.fmt))
        return (f.result(o, narrow(o, o.f_convert(value, F64, F32), f.fmt)),)

    return evaluate


def _on_doubles(function: Double) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return (DOUBLE.result(o, function(o, DOUBLE.operand(o, a))),)

    return evaluate


def _tables() -> dict[str, Function]:
    shared: dict[str, Double] = {
        "rcp": inverse,
        "rsq": inverse_root,
        "sqrt": root,
        "exp": exponential,
        "log": logarithm,
    }
    table: dict[str, Function] = {
        "v_rcp_iflag_f32": on(SINGLE, inverse),
        "v_exp_legacy_f32": on(SINGLE, exponential),
        "v_log_legacy_f32": on(SINGLE, logarithm),
    }
    for name in ("rcp", "rsq", "sqrt"):
        table[f"v_{name}_f64"] = on(DOUBLE, shared[name])
    for f in (HALF, BRAIN, SINGLE):
        for name, function in shared.items():
            table[f"v_{name}_{f.fmt.name}"] = on(f, function)
            if f is not BRAIN:
                table[f"v_s_{name}_{f.fmt.name}"] = on(f, function)
        table[f"v_sin_{f.fmt.name}"] = periodic(f, sine)
        table[f"v_cos_{f.fmt.name}"] = periodic(f, cosine)
        table[f"v_tanh_{f.fmt.name}"] = on(f, hyperbolic_tangent)
    return table


TRANSCENDENTAL: dict[str, Function] = _tables()
"""Row name -> semantics."""
