"""A straight run of lane-wise instructions as one loop over strips of lanes.

Scalar operands are taken when an instruction joins the run, so scalar code between the
instructions may continue. Within a strip values are forwarded from writer to reader; rows are
stored once at the end, under EXEC. Lane masks written in the run are gathered bit by bit over the
strips.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.emitter import Emitter
from wavecast.emulate.lower.frame import StripFrame, lane_shift, strip_mask
from wavecast.emulate.lower.vector import (
    InstructionInputs,
    gather_inputs,
    lane_outputs,
    write_outputs,
)
from wavecast.emulate.values import I64
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import OperandAccess, OperandKind
from wavecast.isa.registers import EXEC, SGPR_BASE, special

_SCALARS = ~((1 << SGPR_BASE) - 1)


@dataclass(frozen=True, slots=True)
class PendingInstruction:
    """One instruction of a run with its scalar inputs taken."""

    instruction: Instruction
    decoded: Decoded
    inputs: InstructionInputs
    second: PendingInstruction | None = None
    """The other half of a VOPD pair: both read before either writes."""


class LaneRun:
    """Collects instructions, then emits them."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.entries: list[PendingInstruction] = []
        self.masks = 0
        """Scalar registers the run writes as lane masks."""

    def accepts(self, decoded: Decoded) -> bool:
        """False when the instruction needs a mask of this run as a number."""
        numbers = decoded.reads & self.masks
        if not numbers:
            return True
        as_mask = 0
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.kind is OperandKind.LANE_MASK:
                as_mask |= operand.bits
        if "vcc" in decoded.opcode.implicit_reads:
            as_mask |= special("vcc")
        return not numbers & ~as_mask

    def blocks(self, decoded: Decoded) -> bool:
        """True when a scalar instruction must wait for the run."""
        registers = decoded.reads | decoded.writes
        return bool(registers & self.masks or decoded.writes & EXEC)

    def add(self, instruction: Instruction) -> None:
        decoded = instruction.decoded
        second = None
        if decoded.second is not None:
            other = decoded.second
            second = PendingInstruction(
                instruction, other, gather_inputs(self.emitter, other, self.masks)
            )
        inputs = gather_inputs(self.emitter, decoded, self.masks)
        self.entries.append(PendingInstruction(instruction, decoded, inputs, second))
        self.masks |= decoded.writes & _SCALARS & ~EXEC if decoded.writes else 0
        self.masks |= decoded.writes & EXEC

    def emit(self) -> None:
        emitter = self.emitter
        builder = emitter.builder
        lanes, strip = emitter.layout.lanes, emitter.input.strip
        whole = emitter.exec_mask()
        written = _masks_written(self.entries)
        splats: dict[int, tuple[Any, Any]] = {}
        prepared = [
            [(part.decoded, part.inputs.prepare(builder, strip, splats)) for part in _parts(entry)]
            for entry in self.entries
        ]
        full = builder.icmp_unsigned("==", whole, ir.Constant(whole.type, -1))
        before = builder.block
        body = builder.append_basic_block("strip")
        after = builder.append_basic_block("done")
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(I64)
        index.add_incoming(I64(0), before)
        gathered = {key: builder.phi(ir.IntType(lanes)) for key in written}
        for value in gathered.values():
            value.add_incoming(ir.Constant(ir.IntType(lanes), 0), before)
        start = builder.mul(index, I64(strip))
        active = strip_mask(builder, whole, start, lanes, strip)
        frame = StripFrame(emitter, builder, start, strip, active, full)
        for entry, parts in zip(self.entries, prepared, strict=True):
            try:
                outputs = [lane_outputs(frame, decoded, inputs) for decoded, inputs in parts]
                for (decoded, _), results in zip(parts, outputs, strict=True):
                    write_outputs(frame, decoded, results)
            except Unsupported as error:
                raise error.at(emitter.input.program, entry.instruction) from None
        frame.store_rows()
        for key, value in gathered.items():
            bits = builder.bitcast(builder.and_(frame.masks[key], active), ir.IntType(strip))
            wide = builder.zext(bits, ir.IntType(lanes)) if strip < lanes else bits
            lane_mask = builder.shl(wide, lane_shift(builder, start, lanes))
            value.add_incoming(builder.or_(value, lane_mask), builder.block)
            frame.masks[key] = builder.or_(value, lane_mask)
        following = builder.add(index, I64(1))
        index.add_incoming(following, builder.block)
        last = builder.icmp_unsigned("==", following, I64(lanes // strip))
        builder.cbranch(last, after, body)
        builder.position_at_end(after)
        for key in gathered:
            emitter.set_scalar_bits(key, frame.masks[key])


def _parts(entry: PendingInstruction) -> list[PendingInstruction]:
    return [entry] if entry.second is None else [entry, entry.second]


def _masks_written(entries: list[PendingInstruction]) -> list[int]:
    """First register position of every lane mask the run writes."""
    keys: dict[int, None] = {}
    for entry in entries:
        for key in mask_keys(entry.decoded):
            keys[key] = None
    return list(keys)


def mask_keys(decoded: Decoded) -> list[int]:
    """The first positions of the masks an instruction writes, operands then implicit ones."""
    keys = []
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if (
            role.access is OperandAccess.WRITE
            and role.kind is OperandKind.LANE_MASK
            and operand.bits
        ):
            keys.append(operand.bits.bit_length() - operand.bits.bit_count())
    for name in decoded.opcode.implicit_writes:
        bits = special(name)
        keys.append((bits & -bits).bit_length() - 1)
    return keys
