"""Packed rows: one function per element, and the same over a whole register.

An executor that applies op_sel and per-half negation calls `ELEMENTS` once per half: operands and
results are registers of 32 bits of which, for 16-bit elements, the low half counts.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.arithmetic import BRAIN, HALF, SINGLE
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.extremes import maximum_number, minimum_number
from wavecast.isa.semantics.floats import FLOATS, accumulate, add, multiply, multiply_add
from wavecast.isa.semantics.halves import HALVES
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.registers import bits_of
from wavecast.isa.semantics.saturation import CLAMPED

V = TypeVar("V")

_INTEGER = {
    "add_i16": "v_add_nc_i16",
    "add_u16": "v_add_nc_u16",
    "sub_i16": "v_sub_nc_i16",
    "sub_u16": "v_sub_nc_u16",
    "mad_i16": "v_mad_i16",
    "mad_u16": "v_mad_u16",
    "mul_lo_u16": "v_mul_lo_u16",
    "lshlrev_b16": "v_lshlrev_b16",
    "lshrrev_b16": "v_lshrrev_b16",
    "ashrrev_i16": "v_ashrrev_i16",
    **{f"{name}_{kind}": f"v_{name}_{kind}" for name in ("min", "max", "min3", "max3")
       for kind in ("i16", "u16")},
}  # fmt: skip
"""Packed rows and the rows of one element they repeat."""


def _compose_add(function: Function, clamped_sum: str) -> Function:
    """function(a + b, c), the sum limited to 16 bits."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V, ...]:
        return function(o, CLAMPED[clamped_sum](o, a, b)[0], c)

    return evaluate


def _elements() -> dict[str, Function]:
    table = {f"v_pk_{name}": HALVES[single] for name, single in _INTEGER.items()}
    for kind in ("i16", "u16"):
        for name in ("min", "max"):
            single = HALVES[f"v_{name}_{kind}"]
            table[f"v_pk_add_{name}_{kind}"] = _compose_add(single, f"v_add_nc_{kind}")
    for name in ("add", "mul", "fma", "min_num", "max_num", "minimum", "maximum"):
        table[f"v_pk_{name}_f16"] = FLOATS[f"v_{name}_f16"]
    for name in ("min3_num", "max3_num", "minimum3", "maximum3"):
        table[f"v_pk_{name}_f16"] = FLOATS[f"v_{name}_f16"]
    table["v_pk_fmac_f16"] = accumulate(HALF)
    for f, name in ((BRAIN, "bf16"), (SINGLE, "f32")):
        table[f"v_pk_add_{name}"] = add(f)
        table[f"v_pk_mul_{name}"] = multiply(f)
        table[f"v_pk_fma_{name}"] = multiply_add(f)
    table["v_pk_min_num_bf16"] = minimum_number(BRAIN)
    table["v_pk_max_num_bf16"] = maximum_number(BRAIN)
    return table


def _whole(element: Function, bits: int) -> Function:
    """An element function on both halves of registers of 32 or 64 bits, each in its place."""

    def evaluate(o: Ops[V], *operands: V) -> tuple[V]:
        if bits == 16:
            (low,) = element(o, *operands)
            (high,) = element(o, *(o.high_half(value) for value in operands))
            return (o.or_(low, o.shl(high, o.const(16, 32), 32), 32),)
        (low,) = element(o, *(o.truncate(value, 64, 32) for value in operands))
        upper = (o.lshr(value, o.const(32, 64), 64) for value in operands)
        (high,) = element(o, *(o.truncate(value, 64, 32) for value in upper))
        return (o.join(low, high),)

    return evaluate


def move_pair(o: Ops[V], a: V, b: V, op_sel: V) -> tuple[V]:
    """One dword of each operand, chosen by entries 0 and 1 of `op_sel`."""
    dwords = []
    for entry, value in enumerate((a, b)):
        upper = o.truncate(bits_of(o, op_sel, entry), 32, 1)
        source = o.select(upper, o.lshr(value, o.const(32, 64), 64), value, 64)
        dwords.append(o.truncate(source, 64, 32))
    return (o.join(dwords[0], dwords[1]),)


def element_bits(name: str) -> int:
    """Width of the elements of a row of `ELEMENTS`."""
    return 32 if name.endswith("_f32") else 16


ELEMENTS: dict[str, Function] = _elements()
"""Row name -> semantics of one element."""

ELEMENTS_CLAMPED: dict[str, Function] = {
    f"v_pk_{name}": CLAMPED[single] for name, single in _INTEGER.items() if single in CLAMPED
}
"""Row name -> semantics of one element with `clamp`."""

PACKED: dict[str, Function] = {
    name: _whole(function, element_bits(name)) for name, function in ELEMENTS.items()
} | {"v_pk_mov_b32": move_pair}
"""Row name -> semantics of the whole register."""

PACKED_MODIFIERS: dict[str, tuple[str, ...]] = {"v_pk_mov_b32": ("op_sel",)}
"""Row name -> modifiers whose values follow the operands."""
