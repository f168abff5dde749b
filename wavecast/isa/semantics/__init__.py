"""What instructions compute, written once for every evaluator.

    semantics.of(opcode) -> Semantics | None
    semantics.of(opcode).evaluate(ops, *inputs) -> outputs

`inputs` are the values of the operands the row reads (labels have none), in printed order, then
of its implicit reads; `outputs` those of the operands it writes, in printed order, then of its
implicit writes. EXEC is among them for scalar rows only: vector rows describe one lane. Widths:

- an operand has `32 * dwords` bits of its role (16-bit types too: the low half counts);
- one of more than 64 bits is a tuple of 32-bit values, lowest first;
- an immediate has 32 bits, in rows of 64-bit floats 64;
- a lane mask is a condition (1 bit) per lane, and so is `vcc` read or written implicitly by a
  vector row, and EXEC written by `v_cmpx`;
- `scc` is a condition; EXEC of a scalar row is as wide as the row's other operands.

Operand modifiers (neg, abs, sext, op_sel, SDWA and DPP) and output modifiers (omod, clamp of
floats, the half a 16-bit result goes to) are the executor's, around a row's function, except
those in `Semantics.modifiers`, which are the function's own. MODE and the target reach a function
through `Ops.machine`. `NOT_DONE` lists the ALU rows without an entry.

A conditional branch writes nothing; its one output is the condition under which it is taken, and
VCC or EXEC reach it as 64-bit masks. A row without an entry has no semantics here: an evaluator
must take its results as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from wavecast.isa import table
from wavecast.isa.opcode import Opcode
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.comparisons import COMPARISONS
from wavecast.isa.semantics.conversions import CONVERSIONS
from wavecast.isa.semantics.division import DIVISION
from wavecast.isa.semantics.dot import DOT, DOT_CLAMPED, DOT_MODIFIERS
from wavecast.isa.semantics.floats import FLOATS
from wavecast.isa.semantics.halves import HALVES
from wavecast.isa.semantics.integer_comparisons import INTEGER_COMPARISONS
from wavecast.isa.semantics.integers import IntegerOps, Unknown
from wavecast.isa.semantics.lanes import LaneOps
from wavecast.isa.semantics.machine import Denormals, FloatMode
from wavecast.isa.semantics.octets import OCTETS
from wavecast.isa.semantics.omissions import NOT_DONE
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.packed import (
    ELEMENTS,
    ELEMENTS_CLAMPED,
    PACKED,
    PACKED_MODIFIERS,
    element_bits,
)
from wavecast.isa.semantics.permutations import PERMUTATION_MODIFIERS, PERMUTATIONS
from wavecast.isa.semantics.saturation import CLAMPED
from wavecast.isa.semantics.scalar import SCALAR
from wavecast.isa.semantics.small_formats import SMALL_FORMAT_MODIFIERS, SMALL_FORMATS
from wavecast.isa.semantics.transcendental import TRANSCENDENTAL
from wavecast.isa.semantics.vector import MODIFIERS, VECTOR

_FAMILIES = (
    *(SCALAR, VECTOR, HALVES, FLOATS, COMPARISONS, DIVISION, TRANSCENDENTAL, CONVERSIONS),
    *(SMALL_FORMATS, DOT, OCTETS, PERMUTATIONS, PACKED, INTEGER_COMPARISONS),
)
_MODIFIERS = (
    MODIFIERS | SMALL_FORMAT_MODIFIERS | DOT_MODIFIERS | PERMUTATION_MODIFIERS | PACKED_MODIFIERS
)
_CLAMPED = CLAMPED | DOT_CLAMPED


@dataclass(frozen=True, slots=True)
class Semantics:
    """How one row computes its outputs from its inputs.

    The values of `modifiers` follow the inputs as 32-bit constants: a number as printed, a list
    (`op_sel:[0,1]`) with entry i as bit i, an absent one as 0. They are the function's own: an
    executor does not apply them again.

    `element` is set for packed rows: the function of one element of `element_bits`, on 32-bit
    registers (16-bit elements lie in the low half). An executor that applies op_sel, op_sel_hi,
    neg_lo and neg_hi calls it once per half; `function` takes each half from its own place.

    `clamped` (and `element_clamped`) replaces the function where an integer row has `clamp`; where
    it is None, clamp limits a floating-point result to 0..1 and is the executor's.
    """

    name: str
    function: Function
    modifiers: tuple[str, ...] = ()
    element: Function | None = None
    element_bits: int = 0
    clamped: Function | None = None
    element_clamped: Function | None = None

    def evaluate(self, ops: Ops[Any], *inputs: Any) -> tuple[Any, ...]:
        """The outputs, in the order of the module's convention."""
        return self.function(ops, *inputs)


@cache
def registry() -> dict[str, Semantics]:
    """Row name -> semantics, all of them."""
    functions: dict[str, Function] = {}
    for family in _FAMILIES:
        functions |= family
    functions |= _dual(functions)
    rows = {row.name for row in table.rows()}
    return {name: _entry(name, function) for name, function in functions.items() if name in rows}


def _entry(name: str, function: Function) -> Semantics:
    return Semantics(
        name=name,
        function=function,
        modifiers=_MODIFIERS.get(name, ()),
        element=ELEMENTS.get(name),
        element_bits=element_bits(name) if name in ELEMENTS else 0,
        clamped=_CLAMPED.get(name),
        element_clamped=ELEMENTS_CLAMPED.get(name),
    )


def _dual(single: dict[str, Function]) -> dict[str, Function]:
    """The halves of VOPD pairs: each means what its row alone means."""
    functions = {
        row.name: single[row.name.replace("v_dual_", "v_", 1)]
        for row in table.rows()
        if row.name.startswith("v_dual_") and row.name.replace("v_dual_", "v_", 1) in single
    }
    return functions | {"v_dual_cndmask_b32_mask": single["v_cndmask_b32"]}


def of(opcode: Opcode) -> Semantics | None:
    """The semantics of a row, None where there are none."""
    return registry().get(opcode.name)


__all__ = [
    "NOT_DONE",
    "Denormals",
    "FloatMode",
    "IntegerOps",
    "LaneOps",
    "Ops",
    "Semantics",
    "Unknown",
    "of",
    "registry",
]
