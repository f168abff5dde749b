"""What instructions compute, written once for every evaluator.

    semantics.of(opcode) -> Semantics | None
    semantics.of(opcode).evaluate(ops, *inputs) -> outputs

`inputs` are the values of the operands the row reads (labels are no values), in printed order, then
of its implicit reads; `outputs` those of the operands it writes, in printed order, then of its
implicit writes. EXEC is among them for scalar rows only: vector rows describe one lane. Widths:

- an operand has `32 * dwords` bits of its role (16-bit types too: the low half counts);
- a lane mask is a condition (1 bit) per lane, and so is `vcc` read or written implicitly by a
  vector row, and EXEC written by `v_cmpx`;
- `scc` is a condition; EXEC of a scalar row is as wide as the row's other operands.

A conditional branch writes nothing; its one output is the condition under which it is taken, and
VCC or EXEC reach it as 64-bit masks. A row without an entry has no semantics here: an evaluator
must take its results as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from wavecast.isa.opcode import Opcode
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.floats import FLOATS
from wavecast.isa.semantics.halves import HALVES
from wavecast.isa.semantics.integers import IntegerOps, Unknown
from wavecast.isa.semantics.lanes import LaneOps
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.scalar import SCALAR
from wavecast.isa.semantics.vector import MODIFIERS, VECTOR

_DUAL = (
    *("add_f32", "sub_f32", "subrev_f32", "mul_f32", "fma_f32", "fmac_f32", "fmaak_f32"),
    *("fmamk_f32", "mov_b32", "cndmask_b32", "add_nc_u32", "sub_nc_u32", "and_b32"),
    *("lshlrev_b32", "lshrrev_b32", "ashrrev_i32", "min_i32", "max_i32"),
)


@dataclass(frozen=True, slots=True)
class Semantics:
    """How one row computes its outputs from its inputs.

    The integer values of `modifiers` follow the inputs as 32-bit constants; an absent one is 0.
    """

    name: str
    function: Function
    modifiers: tuple[str, ...] = ()

    def evaluate(self, ops: Ops[Any], *inputs: Any) -> tuple[Any, ...]:
        """The outputs, in the order of the module's convention."""
        return self.function(ops, *inputs)


@cache
def registry() -> dict[str, Semantics]:
    """Row name -> semantics, all of them."""
    return {
        name: Semantics(name, function, MODIFIERS.get(name, ()))
        for name, function in (SCALAR | VECTOR | HALVES | FLOATS | _dual(VECTOR | FLOATS)).items()
    }


def _dual(single: dict[str, Function]) -> dict[str, Function]:
    """The halves of VOPD pairs: each means what its row alone means."""
    found = {f"v_dual_{name}": single[f"v_{name}"] for name in _DUAL}
    return found | {"v_dual_cndmask_b32_mask": single["v_cndmask_b32"]}


def of(opcode: Opcode) -> Semantics | None:
    """The semantics of a row, None where there are none."""
    return registry().get(opcode.name)


__all__ = [
    "IntegerOps",
    "LaneOps",
    "Ops",
    "Semantics",
    "Unknown",
    "of",
    "registry",
]
