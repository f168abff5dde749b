"""Registers that did not fit and went to memory."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.rules.finding import Finding, Rule, Subject
from wavecast.rules.wording import at_line, count, lines, listed

NAME = "register-spills"


def _check(subject: Subject) -> Iterator[Finding]:
    registers = subject.analysis.registers
    scratch = [item for item in subject.analysis.memory if item.space == "scratch"]
    if not registers.spilled and not scratch:
        return
    in_loop = [item for item in scratch if item.loop is not None]
    pressure = subject.analysis.pressure
    location = pressure.peak_location if pressure is not None else None
    if location is None and scratch:
        location = (in_loop or scratch)[0].location
    yield Finding(
        rule=NAME,
        severity="warning" if in_loop else "note",
        message=_message(subject, in_loop),
        evidence=_evidence(subject, scratch, in_loop),
        advice=_advice(subject),
        location=location,
        instruction=(in_loop or scratch)[0].index if scratch else None,
    )


def _message(subject: Subject, in_loop: list[MemoryInstruction]) -> str:
    registers = subject.analysis.registers
    if registers.spilled:
        kinds = []
        if registers.spilled_vgpr:
            kinds.append(count(registers.spilled_vgpr, "VGPR"))
        if registers.spilled_sgpr:
            kinds.append(count(registers.spilled_sgpr, "SGPR"))
        what = f"{listed(kinds)} spilled"
    else:
        what = f"{registers.scratch_bytes} bytes per lane live in private memory"
    return f"{what}, also inside a loop" if in_loop else f"{what}, outside of loops"


def _evidence(
    subject: Subject, scratch: list[MemoryInstruction], in_loop: list[MemoryInstruction]
) -> str:
    registers = subject.analysis.registers
    facts = [f"{registers.scratch_bytes} bytes of scratch per lane"]
    if in_loop:
        places = lines(item.location for item in in_loop)
        facts.append(f"{count(len(in_loop), 'scratch instruction')} in loops ({places})")
    facts.append(f"{len(scratch) - len(in_loop)} outside of loops")
    pressure = subject.analysis.pressure
    if pressure is not None and pressure.peak_vgpr:
        facts.append(
            f"register pressure peaks at {pressure.peak_vgpr} VGPRs"
            + at_line(pressure.peak_location)
        )
    return "; ".join(facts)


def _advice(subject: Subject) -> str:
    options = subject.code.options
    waves = options.get("waves_per_eu")
    if isinstance(waves, int) and waves > 1:
        return (
            f"Remove waves_per_eu={waves}: it caps a wave at 1/{waves} of the register file. If it "
            "still spills, use a smaller tile or more warps per workgroup."
        )
    cap = options.get("maxnreg")
    if isinstance(cap, int):
        return f"Raise or remove maxnreg={cap}: the cap forces values to memory."
    if subject.code.origin == "triton":
        warps = options.get("num_warps")
        more = f" (now {warps})" if isinstance(warps, int) else ""
        return (
            f"Give each wave less to hold: raise num_warps{more} or shrink BLOCK_M or BLOCK_N, "
            "whose product divided by the threads is the accumulator registers of a lane; lower "
            "num_stages where tiles are staged in registers."
        )
    return (
        "Shorten live ranges at the peak line, hold fewer accumulators per thread, or relax the "
        "limit set by __launch_bounds__ or amdgpu_waves_per_eu; index private arrays with "
        "constants."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Registers spilled to memory",
    explanation="""\
A value that finds no register is stored to scratch (private memory behind the caches) and loaded
back: hundreds of cycles of latency per use, and memory traffic that nothing in the source shows.
In a loop it is paid every iteration.

Fires when the compiler spilled registers or the code accesses scratch; `warning` when that
happens inside a loop, `note` otherwise. Arrays indexed with run-time values live in scratch
too.""",
    check=_check,
)
