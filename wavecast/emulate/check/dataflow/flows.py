"""How an instruction passes undefined lanes on: from which registers each of its results comes.

Registers are seen in cells: a vector register is two, its halves; a scalar register is one, at an
even number, and its other number is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from wavecast.emulate.check.dataflow.influence import Bits, InfluenceOps, Reach, UndefinedSource
from wavecast.emulate.lower.operands import constant_bits
from wavecast.emulate.lower.packed import evaluate, modifier_value, plain
from wavecast.emulate.lower.vector import constant_role, insert_result, own_inputs, select_sdwa
from wavecast.emulate.scratch_accesses import MOST_LOADED
from wavecast.isa import semantics
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import MemoryKind, OperandAccess, OperandKind, OperandRole
from wavecast.isa.registers import AGPRS, REGISTERS, VGPRS, special
from wavecast.isa.semantics.machine import FloatMode

VECTORS: Final = VGPRS | AGPRS
SCRATCH_CELL: Final = 2 * REGISTERS
SCRATCH_CELLS: Final = MOST_LOADED // 2
"""The halves of the dwords that a load from scratch brings, as cells."""
INACTIVE_CELL: Final = SCRATCH_CELL + SCRATCH_CELLS
"""The lanes to which an exchange brings registers of lanes that are not active, as a cell."""
_BYTE, _HALF = 0xFF, 0xFFFF
_WRITTEN = (OperandAccess.WRITE, OperandAccess.READ_WRITE)


class FlowForm(Enum):
    """What of the target a flow writes."""

    LANES = "lanes"  # the lanes in EXEC
    WHOLE = "whole"  # every lane
    MASK = "mask"  # scalar registers, one bit per lane in EXEC, 0 elsewhere
    SCALAR = "scalar"  # a scalar register, all bits alike
    PART = "part"  # the lanes in EXEC that a permutation writes
    ONE_LANE = "one_lane"  # the lane a scalar operand names


@dataclass(frozen=True, slots=True)
class Flow:
    """One cell written, and what its value depends on.

    Where there is a `choice` (the cell of a lane mask), `sources` count in lanes that have its bit
    and `otherwise` in those that have not. A Form.MASK target stands for the whole mask.
    """

    target: int
    form: FlowForm
    sources: tuple[UndefinedSource, ...] = ()
    otherwise: tuple[UndefinedSource, ...] = ()
    choice: int | None = None


def halves(bits: int) -> Iterator[int]:
    """The cells of vector registers, by bit position."""
    for position in bits_of(bits & VECTORS):
        yield 2 * position
        yield 2 * position + 1


def scalars(bits: int) -> Iterator[int]:
    """The cells of scalar registers."""
    for position in bits_of(bits & ~VECTORS):
        yield 2 * position


def first_cell(bits: int) -> int:
    """The first cell of an operand."""
    return 2 * ((bits & -bits).bit_length() - 1)


def matrix_flows(decoded: Decoded) -> list[Flow]:
    """Every element of D may depend on every lane of A and B, and on its own of C."""
    target, c = decoded.operands[0], 3
    if decoded.roles[0].access is OperandAccess.READ_WRITE:
        c = 0
    factors = 0
    for index, operand in enumerate(decoded.operands):
        if index not in (0, c):
            factors |= operand.bits
    around = tuple(UndefinedSource(cell, Reach.ANY) for cell in halves(factors))
    around += tuple(UndefinedSource(cell, Reach.UNIFORM) for cell in scalars(factors))
    accumulators = list(halves(decoded.operands[c].bits))
    return [
        Flow(
            cell,
            FlowForm.WHOLE,
            ((UndefinedSource(accumulators[index], Reach.OWN),) if accumulators else ()) + around,
        )
        for index, cell in enumerate(halves(target.bits))
    ]


def memory_flows(
    decoded: Decoded, letters: str, *, scratch: bool, inactive: bool = False
) -> list[Flow]:
    """Loads give defined values, but those of `scratch` what was stored there, and lane exchanges
    those of other lanes, with `inactive` also of lanes that are not active.

    `letters` say which half of its register sub-dword data goes to (`lower.sites.shape_letters`).
    """
    memory = decoded.memory
    assert memory is not None
    written = [
        operand.bits
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.kind is OperandKind.VECTOR and role.access is not OperandAccess.READ
        and operand.bits & decoded.writes
    ]  # fmt: skip
    if memory.kind is MemoryKind.PERMUTE:
        return _exchange(decoded, inactive=inactive)
    flows = []
    for bits in written:
        for number, cell in enumerate(halves(bits)):
            upper = "h" in letters
            sources = ()
            if scratch:
                sources = (UndefinedSource(SCRATCH_CELL + number, Reach.OWN),)
            if "k" not in letters or bool(cell & 1) == upper:
                flows.append(Flow(cell, FlowForm.LANES, sources))
    return flows


_FETCHES: Final = frozenset({"bpermute", "swizzle"})


def fetches(decoded: Decoded) -> bool:
    """Whether every lane reads the register of a lane that it or the instruction names, if that is
    active."""
    return decoded.memory is not None and decoded.opcode.memory_form.exchange in _FETCHES


def _exchange(decoded: Decoded, *, inactive: bool) -> list[Flow]:
    kind = decoded.opcode.memory_form.exchange
    if kind == "swizzle":
        address, reach = 0, Reach.PERMUTED
    else:
        address = decoded.operands[1].bits
        reach = Reach.ANY if kind == "bpermute_fi" else Reach.ACTIVE
    data = decoded.operands[-1].bits
    flows = []
    by = Reach.OWN if kind.startswith("bpermute") else Reach.ACTIVE
    lanes = tuple(UndefinedSource(cell, by) for cell in halves(address))
    if inactive and fetches(decoded):
        lanes += (UndefinedSource(INACTIVE_CELL, Reach.OWN),)
    for target, cell in zip(halves(decoded.operands[0].bits), halves(data), strict=True):
        flows.append(Flow(target, FlowForm.LANES, (UndefinedSource(cell, reach), *lanes)))
    return flows


def vector_flows(
    decoded: Decoded,
    machine: FloatMode,
    lanes: int,
    constants: Mapping[int, int],
    *,
    all_active: bool,
) -> list[Flow]:
    """The flows of a vector instruction other than memory and matrix instructions (of a VOPD
    pair, of one half). `constants` are scalar registers whose value is known, by cell."""
    masks = _mask_inputs(decoded)
    evaluation = _Evaluation(decoded, machine, lanes, constants, all_active)
    flows = evaluation.outputs(None)
    if len(masks) != 1:
        return flows
    flows_if_one, other = evaluation.outputs(1), evaluation.outputs(0)
    (mask,) = masks
    merged = []
    for each, flow_if_one, zero in zip(flows, flows_if_one, other, strict=True):
        without = {source for source in each.sources if source.cell != mask}
        if set(flow_if_one.sources) == set(zero.sources) == without:
            merged.append(each)
        else:
            merged.append(Flow(each.target, each.form, flow_if_one.sources, zero.sources, mask))
    return merged


def _mask_inputs(decoded: Decoded) -> list[int]:
    """The cells of the lane masks an instruction reads."""
    cells = [
        first_cell(operand.bits)
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.kind is OperandKind.LANE_MASK
        and role.access is not OperandAccess.WRITE
        and operand.bits
    ]
    if "vcc" in decoded.opcode.implicit_reads:
        cells.append(first_cell(special("vcc")))
    return cells


class _Evaluation:
    """One instruction evaluated on dependencies."""

    def __init__(
        self,
        decoded: Decoded,
        machine: FloatMode,
        lanes: int,
        constants: Mapping[int, int],
        all_active: bool,
    ) -> None:
        self.decoded, self.constants = decoded, constants
        self.ops = InfluenceOps(machine, lanes, all_active=all_active)
        self.meaning = semantics.of(decoded.opcode)

    def outputs(self, mask: int | None) -> list[Flow]:
        """The flows, with a lane mask that is read taken as it comes (None) or as a constant."""
        decoded = self.decoded
        results = iter(self._results(mask))
        flows: list[Flow] = []
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.access not in _WRITTEN:
                continue
            value = next(results)
            if role.kind is OperandKind.LANE_MASK:
                if operand.bits:
                    flows.append(Flow(first_cell(operand.bits), FlowForm.MASK, _sources(value)))
            elif operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
                flows += self._vector(operand, value)
            elif operand.bits:
                flows.append(Flow(first_cell(operand.bits), FlowForm.SCALAR, _sources(value)))
        for name in decoded.opcode.implicit_writes:
            flows.append(Flow(first_cell(special(name)), FlowForm.MASK, _sources(next(results))))
        return flows

    def _results(self, mask: int | None) -> tuple[Any, ...]:
        values = self._inputs(mask)
        if self.meaning is None:
            count = len(self.decoded.roles) + len(self.decoded.opcode.implicit_writes)
            flat = [part for v in values for part in (v if isinstance(v, tuple) else (v,))]
            return (self.ops.mix(64, *flat),) * count
        if "dpp" in self.decoded.encoding:
            index = own_inputs(self.decoded)
            values[index] = _permute(values[index])
        return evaluate(self.ops, self.meaning, self.decoded, values)

    def _inputs(self, mask: int | None) -> list[Any]:
        decoded = self.decoded
        modifiers = self.meaning.modifiers if self.meaning is not None else ()
        values: list[Any] = []
        source = -own_inputs(decoded)
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.access is OperandAccess.WRITE or role.kind is OperandKind.LABEL:
                continue
            if "neg_lo" in modifiers:
                operand = plain(operand)
            values.append(self._input(operand, role, source, mask))
            source += 1
        for name in decoded.opcode.implicit_reads:
            if name == "vcc":
                values.append(self._mask(first_cell(special(name)), mask))
            elif name != "exec":
                values.append(self._scalar(special(name), 32))
        values += [self.ops.const(modifier_value(decoded, name), 32) for name in modifiers]
        return values

    def _mask(self, cell: int, constant: int | None) -> Bits:
        if constant is not None:
            return self.ops.const(constant, 1)
        return Bits({UndefinedSource(cell, Reach.MASK): 1})

    def _input(self, operand: Operand, role: OperandRole, source: int, mask: int | None) -> Any:
        if operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
            reach = Reach.OWN if role.access is OperandAccess.READ else Reach.OLD
            return self._rows(operand, source, reach)
        if role.kind is OperandKind.LANE_MASK:
            return self._mask(first_cell(operand.bits), mask)
        bits = 32 * role.dwords if role.dwords else 32
        if operand.kind is OperandClass.CONSTANT:
            format_role = constant_role(self.decoded, role, source)
            return self.ops.const(constant_bits(operand, format_role, bits), bits)
        return self._scalar(operand.bits, bits)

    def _rows(self, operand: Operand, source: int, reach: Reach) -> Any:
        ops = self.ops
        first = operand.bits.bit_length() - operand.count
        rows = [_row(first + index, reach) for index in range(operand.count)]
        if len(rows) == 1:
            value = rows[0]
            if operand.half == "h":
                value = ops.lshr(value, ops.const(16, 32), 32)
            select = self.decoded.modifiers.get(f"src{source}_sel", "")
            return select_sdwa(ops, value, select, operand.sign_extend)
        return ops.join(*rows) if len(rows) == 2 else tuple(rows)

    def _scalar(self, registers: int, bits: int) -> Bits:
        ops = self.ops
        parts = []
        for cell in scalars(registers):
            constant = self.constants.get(cell)
            if constant is not None:
                parts.append(ops.const(constant, 32))
            else:
                parts.append(Bits({UndefinedSource(cell, Reach.UNIFORM): 0xFFFFFFFF}))
        if not parts:
            return ops.const(0, bits)
        if len(parts) == 1:
            return parts[0] if bits == 32 else ops.zero_extend(parts[0], 32, bits)
        return ops.join(parts[0], parts[1])

    def _vector(self, operand: Operand, value: Any) -> Iterator[Flow]:
        """The flows into an operand's registers."""
        ops = self.ops
        form = FlowForm.ONE_LANE if ops.writes_lane else FlowForm.LANES
        if _skips_lanes(self.decoded):
            form = FlowForm.PART
        first = operand.bits.bit_length() - operand.count
        for index in range(operand.count):
            position = first + index
            part = value
            if isinstance(value, tuple):
                part = value[index]
            elif operand.count > 1:
                part = ops.truncate(ops.lshr(value, ops.const(32 * index, 64), 64), 64, 32)
            part = insert_result(
                ops, self.decoded, operand, part, lambda at=position: _row(at, Reach.OLD)
            )
            for half in range(2):
                cell = 2 * position + half
                yield Flow(cell, form, _half_sources(part, half, _packs_bytes(self.decoded)))


def _skips_lanes(decoded: Decoded) -> bool:
    """Whether a permutation may leave active lanes as they are."""
    if "dpp" not in decoded.encoding:
        return False
    masks = (decoded.modifiers.get(name, "0xf") for name in ("row_mask", "bank_mask"))
    return "bound_ctrl" not in decoded.modifiers or any(int(mask, 0) != 0xF for mask in masks)


def _row(position: int, reach: Reach) -> Bits:
    """A vector register."""
    low, high = UndefinedSource(2 * position, reach), UndefinedSource(2 * position + 1, reach)
    return Bits({low: _HALF, high: _HALF << 16})


_PACKS: Final = ("_pk8_fp", "_pk8_bf8", "_pk16_fp6", "_pk16_bf6", "_pk32_fp6", "_pk32_bf6")
"""Parts of the names of conversions to blocks of small floats."""


def _packs_bytes(decoded: Decoded) -> bool:
    """Whether an instruction converts several registers to bytes or less: compilers use it for
    fewer values than it takes, and store single bytes of the result."""
    name = decoded.opcode.name
    return name.startswith("v_cvt_scalef32_") and any(part in name for part in _PACKS)


def _half_sources(value: Bits, upper: int, packed: bool) -> tuple[UndefinedSource, ...]:
    """What a half of a register depends on; of a `packed` one what its lower byte does.

    Where an instruction replaces a byte of it and keeps the other, the old value is left out: a
    half that is put together from bytes counts as written with the first.
    """
    half = _BYTE if packed else _HALF
    part = half << 16 if upper else half
    sources = []
    for source, mask in value.depends.items():
        if source.reach is Reach.OLD and mask & part == part:
            sources.append(UndefinedSource(source.cell, Reach.OWN))
        elif source.reach is not Reach.OLD and mask & part:
            sources.append(source)
    return tuple(dict.fromkeys(sources))


def _sources(value: Any) -> tuple[UndefinedSource, ...]:
    parts = value if isinstance(value, tuple) else (value,)
    sources = [source for part in parts for source in part.depends]
    return tuple(
        dict.fromkeys(
            UndefinedSource(s.cell, Reach.OWN) if s.reach is Reach.OLD else s for s in sources
        )
    )


def _permute(value: Any) -> Any:
    """A value that comes from the lane a fixed permutation names."""
    if isinstance(value, tuple):
        return tuple(_permute(part) for part in value)
    depends = {
        UndefinedSource(source.cell, Reach.PERMUTED) if source.reach is Reach.OWN else source: mask
        for source, mask in value.depends.items()
    }
    return Bits(depends, value.known, value.value)


__all__ = [
    "INACTIVE_CELL",
    "SCRATCH_CELL",
    "SCRATCH_CELLS",
    "VECTORS",
    "Flow",
    "FlowForm",
    "fetches",
    "first_cell",
    "halves",
    "matrix_flows",
    "memory_flows",
    "scalars",
    "vector_flows",
]
