"""Hazards of RDNA 2 to 4: what `s_waitcnt_depctr`, a `v_nop` or an `s_nop` must keep apart.

Source: LLVM 23.1.1 GCNHazardRecognizer.cpp (named at each function) and GCNSubtarget.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wavecast.analyze.sync.hazards.code import HazardCode
from wavecast.analyze.sync.hazards.traits import (
    COMPARE_EXEC,
    DEALLOCATES,
    DENORM_MODE,
    DS,
    FLOAT_ATOMIC,
    MATRIX,
    NOP,
    PERMLANE,
    TRANS,
    VALU,
    VECTOR,
    VMEM,
    WAIT_ALU,
    WAITS,
    alu_wait,
)
from wavecast.analyze.sync.violation import Violation

_MOST_VALU: Final = 5
_MOST_TRANS: Final = 1
_ATOMIC_TO_MODE: Final = 3


def check(code: HazardCode) -> Iterator[Violation]:
    """Every hazard of an RDNA program, kind by kind."""
    if "valu_trans_use" in code.hazards and code.has & TRANS:
        yield from _transcendentals(code)
    if "wmma" in code.hazards and code.has & MATRIX:
        yield from _matrix(code)
    if "vcmpx_permlane" in code.hazards and code.has & COMPARE_EXEC:
        yield from _permutations(code)
    if "denorm_mode_after_atomic" in code.hazards and code.has & FLOAT_ATOMIC:
        yield from _denorm_modes(code)
    if "dealloc_vgprs_nop" in code.hazards and code.has & DEALLOCATES:
        yield from _deallocations(code)


def _denorm_modes(code: HazardCode) -> Iterator[Violation]:
    """checkFPAtomicToDenormModeHazard: three wait states, a vector instruction or a wait between an
    atomic operation on floats and s_denorm_mode."""
    for index in code.with_flags(DENORM_MODE):
        hits: list[tuple[int, int]] = []

        def step(states: int, position: int, hits: list[tuple[int, int]] = hits) -> int | None:
            flags = code.flags[position]
            if flags & FLOAT_ATOMIC:
                hits.append((states, position))
            if flags & (FLOAT_ATOMIC | VALU | WAITS):
                return None
            states += code.traits[position].states
            return states if states < _ATOMIC_TO_MODE else None

        code.paths_back(index, 0, step)
        if hits:
            states, cause = min(hits)
            why = "the mode of denormals after an atomic operation on floats"
            yield code.too_close(index, cause, 0, _ATOMIC_TO_MODE, states, why)


def _transcendentals(code: HazardCode) -> Iterator[Violation]:
    """fixVALUTransUseHazard: the result of a transcendental read by a vector instruction with at
    most 5 vector and 1 transcendental instructions in between; memory instructions wait."""
    near = _near_transcendentals(code)
    for index in code.with_flags(VALU):
        if near[index]:
            yield from _transcendental_use(code, index)


def _near_transcendentals(code: HazardCode) -> list[bool]:
    """Whether a transcendental result may still be on its way, by instruction: a cheap filter.

    A forward data flow of how many more vector instructions it takes until none can be.
    """
    blocks = code.program.blocks
    near = [False] * len(code.flags)
    entering = [0] * len(blocks)
    dirty = list(reversed(code.program.reverse_postorder))
    while dirty:
        block = blocks[dirty.pop()]
        window = entering[block.index]
        for index in range(block.start, block.stop):
            near[index] = window > 0
            flags = code.flags[index]
            if flags & TRANS:
                window = _MOST_VALU + 1
            elif flags & VALU:
                window -= 1
            elif flags & (VMEM | DS):
                window = 0
        for successor in block.successors:
            if window > entering[successor]:
                entering[successor] = window
                dirty.append(successor)
    return near


def _transcendental_use(code: HazardCode, index: int) -> Iterator[Violation]:
    sources = code.traits[index].sources
    if not sources:
        return
    causes: list[int] = []

    def step(between: tuple[int, int], position: int) -> tuple[int, int] | None:
        flags = code.flags[position]
        if not flags & (VALU | VMEM | DS | WAIT_ALU):
            return between
        if flags & (VMEM | DS) or (
            flags & WAIT_ALU and alu_wait(code.decoded_at(position), "va_vdst") == 0
        ):
            return None
        if flags & TRANS and code.traits[position].writes & sources:
            causes.append(position)
            return None
        vector = between[0] + bool(flags & VALU)
        transcendental = between[1] + bool(flags & TRANS)
        if vector > _MOST_VALU or transcendental > _MOST_TRANS:
            return None
        return vector, transcendental

    code.paths_back(index, (0, 0), step)
    if causes:
        cause = causes[0]
        registers = code.traits[cause].writes & sources
        yield code.is_unordered(
            index, cause, registers, "va_vdst", "s_waitcnt_depctr depctr_va_vdst(0)",
            "the transcendental unit works concurrently with the vector one",
        )  # fmt: skip


def _matrix(code: HazardCode) -> Iterator[Violation]:
    """fixWMMAHazards: A, B or the index of a matrix instruction is D of the one before, with no
    vector instruction in between. C is interlocked."""
    for index in code.with_flags(MATRIX):
        user = code.decoded_at(index)
        read = user.operands[1].bits | user.operands[2].bits
        shape = user.opcode.matrix
        if shape is not None and shape.sparse:
            read |= user.operands[3].bits
        for cause in _last_vector(code, index, VALU):
            registers = (
                code.flags[cause] & MATRIX and code.decoded_at(cause).operands[0].bits & read
            )
            if registers:
                yield code.is_unordered(
                    index, cause, registers & VECTOR, "VALU instructions", "v_nop",
                    "a matrix result as A, B or index of the next matrix instruction",
                )  # fmt: skip
                break


def _permutations(code: HazardCode) -> Iterator[Violation]:
    """fixVcmpxPermlaneHazards: v_cmpx and a permutation of lanes with no vector instruction but
    v_nop in between."""
    for index in code.with_flags(PERMLANE):
        for cause in _last_vector(code, index, VALU, but=NOP):
            if code.flags[cause] & COMPARE_EXEC:
                yield code.is_unordered(
                    index, cause, 0, "VALU instructions", "v_mov_b32",
                    "a permutation after v_cmpx",
                )  # fmt: skip
                break


def _deallocations(code: HazardCode) -> Iterator[Violation]:
    """GCNSubtarget.h, requiresNopBeforeDeallocVGPRs: the message that frees the registers needs an
    s_nop just before it."""
    for index in code.with_flags(DEALLOCATES):
        before: list[int] = []

        def step(_: int, position: int, before: list[int] = before) -> int | None:
            before.append(position)
            return None

        code.paths_back(index, 0, step)
        for cause in before:
            if not code.flags[cause] & NOP:
                yield code.is_unordered(
                    index, cause, 0, "wait states", "s_nop 0", "the message frees the registers"
                )
                break


def _last_vector(code: HazardCode, index: int, flags: int, but: int = 0) -> list[int]:
    """The last instructions with `flags` and none of `but` before `index`, one per path."""
    hits: list[int] = []

    def step(state: int, position: int) -> int | None:
        if code.flags[position] & flags and not code.flags[position] & but:
            hits.append(position)
            return None
        return state

    code.paths_back(index, 0, step)
    return hits


__all__ = ["check"]
