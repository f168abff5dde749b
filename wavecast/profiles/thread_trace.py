"""Thread traces: the cycles that waves of a launch were measured to spend at each instruction, next
to the simulated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from wavecast.isa.program import Program
from wavecast.perfmodel.launches import launch_timing
from wavecast.pipeline.explain.result import Explanation
from wavecast.profiles.profile import ThreadTrace, TracedInstruction
from wavecast.wording import count

_ENDS: Final = ("_e32", "_e64", "_sdwa", "_dpp")
"""Encodings that disassemblers add to a mnemonic or leave out."""


@dataclass(frozen=True, slots=True)
class InstructionCycles:
    """A traced instruction with its number in the code, and the cycles of one execution in the
    simulation; None where the code is not at hand or does not execute it."""

    number: int
    traced: TracedInstruction
    simulated: float | None = None


@dataclass(frozen=True, slots=True)
class TracedKernel:
    """A thread trace with the simulated cycles of its instructions, in the order of the code;
    `why_not` says why nothing is simulated, and is empty if it is."""

    trace: ThreadTrace
    instructions: tuple[InstructionCycles, ...]
    why_not: str = ""

    @property
    def longest(self) -> list[InstructionCycles]:
        """The instructions that a wave executed, those with the most cycles first."""
        executed = [
            instruction for instruction in self.instructions if instruction.traced.executions
        ]
        return sorted(executed, key=lambda instruction: -instruction.traced.spent)

    @property
    def cycles(self) -> int:
        """Cycles of all instructions together."""
        return sum(instruction.traced.spent for instruction in self.instructions)


def with_simulated(trace: ThreadTrace, explanation: Explanation | None) -> TracedKernel:
    """A trace next to the simulation of its launch."""
    alone = tuple(
        InstructionCycles(at, instruction) for at, instruction in enumerate(trace.instructions)
    )
    if explanation is None:
        return TracedKernel(trace, alone, "the code is not given (--code)")
    profile = explanation.predicted.profile
    if profile is None:
        return TracedKernel(trace, alone, explanation.predicted.why_not)
    different = _different(trace.instructions, profile.program)
    if different:
        whole = count(len(trace.instructions), "instruction")
        why = f"{different:,} of {whole} of the trace are not those of the code"
        return TracedKernel(trace, alone, why)
    unit = launch_timing(profile, explanation.device).unit
    stalls, executed = unit.stalls.sum(axis=1).tolist(), unit.counts.tolist()
    return TracedKernel(
        trace,
        tuple(
            replace(
                instruction, simulated=stalls[instruction.number] / executed[instruction.number]
            )
            if executed[instruction.number]
            else instruction
            for instruction in alone
        ),
    )


def _different(traced: Sequence[TracedInstruction], program: Program) -> int:
    """Instructions whose mnemonic is not that of the code at the same number."""
    code_mnemonics = [_plain(instruction.mnemonic) for instruction in program.instructions]
    trace_mnemonics = [_plain(instruction.text.split(" ", 1)[0]) for instruction in traced]
    return sum(
        1
        for at, name in enumerate(trace_mnemonics)
        if at >= len(code_mnemonics) or name != code_mnemonics[at]
    )


def _plain(mnemonic: str) -> str:
    for end in _ENDS:
        mnemonic = mnemonic.removesuffix(end)
    return mnemonic


__all__ = ["InstructionCycles", "TracedKernel", "with_simulated"]
