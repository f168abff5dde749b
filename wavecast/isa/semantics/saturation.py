"""Integer rows with `clamp`: results limited to the range of their type instead of wrapping.

Sources: the guides named in `floats`, section on output modifiers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")
Exact = Callable[..., Any]
"""An operation on values of 64 bits, wide enough for every result."""


def _saturate(bits: int, signed: bool, compute: Exact) -> Function:
    """`compute` on operands extended from `bits` to 64, then limited to `bits`."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)

    def evaluate(o: Ops[V], *operands: V) -> tuple[V]:
        wide = [_extend(o, value, bits, signed) for value in operands]
        total = compute(o, *wide)
        # differences of unsigned values are negative as signed ones
        total = o.maximum(total, o.const(low, 64), 64, signed=True)
        total = o.minimum(total, o.const(high, 64), 64, signed=True)
        return (o.low_bits(o.truncate(total, 64, 32), bits, 32),)

    return evaluate


def _extend(o: Ops[V], a: V, bits: int, signed: bool) -> V:
    """The low `bits` (16, 24 or 32) of a 32-bit value as 64 bits."""
    wide = o.zero_extend(a, 32, 64)
    count = o.const(64 - bits, 64)
    up = o.shl(wide, count, 64)
    return o.ashr(up, count, 64) if signed else o.lshr(up, count, 64)


def _sum(o: Ops[V], a: V, b: V) -> V:
    return o.add(a, b, 64)


def _difference(o: Ops[V], a: V, b: V) -> V:
    return o.sub(a, b, 64)


def _difference_reversed(o: Ops[V], a: V, b: V) -> V:
    return o.sub(b, a, 64)


def _multiply_add(o: Ops[V], a: V, b: V, c: V) -> V:
    return o.add(o.mul(a, b, 64), c, 64)


def multiply_add_24(signed: bool) -> Function:
    """24 x 24 + 32 bits, limited to 32."""
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        product = o.mul(_extend(o, a, 24, signed), _extend(o, b, 24, signed), 64)
        total = o.add(product, _extend(o, c, 32, signed), 64)
        total = o.maximum(total, o.const(low, 64), 64, signed=True)
        total = o.minimum(total, o.const(high, 64), 64, signed=True)
        return (o.truncate(total, 64, 32),)

    return evaluate


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        "v_subrev_nc_u32": _saturate(32, False, _difference_reversed),
        "v_subrev_u16": _saturate(16, False, _difference_reversed),
        "v_mad_u32_u24": multiply_add_24(signed=False),
        "v_mad_i32_i24": multiply_add_24(signed=True),
    }
    for kind, signed in (("i", True), ("u", False)):
        for bits in (16, 32):
            table[f"v_add_nc_{kind}{bits}"] = _saturate(bits, signed, _sum)
            table[f"v_sub_nc_{kind}{bits}"] = _saturate(bits, signed, _difference)
        table[f"v_mad_{kind}16"] = _saturate(16, signed, _multiply_add)
    return table


CLAMPED: dict[str, Function] = _tables()
"""Row name -> semantics with `clamp`."""
