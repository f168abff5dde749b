"""Binary operations as functions: what families of rows are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")
Function = Callable[..., tuple]
"""Semantics of a row: an `Ops` and the inputs in, the outputs out."""

Combine = Callable[[Ops[Any], Any, Any, int], Any]
"""A binary operation at a given width, whatever the evaluator."""


def add(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.add(a, b, bits)


def subtract(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.sub(a, b, bits)


def subtract_reversed(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.sub(b, a, bits)


def multiply(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.mul(a, b, bits)


def and_(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.and_(a, b, bits)


def or_(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.or_(a, b, bits)


def xor(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.xor(a, b, bits)


def nand(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.not_(o.and_(a, b, bits), bits)


def nor(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.not_(o.or_(a, b, bits), bits)


def xnor(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.not_(o.xor(a, b, bits), bits)


def and_not(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.and_not(a, b, bits)


def not_and(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.and_not(b, a, bits)


def or_not(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.or_(a, o.not_(b, bits), bits)


def not_or(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.or_(o.not_(a, bits), b, bits)


def shift_left(o: Ops[V], a: V, amount: V, bits: int) -> V:
    return o.shl(a, amount, bits)


def shift_right(o: Ops[V], a: V, amount: V, bits: int) -> V:
    return o.lshr(a, amount, bits)


def shift_right_signed(o: Ops[V], a: V, amount: V, bits: int) -> V:
    return o.ashr(a, amount, bits)
