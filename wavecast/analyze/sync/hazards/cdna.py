"""Hazards of CDNA: dependences the hardware leaves to software.

An instruction is one wait state, `s_nop N` is N + 1. Sources: LLVM 23.1.1 GCNHazardRecognizer.cpp
and the section "Manually Inserted Wait States" of AMD's CDNA ISA documents; of gfx908, what LLVM
22's hazard recognizer inserts between pairs of instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.analyze.sync.hazards import matrix
from wavecast.analyze.sync.hazards.code import NEEDS_VECTOR_WRITES, HazardCode
from wavecast.analyze.sync.hazards.traits import (
    ACCUMULATOR,
    COMPARE_EXEC,
    DIV_FMAS,
    DOT,
    DPP,
    DS,
    F64_MATRIX,
    FMA64,
    GETREG,
    LANE_READ,
    LANE_WRITE,
    MATRIX,
    PART_WRITE,
    PERMLANE,
    READS_M0_LATE,
    RETURN_FROM_TRAP,
    SALU,
    SETREG,
    TRANS,
    VALU,
    VECTOR,
    VMEM,
    Traits,
)
from wavecast.analyze.sync.violation import Violation
from wavecast.isa.program import Block
from wavecast.isa.registers import AGPRS, EXEC, M0, VCC, VGPRS

Hits = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class HazardRule:
    """`user` must come `states` wait states after `producer` wrote registers that `uses` gives.

    `producer` and `user` are trait flags; an instruction with a flag of `not_producer` or
    `not_user` is exempt. The rule holds on targets that have `hazard`.
    """

    why: str
    producer: int
    user: int
    uses: Callable[[Traits], int]
    states: int
    hazard: str = "wait_states"
    not_producer: int = 0
    not_user: int = 0


def _scalars(item: Traits) -> int:
    return item.scalars


def _sources(item: Traits) -> int:
    return item.sources


def _vector_sources(item: Traits) -> int:
    return item.moved_registers


def _touched_registers(item: Traits) -> int:
    return item.sources | (item.writes & VECTOR)


def _exec(_: Traits) -> int:
    return EXEC


_RULES: Final = (
    HazardRule("a memory instruction reads an SGPR a vector instruction wrote",
        VALU, VMEM, _scalars, 5),
    HazardRule("DPP reads a VGPR a vector instruction wrote", VALU, DPP, _vector_sources, 2),
    HazardRule("DPP after a vector instruction wrote EXEC", VALU, DPP, _exec, 5),
    HazardRule("v_div_fmas reads VCC a vector instruction wrote", VALU, DIV_FMAS, lambda _: VCC, 4),
    HazardRule(
        "a lane is selected by an SGPR a vector instruction wrote",
        VALU, LANE_READ | LANE_WRITE, lambda item: item.lane_select, 4,
    ),
    HazardRule("M0 is read just after a scalar instruction wrote it",
         SALU, READS_M0_LATE, lambda _: M0, 1),
    HazardRule("a matrix instruction after a vector instruction wrote EXEC",
         VALU, MATRIX, _exec, 4, not_producer=MATRIX),
    HazardRule("a matrix instruction reads a register a vector instruction wrote",
         VALU, MATRIX, _sources, 2, "unified_sources", not_producer=MATRIX | DOT),
    HazardRule("a matrix instruction reads a VGPR a vector instruction wrote",
         VALU, MATRIX, lambda item: item.sources & VGPRS, 2, "separate_accumulators",
         not_producer=MATRIX),
    HazardRule("a matrix instruction multiplies an accumulation register that was written",
         ACCUMULATOR, MATRIX, lambda item: matrix.multiplicands(item.decoded) & AGPRS, 3,
         "separate_accumulators"),
    HazardRule("a matrix instruction adds to an accumulation register that was written",
         ACCUMULATOR, MATRIX, lambda item: matrix.accumulator(item.decoded) & AGPRS, 1,
         "separate_accumulators"),
    HazardRule("an accumulation register is read that was written",
         ACCUMULATOR, ACCUMULATOR, lambda item: item.sources & AGPRS, 3, "separate_accumulators"),
    HazardRule("a memory instruction reads a copy of an accumulation register",
         ACCUMULATOR, VMEM | DS, _sources, 2, "separate_accumulators"),
    HazardRule("the result of a transcendental is read", TRANS, VALU, _sources, 1,
         "trans_forwarding", not_user=TRANS),
    HazardRule("a result was placed in part of its register", PART_WRITE, VALU, _touched_registers,
    1,
         "dst_sel_forwarding"),
    HazardRule("a vector instruction reads an SGPR or VCC one wrote", VALU, VALU, _scalars, 2,
         "vdec_co_exec"),
    HazardRule("a lane of a VGPR is read that a vector instruction wrote",
         VALU, LANE_READ, _sources, 1, "vdec_co_exec"),
    HazardRule("a lane is read or written after a vector instruction wrote EXEC",
         VALU, LANE_READ | LANE_WRITE, _exec, 4, "vdec_co_exec"),
    HazardRule("a permutation after v_cmpx", COMPARE_EXEC, PERMLANE, _exec, 4,
         "vcmpx_permlane"),
    HazardRule("a permutation reads a VGPR a vector instruction wrote",
         VALU, PERMLANE, _sources, 2, "permlane_vgpr"),
)  # fmt: skip
_USERS: Final = VALU | VMEM | DS | READS_M0_LATE
_MODE_WINDOW: Final = 2
_DOT_STATES: Final = 3
_F64_AFTER_MATRIX: Final = 2
_STORE_STATES: Final = 2
_AFTER_F64: Final = FMA64 | VMEM | DS


def check(code: HazardCode) -> Iterator[Violation]:
    """Every hazard of a CDNA program, in program order, one per instruction."""
    checker = _Checker(code)
    after_f64 = _AFTER_F64 if code.has & F64_MATRIX else 0
    for block in code.program.blocks:
        checker.enter(block)
        for index in range(block.start, block.stop):
            flags = code.flags[index]
            if flags & _USERS:
                hits = checker.near(index)
                if hits or flags & after_f64:
                    violation = max(checker.of(index, hits), key=_missing, default=None)
                    if violation is not None:
                        yield violation
            elif flags & (SETREG | GETREG | RETURN_FROM_TRAP):
                yield from _hardware_registers(code, index)


def _matrix_reach(code: HazardCode) -> list[int]:
    """Per block for how many wait states from its start a matrix instruction before it matters."""
    blocks, wait_states = code.program.blocks, code.wait_states
    last = [-1] * len(blocks)
    for index in code.with_flags(MATRIX):
        last[code.block_of(index)] = index
    entering = [0] * len(blocks)
    dirty = list(reversed(code.program.reverse_postorder))
    while dirty:
        block = blocks[dirty.pop()]
        reach = entering[block.index] - (wait_states[block.stop] - wait_states[block.start])
        if last[block.index] >= 0:
            reach = matrix.WINDOW - (wait_states[block.stop] - wait_states[last[block.index] + 1])
        for successor in block.successors:
            if reach > entering[successor]:
                entering[successor] = reach
                dirty.append(successor)
    return entering


def _missing(violation: Violation) -> int:
    return violation.value


class _Checker:
    def __init__(self, code: HazardCode) -> None:
        self.code = code
        self.rules = [rule for rule in _RULES if rule.hazard in code.hazards]
        self.limits = {flags: self._limit(flags) for flags in set(code.flags)}
        self.entering = _matrix_reach(code) if code.has & MATRIX else [0] * len(code.starts)
        self.start = self.reach = 0

    def _limit(self, flags: int) -> int:
        """How many wait states back an instruction may depend on one that is not a
        matrix instruction."""
        limits = [rule.states for rule in self.rules if flags & rule.user & ~rule.not_user]
        if flags & VALU:
            limits.append(_STORE_STATES)
        if self.code.has & DOT:
            limits.append(_DOT_STATES)
        return max(limits, default=0)

    def enter(self, block: Block) -> None:
        """Continue with this block."""
        self.start = block.start
        self.reach = self.code.wait_states[block.start] + self.entering[block.index]

    def near(self, index: int) -> Hits:
        """What `index` may depend on: a long way back only where a matrix instruction can be."""
        code = self.code
        item = code.traits[index]
        limit = matrix.WINDOW if code.wait_states[index] < self.reach else self.limits[item.flags]
        if item.flags & MATRIX:
            self.reach = code.wait_states[index + 1] + matrix.WINDOW
        exposed = code.written if item.flags & NEEDS_VECTOR_WRITES else code.notable
        here, last = code.wait_states[index], max(exposed.previous[index] + 1, self.start)
        if here - code.wait_states[last] >= limit:
            return []
        return code.before(index, limit, item.touched, exposed)

    def of(self, index: int, hits: Hits) -> Iterator[Violation]:
        """Every hazard of one instruction."""
        code = self.code
        item = code.traits[index]
        yield from self._simple(index, item, hits)
        yield from self._overwritten_store(index, item, hits)
        yield from self._dot(index, item, hits)
        yield from self._matrix(index, item, hits)
        if code.has & F64_MATRIX:
            if item.flags & FMA64:
                yield from self._f64_after_matrix(index)
            if "f64_matrix_between" in code.hazards and item.flags & (VMEM | DS):
                yield from self._f64_between(index, item)

    def _simple(self, index: int, item: Traits, hits: Hits) -> Iterator[Violation]:
        flags = self.code.flags
        for rule in self.rules:
            if not item.flags & rule.user or item.flags & rule.not_user:
                continue
            uses = rule.uses(item)
            for cause, states in hits:
                if states >= rule.states:
                    break
                if not flags[cause] & rule.producer or flags[cause] & rule.not_producer:
                    continue
                registers = self.code.traits[cause].writes & uses
                if registers:
                    yield self.code.too_close(
                        index, cause, registers, rule.states, states, rule.why
                    )
                    break

    def _overwritten_store(self, index: int, item: Traits, hits: Hits) -> Iterator[Violation]:
        """Data of a store of more than two dwords is read a little after it issued (LLVM
        createsVALUHazard; a buffer store with an SGPR offset reads in time)."""
        if not item.flags & VALU:
            return
        least = _STORE_STATES if "late_store_data" in self.code.hazards else 1
        for cause, states in hits:
            stored = self.code.traits[cause]
            registers = stored.data & item.writes
            if registers and states < least and not stored.scalar_offset:
                why = "the store may not have read its data"
                yield self.code.too_close(index, cause, registers, least, states, why)
                return

    def _dot(self, index: int, item: Traits, hits: Hits) -> Iterator[Violation]:
        """The result of a dot product: only the same instruction may accumulate onto it, or
        overwrite it, at once."""
        if item.flags & MATRIX or "dot_result" not in self.code.hazards:
            return
        user = self.code.decoded_at(index)
        for cause, states in hits:
            if states >= _DOT_STATES:
                return
            if not self.code.flags[cause] & DOT:
                continue
            written = self.code.traits[cause].writes
            if self.code.decoded_at(cause).mnemonic == user.mnemonic:
                registers = written & _multiplicand_registers(self.code, index)
            else:
                registers = written & _touched_registers(item)
            if registers:
                why = "the result of a dot product"
                yield self.code.too_close(index, cause, registers, _DOT_STATES, states, why)
                return

    def _matrix(self, index: int, item: Traits, hits: Hits) -> Iterator[Violation]:
        """The nearest matrix instruction each register depends on; it waited for those before."""
        code = self.code
        dependences = _of_matrix if item.flags & MATRIX else _of_others
        settled = [0, 0, 0]
        for cause, states in hits:
            if not code.flags[cause] & MATRIX:
                continue
            for kind, (registers, least, why) in enumerate(dependences(code, index, cause)):
                registers &= ~settled[kind]
                settled[kind] |= registers
                if registers and states < least:
                    yield code.too_close(index, cause, registers, least, states, why)

    def _f64_after_matrix(self, index: int) -> Iterator[Violation]:
        near = self.code.before(index, _F64_AFTER_MATRIX, VECTOR, self.code.written)
        for cause, states in near:
            if self.code.flags[cause] & F64_MATRIX:
                why = "a double-precision FMA after a double-precision matrix instruction"
                yield self.code.too_close(index, cause, 0, _F64_AFTER_MATRIX, states, why)
                return

    def _f64_between(self, index: int, item: Traits) -> Iterator[Violation]:
        """With a double-precision matrix instruction between a vector instruction and a
        memory instruction that reads its result, the hardware forgets to wait."""
        near = self.code.before(index, _F64_AFTER_MATRIX, VECTOR, self.code.written)
        between = [states for cause, states in near if self.code.flags[cause] & F64_MATRIX]
        for cause, states in near:
            registers = self.code.traits[cause].writes & item.sources
            plain = self.code.flags[cause] & (VALU | MATRIX) == VALU
            if plain and registers and any(other < states for other in between):
                why = "with a double-precision matrix instruction in between"
                yield self.code.too_close(index, cause, registers, _F64_AFTER_MATRIX, states, why)
                return


Dependences = tuple[tuple[int, int, str], ...]
"""Registers, wait states needed, and why."""


def _of_matrix(code: HazardCode, index: int, cause: int) -> Dependences:
    """How matrix instruction `index` depends on matrix instruction `cause`."""
    user, producer, target = code.decoded_at(index), code.decoded_at(cause), code.target
    result = producer.operands[0].bits
    return (
        (
            matrix.multiplicands(user) & result,
            matrix.before_multiply(producer, target),
            "a matrix result as A or B",
        ),
        (
            matrix.accumulator(user) & result,
            matrix.before_accumulate(producer, user, target),
            "a matrix result as C",
        ),
    )


def _of_others(code: HazardCode, index: int, cause: int) -> Dependences:
    """How another instruction `index` depends on matrix instruction `cause`."""
    item, producer, target = code.traits[index], code.decoded_at(cause), code.target
    result = producer.operands[0].bits
    return (
        (
            item.sources & result,
            matrix.before_use(producer, target, memory=not item.flags & VALU),
            "a matrix result is read",
        ),
        (
            item.writes & result,
            matrix.before_overwrite(producer, target),
            "a matrix result is overwritten",
        ),
        (
            item.writes & matrix.accumulator(producer),
            matrix.before_accumulator_overwrite(producer, target),
            "C of a matrix instruction is overwritten",
        ),
    )


def _multiplicand_registers(code: HazardCode, index: int) -> int:
    """Source registers of a dot product but for its accumulator, the last operand."""
    bits = 0
    for operand in code.decoded_at(index).operands[1:3]:
        bits |= operand.bits
    return bits


def _hardware_registers(code: HazardCode, index: int) -> Iterator[Violation]:
    """s_setreg and what reads or writes the same hardware register (LLVM checkSetRegHazards,
    checkGetRegHazards, checkRFEHazards)."""
    item = code.traits[index]
    returns = item.flags & RETURN_FROM_TRAP
    least = 1 if returns else _MODE_WINDOW
    register = "HW_REG_TRAPSTS" if returns else item.register
    hits: list[tuple[int, int]] = []

    def step(states: int, position: int) -> int | None:
        other = code.traits[position]
        if other.flags & SETREG and other.register == register:
            hits.append((states, position))
            return None
        states += other.states
        return states if states < least else None

    code.paths_back(index, 0, step)
    if hits:
        states, cause = min(hits)
        yield code.too_close(index, cause, 0, least, states, "the same hardware register")


__all__ = ["check"]
