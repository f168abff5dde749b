"""Binary operations on bit patterns of any width, whatever the evaluator.

Scalar, vector and 16-bit rows are made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")
Function = Callable[..., tuple]
"""What a row computes: `(ops, *inputs) -> outputs`."""
Combine = Callable[[Ops[Any], Any, Any, int], Any]
"""A binary operation at a given width."""


def add(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.add(a, b, bits)


def subtract(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.sub(a, b, bits)


def subtract_reversed(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.sub(b, a, bits)


def multiply(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.mul(a, b, bits)


def bit_and(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.and_(a, b, bits)


def bit_or(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.or_(a, b, bits)


def bit_xor(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.xor(a, b, bits)


def bit_nand(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.not_(o.and_(a, b, bits), bits)


def bit_nor(o: Ops[V], a: V, b: V, bits: int) -> V:
    return o.not_(o.or_(a, b, bits), bits)


def bit_xnor(o: Ops[V], a: V, b: V, bits: int) -> V:
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


LOGIC: dict[str, Combine] = {
    "and": bit_and,
    "or": bit_or,
    "xor": bit_xor,
    "nand": bit_nand,
    "nor": bit_nor,
    "xnor": bit_xnor,
    "and_not1": and_not,
    "or_not1": or_not,
}
"""How rows spell what they do to bits -> the operation."""
