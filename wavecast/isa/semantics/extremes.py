"""Minimum, maximum and median of floating-point values, by generation.

`minimum_number` prefers a number to a NaN; `minimum` gives NaN if an operand is one. Both order -0
below +0. Sources: the guides named in `floats`; the gfx12 guide describes IEEE 754-2019, the older
ones IEEE 754-2008 under MODE.IEEE.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.arithmetic import Float
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")


def minimum_number(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_number(o, f, a, b, largest=False),)

    return evaluate


def maximum_number(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_number(o, f, a, b, largest=True),)

    return evaluate


def minimum(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_propagating(o, f, a, b, largest=False),)

    return evaluate


def maximum(f: Float) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_propagating(o, f, a, b, largest=True),)

    return evaluate


def of_three(first: Function, second: Function) -> Function:
    """second(first(a, b), c)."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return second(o, first(o, a, b)[0], c)

    return evaluate


def median(f: Float) -> Function:
    """The middle of three; the smallest where one is NaN."""
    least, most = minimum_number(f), maximum_number(f)

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        (top,) = of_three(most, most)(o, a, b, c)
        (bottom,) = of_three(least, least)(o, a, b, c)
        without_b = o.select(f.equal(o, top, b), most(o, a, c)[0], most(o, a, b)[0], f.bits)
        middle = o.select(f.equal(o, top, a), most(o, b, c)[0], without_b, f.bits)
        wrong = o.zero(1)
        for value in (a, b, c):
            wrong = o.or_(wrong, f.is_nan(o, f.operand(o, value)), 1)
        return (o.select(wrong, bottom, middle, f.bits),)

    return evaluate


def _min_or_max(o: Ops[V], f: Float, a: V, b: V, largest: bool) -> V:
    """The smaller or larger of two numbers, -0 below +0.

    Patterns compare as integers once those of negative values are flipped.
    """
    a_less = o.less_signed(_key(o, f, a), _key(o, f, b), f.bits)
    return o.select(a_less, b if largest else a, a if largest else b, f.bits)


def _key(o: Ops[V], f: Float, a: V) -> V:
    bits, width = f.bits, f.fmt.bits
    if f.half:
        a = o.sign_extend(o.truncate(a, 32, width), width, bits)
    signs = o.ashr(a, o.const(bits - 1, bits), bits)
    return o.xor(a, o.lshr(signs, o.const(1, bits), bits), bits)


def _number(o: Ops[V], f: Float, a: V, b: V, largest: bool) -> V:
    a, b = f.operand(o, a), f.operand(o, b)
    bits = f.bits
    a_nan, b_nan = f.is_nan(o, a), f.is_nan(o, b)
    ordered = _min_or_max(o, f, a, b, largest)
    if o.machine.follows_2019:
        a_quiet = f.make_quiet(o, a)
        when_a = o.select(b_nan, a_quiet, b, bits)
    else:
        when_a = b
    result = o.select(a_nan, when_a, o.select(b_nan, a, ordered, bits), bits)
    if o.machine.quiets_signalling:
        for value, wrong in ((b, b_nan), (a, a_nan)):
            signalling = o.and_(wrong, _is_signalling(o, f, value), 1)
            result = o.select(signalling, f.make_quiet(o, value), result, bits)
    return f.result(o, result)


def _is_signalling(o: Ops[V], f: Float, a: V) -> V:
    """Whether a NaN is one; meaningless for other values."""
    quiet = o.and_(a, f.const(o, f.fmt.quiet), f.bits)
    return o.eq(quiet, o.zero(f.bits), f.bits)


def _propagating(o: Ops[V], f: Float, a: V, b: V, largest: bool) -> V:
    a, b = f.operand(o, a), f.operand(o, b)
    bits = f.bits
    a_nan, b_nan = f.is_nan(o, a), f.is_nan(o, b)
    # a signalling operand comes before a quiet one
    b_first = o.and_(b_nan, _is_signalling(o, f, b), 1)
    b_first = o.and_(b_first, o.not_(o.and_(a_nan, _is_signalling(o, f, a), 1), 1), 1)
    takes_a = o.and_(a_nan, o.not_(b_first, 1), 1)
    nan = f.make_quiet(o, o.select(takes_a, a, b, bits))
    wrong = o.or_(a_nan, b_nan, 1)
    result = o.select(wrong, nan, _min_or_max(o, f, a, b, largest), bits)
    return f.result(o, result)
