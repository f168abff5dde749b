"""What the upper 32 lanes of a wave do, where code may take 32 lanes for granted.

Native code logs, on waves of 64 lanes: votes of lanes 32 to 63 in compares whose mask is read as a
number, values of these lanes that a shuffle may move, and vector code that they execute. Records at
sites that `analyze/lanes` finds in the LLVM IR of the kernel become reports; others mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from llvmlite import ir

from wavecast.analyze.lanes.assumption import Assumption, LaneAssumption, one_per_mistake
from wavecast.analyze.lanes.assumptions import assumptions, is_wide
from wavecast.analyze.lanes.masks import mask_sites
from wavecast.analyze.lanes.positions import instructions_at, location_of
from wavecast.analyze.lanes.words import WORDS
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check import log
from wavecast.emulate.check.log import CheckRecord
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.sites import data_rows
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.values import I32, constant, load
from wavecast.isa.instruction import Decoded, Instruction, Operand
from wavecast.isa.opcode import VECTOR_FORMS, OperandAccess, OperandKind
from wavecast.isa.program import Kernel, Program
from wavecast.isa.registers import EXEC

_LANES: Final = 64
_UPPER: Final = 0xFFFFFFFF_00000000
_NEUTRAL: Final = (
    *(0, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF),  # integers: sum, extremes, and
    *(0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF),  # floats: infinities, the largest
    *(0x7C00, 0xFC00, 0x7F80, 0xFF80),  # infinities of 16 bits
)
"""What lanes have that add nothing to a reduction."""
_VOTES = frozenset({Assumption.VOTES, Assumption.ALL_VOTES, Assumption.GROUP_VOTES})
_EXECUTED = frozenset({Assumption.SHIFT, Assumption.MASK, Assumption.LEADER})
"""Sites where it is enough that upper lanes execute them."""
_NUMBERS = frozenset({OperandKind.SOURCE, OperandKind.SCALAR, OperandKind.SCALAR_SOURCE})


class UpperLaneChecks(Observer):
    """Logs what the upper lanes of waves of 64 do."""

    def __init__(self, kernel: Kernel) -> None:
        is_wide = kernel.descriptor.wave_size == _LANES
        self._votes = frozenset(_voting(kernel.program)) if is_wide else frozenset[int]()
        self._shuffles = frozenset(_shuffles(kernel.program)) if is_wide else frozenset[int]()
        self._firsts = frozenset(_firsts(kernel.program).values()) if is_wide else frozenset[int]()

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if instruction.index in self._firsts:
            self._log(emitter, instruction, emitter.exec_mask())
        elif instruction.index in self._shuffles:
            emitter.pending.settle()
            lanes = emitter.builder.and_(_values(emitter, instruction.decoded), emitter.exec_mask())
            self._log(emitter, instruction, lanes)

    def after(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if instruction.index in self._votes:
            emitter.pending.settle()
            mask = instruction.decoded.operands[0]
            first = mask.bits.bit_length() - mask.bits.bit_count()
            self._log(emitter, instruction, emitter.scalar_bits(first, 2))

    def _log(self, emitter: WaveEmitter, instruction: Instruction, lanes: Any) -> None:
        builder = emitter.builder
        upper: Any = builder.and_(lanes, lanes.type(_UPPER))
        with builder.if_then(builder.icmp_unsigned("!=", upper, upper.type(0)), likely=False):
            log.emit(emitter, Kind.ASSUMES_32_LANES, instruction.index, lanes=upper)


def _values(emitter: WaveEmitter, decoded: Decoded) -> Any:
    """The lanes (i64) whose value a shuffle may move is not one of `_NEUTRAL`."""
    builder = emitter.builder
    rows = data_rows(emitter, decoded.operands[2])
    value = load(builder, rows, ir.VectorType(I32, _LANES))
    some: Any = None
    for word in _NEUTRAL:
        other = builder.icmp_unsigned("!=", value, constant(word, 32, _LANES))
        some = other if some is None else builder.and_(some, other)
    return builder.bitcast(some, ir.IntType(_LANES))


def _shuffles(program: Program) -> Iterator[int]:
    for instruction in program.instructions:
        decoded = instruction.decoded
        if decoded.memory is not None and decoded.opcode.memory_form.exchange == "bpermute":
            yield instruction.index


def _voting(program: Program) -> Iterator[int]:
    """The compares whose mask something reads as a number: a half of it, or all for a result of
    one register."""
    numbers = 0
    for instruction in program.instructions:
        decoded = instruction.decoded
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            is_read = role.access is not OperandAccess.WRITE and role.kind in _NUMBERS
            if is_read and (operand.bits.bit_count() == 1 or _narrow(decoded)):
                numbers |= operand.bits
    for instruction in program.instructions:
        mask = _mask_of(instruction.decoded)
        if mask is not None and mask.bits & numbers:
            yield instruction.index


def _narrow(decoded: Decoded) -> bool:
    """Whether all results of an instruction are single registers, not pairs."""
    written = [
        operand.bits.bit_count()
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.access is not OperandAccess.READ
    ]
    return max(written, default=1) == 1


def _mask_of(decoded: Decoded) -> Operand | None:
    """The lane mask a compare writes; None for another instruction and for EXEC."""
    if decoded.opcode.form not in VECTOR_FORMS or not decoded.roles:
        return None
    role, operand = decoded.roles[0], decoded.operands[0]
    is_mask = role.kind is OperandKind.LANE_MASK and role.access is OperandAccess.WRITE
    return operand if is_mask and operand.bits.bit_count() == 2 else None


def _firsts(program: Program) -> dict[int, int]:
    """Instruction -> the first vector instruction that the same lanes execute, in its block.
    Compares are left out, which may have another record."""
    firsts: dict[int, int] = {}
    for block in program.blocks:
        run: list[int] = []
        first: int | None = None
        for instruction in program.block_instructions(block.index):
            decoded = instruction.decoded
            run.append(instruction.index)
            is_vector = decoded.opcode.form in VECTOR_FORMS and _mask_of(decoded) is None
            if is_vector and first is None:
                first = instruction.index
            if decoded.writes & EXEC or instruction.index == block.stop - 1:
                firsts |= {} if first is None else dict.fromkeys(run, first)
                run, first = [], None
    return firsts


class LaneSites:
    """The sites of kernels that take 32 lanes for granted, by launch."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[int, int, int]], list[LaneAssumption]] = {}

    def reports(
        self, kernel: Kernel, launch: Launch, records: Sequence[CheckRecord]
    ) -> list[Report]:
        """The sites at which records tell that upper lanes took part, as reports."""
        if not records:
            return []
        key = (launch.code.digest, launch.block)
        sites = self._known.get(key)
        if sites is None:
            text = launch.code.stages.get("llir", "")
            text = text if isinstance(text, str) and launch.code.origin == "hip" else ""
            sites = assumptions(text, launch.code.kernel, kernel.descriptor, launch.block)
            if text and is_wide(kernel.descriptor, launch.block):
                sites += mask_sites(launch.code, kernel.program)
            self._known[key] = sites
        by_index = {record.instruction: record for record in records}
        program = kernel.program
        evidence = {site: _evidence(program, site, by_index) for site in sites}
        return [
            _report(program, launch, site, record)
            for site in one_per_mistake(site for site in sites if evidence[site] is not None)
            if (record := evidence[site]) is not None
        ]


def _evidence(
    program: Program, site: LaneAssumption, records: Mapping[int, CheckRecord]
) -> CheckRecord | None:
    """A record at a site."""
    if site.what is Assumption.SAME_ADDRESS:
        return None  # a race between lanes, where the results differ
    exact, near = instructions_at(program, site.position)
    indices: Iterator[int] = iter(())
    if site.what in _VOTES:
        indices = _voting(program)
    elif site.what not in _EXECUTED:
        indices = _shuffles(program)
    logged = {*indices}
    logging = sorted(logged & {*(exact or near)})
    if not logging and site.of:
        logging = sorted(logged & {*instructions_at(program, site.of)[0]})
    if not logging and site.what in (*_EXECUTED, *_VOTES):
        firsts = _firsts(program)
        logging = [firsts[index] for index in (*exact, *near) if index in firsts]
    return next((records[index] for index in logging if index in records), None)


def _report(program: Program, launch: Launch, site: LaneAssumption, record: CheckRecord) -> Report:
    at = program.instructions[record.instruction]
    exact, near = instructions_at(program, site.position)
    here = exact or near
    instruction = at if at.index in here or not here else program.instructions[here[0]]
    words = WORDS[site.what]
    return Report(
        kind=Kind.ASSUMES_32_LANES,
        kernel=program.name,
        target=program.target,
        message=f"{words.effect}. {words.advice}",
        instruction=instruction.index,
        text=instruction.decoded.text,
        location=location_of(program, site.position, launch.code.source),
        workgroup=launch.workgroup(record.workgroup),
        wave=record.wave,
        lanes=tuple(lane for lane in range(_LANES) if record.lanes >> lane & 1),
        count=record.count,
    )


__all__ = ["LaneSites", "UpperLaneChecks"]
