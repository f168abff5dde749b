"""Backward slices: the instructions that decide where control goes, or form an address."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.analyze.values.execute import passes_on
from wavecast.analyze.values.masks import partial_lanes
from wavecast.analyze.values.scratch import SLOT_BASE, ScratchDwords, scratch_slots
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import Control, MemoryEffect, MemoryKind, OperandKind, Space
from wavecast.isa.program import KernelDescriptor, Program
from wavecast.isa.registers import AGPRS, EXEC, VGPRS

# bound once: looking an enum member up costs ten times what comparing it does
_CONDITIONAL = Control.CONDITIONAL
_PERMUTE = MemoryKind.PERMUTE

ADDRESS_KINDS = (
    OperandKind.ADDRESS,
    OperandKind.SCALAR_ADDRESS,
    OperandKind.RESOURCE,
    OperandKind.OFFSET,
)
_SHARED = ~(VGPRS | AGPRS | -1 << SLOT_BASE)
"""Registers that all lanes share: all but vector registers and scratch dwords."""


@dataclass(frozen=True, slots=True)
class Slice:
    """`member[i]` is 1 for instructions of the slice; `needed[b]` the registers it reads from
    before block `b`; `results[i]` the registers of instruction `i` that something depends on."""

    member: bytearray
    needed: list[int]
    results: dict[int, int]


@dataclass(frozen=True, slots=True)
class Slices:
    """The slice of all decisions, the slice of all addresses, and the spills both follow.

    `traced[i]` is 1 for instructions of the slice of addresses, and for those that have one.
    """

    decisions: Slice
    addresses: Slice
    spills: dict[int, ScratchDwords]
    traced: bytearray


def slices(program: Program, descriptor: KernelDescriptor, follow_exec: bool = True) -> Slices:
    """Both slices of one kernel.

    Without `follow_exec` branches on EXEC do not count as decisions, and decisions assume that all
    lanes are active: a smaller slice, for kernels whose masks take too long to follow.
    """
    spills: dict[int, ScratchDwords] = {}
    by_text: dict[int, ScratchDwords | None] = {}
    decisions: dict[int, int] = {}
    addresses: dict[int, int] = {}
    for instruction in program.instructions:
        decoded = instruction.decoded
        if decoded.opcode.control is _CONDITIONAL and (follow_exec or not decoded.reads & EXEC):
            decisions[instruction.index] = decoded.reads
        if decoded.memory is None or _permutes(decoded.memory):
            continue
        key = id(decoded)
        if key not in by_text:
            by_text[key] = scratch_slots(decoded, descriptor)
        slots = by_text[key]
        if slots is not None:
            spills[instruction.index] = slots
        else:
            addresses[instruction.index] = address_registers(decoded)
    partial = bytes(partial_lanes(program, descriptor.wave_size))
    effects = _effects(program, partial, spills)
    address_slice = _slice(program, effects, partial, addresses)
    traced = bytearray(address_slice.member)
    for index in (*addresses, *spills):
        traced[index] = 1
    # what a vector load returns is unknown to a decision wherever it was loaded from
    for index in addresses:
        memory = program.instructions[index].decoded.memory
        if memory is not None and memory.space is not Space.SCALAR and not _permutes(memory):
            reads, writes, everywhere, kills, changes_exec = effects[index]
            effects[index] = reads & EXEC, writes, everywhere, kills, changes_exec
    if not follow_exec:
        effects = [_without_exec(effect) for effect in effects]
    return Slices(_slice(program, effects, partial, decisions), address_slice, spills, traced)


def _permutes(memory: MemoryEffect) -> bool:
    """Moves values between lanes: LDS hardware, but no memory."""
    return memory.kind is _PERMUTE


def address_registers(decoded: Decoded) -> int:
    """The registers a memory instruction takes its address and its active lanes from."""
    bits = decoded.reads & EXEC
    if decoded.opcode.form in ("SMEM", "TENSOR"):
        return decoded.reads
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.kind in ADDRESS_KINDS:
            bits |= operand.bits
    return bits


Effect = tuple[int, int, int, int, bool]
"""Registers read, written, overwritten in every lane, overwritten in the active lanes; whether EXEC
is written."""


def _effects(program: Program, partial: bytes, spills: dict[int, ScratchDwords]) -> list[Effect]:
    """The effect of every instruction; `partial` says where lanes may be switched off before it.

    An instruction whose results are unknown whatever it reads depends on nothing but EXEC.
    """
    effects: list[Effect] = []
    modelled: dict[int, bool] = {}
    for instruction in program.instructions:
        decoded = instruction.decoded
        reads, writes, kills = decoded.reads, decoded.writes, decoded.kills
        slots = spills.get(instruction.index)
        if slots is not None and slots.load:
            reads |= slots.bits
        elif slots is not None:
            writes |= slots.bits
            kills |= slots.bits
        elif decoded.memory is None or _permutes(decoded.memory):
            key = id(decoded)
            if key not in modelled:
                modelled[key] = passes_on(decoded)
            if not modelled[key]:
                reads &= EXEC
        everywhere = kills & _SHARED if partial[instruction.index] else kills
        effects.append((reads, writes, everywhere, kills, bool(writes & EXEC)))
    return effects


def _without_exec(effect: Effect) -> Effect:
    reads, writes, everywhere, kills, changes_exec = effect
    return reads & ~EXEC, writes, everywhere, kills, changes_exec


def _slice(program: Program, effects: list[Effect], partial: bytes, seeds: dict[int, int]) -> Slice:
    """What the seeds (instruction -> registers) depend on.

    Two sets flow backwards: registers needed in the lanes that are active, and registers needed in
    lanes that are not. A write under a partial EXEC settles only the former; where EXEC was widened
    afterwards, what is needed there is needed in both.
    """
    blocks = program.blocks
    member = bytearray(len(effects))
    results: dict[int, int] = {}
    needs = [(0, 0)] * len(blocks)
    leaving: list[tuple[int, int] | None] = [None] * len(blocks)
    pending = list(program.reverse_postorder)
    queued = set(pending)
    seed_at = [0] * len(effects)
    for position, registers in seeds.items():
        seed_at[position] = registers
    while pending:
        index = pending.pop()
        queued.discard(index)
        block = blocks[index]
        need = outside = 0
        for successor in block.successors:
            need |= needs[successor][0]
            outside |= needs[successor][1]
        if (need, outside) == leaving[index]:
            continue
        leaving[index] = need, outside
        for position in range(block.stop - 1, block.start - 1, -1):
            reads, writes, everywhere, kills, changes_exec = effects[position]
            if changes_exec:
                if partial[position]:
                    outside |= need
                else:
                    need, outside = need | outside, 0
            live_writes = writes & (need | outside)
            if live_writes:
                member[position] = 1
                results[position] = results.get(position, 0) | live_writes
                need = (need & ~kills) | reads
                outside &= ~everywhere
            need |= seed_at[position]
        if (need, outside) != needs[index]:
            needs[index] = need, outside
            changed = [p for p in block.predecessors if p not in queued]
            pending += changed
            queued.update(changed)
    return Slice(member, [need | outside for need, outside in needs], results)
