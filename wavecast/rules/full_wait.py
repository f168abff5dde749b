"""A loop that waits for the loads it has only just issued."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wavecast.analyze.charges import Charges
from wavecast.analyze.result import LoopAnalysis
from wavecast.arch import Device
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Role, Space
from wavecast.isa.program import Loop, Program
from wavecast.isa.waits import wait_counters
from wavecast.rules.finding import Finding, Rule, Subject
from wavecast.rules.loops import hot_loops, loop_analysis
from wavecast.rules.rates import bytes_per_clock
from wavecast.rules.wording import at_line, count, size

NAME = "full-wait-in-loop"

SHORTEST_LATENCY = 500
"""Clocks assumed from load to data where no measurement of the device exists: a little below the
shortest main-memory latency measured on any device of the tables (A100: 520, MI210: 600)."""

_LOAD_COUNTERS = frozenset({"vmcnt", "loadcnt", "asynccnt", "tensorcnt"})
_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})
_LOADS = frozenset({MemoryKind.LOAD, MemoryKind.LOAD_TO_LDS})


@dataclass(frozen=True, slots=True)
class _Exposure:
    """A full wait, the youngest load it waits for, and the issue cycles of one wave in between."""

    wait: Instruction
    load: Instruction
    cycles: float


def _check(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    if program is None:
        return
    charges = Charges(subject.device, subject.device.wave_lanes)
    for loop in hot_loops(program):
        analysis = loop_analysis(subject, loop)
        exposure = _worst(program, loop, charges)
        if analysis is None or exposure is None:
            continue
        latency, source = _latency(subject.device)
        hidden = exposure.cycles + _others(analysis)
        if hidden >= latency or _keeps_memory_busy(subject, analysis, latency):
            continue
        yield _finding(subject, loop, analysis, exposure, (latency, source, hidden))


def _worst(program: Program, loop: Loop, charges: Charges) -> _Exposure | None:
    """The full wait that follows its youngest load most closely; None when there is none."""
    order = [
        instruction
        for block in program.reverse_postorder
        if block in loop.blocks
        for instruction in program.block_instructions(block)
    ]
    found: _Exposure | None = None
    for position, instruction in enumerate(order):
        if not _waits_for_all_loads(instruction, program.target):
            continue
        exposure = _exposure(order, position, program.target, charges)
        if exposure is not None and (found is None or exposure.cycles < found.cycles):
            found = exposure
    return found


def _exposure(
    order: list[Instruction], position: int, target: str, charges: Charges
) -> _Exposure | None:
    """Walk back from a wait, around the loop, to the youngest load before it."""
    cycles = 0.0
    for step in range(1, len(order)):
        earlier = order[position - step]
        if _waits_for_all_loads(earlier, target):
            return None
        memory = earlier.memory
        if memory is not None and memory.space in _GLOBAL and memory.kind in _LOADS:
            return _Exposure(order[position], earlier, cycles)
        cycles += charges.of(earlier.decoded).cycles
    return None


def _waits_for_all_loads(instruction: Instruction, target: str) -> bool:
    if instruction.opcode.role is not Role.WAIT:
        return False
    counters = wait_counters(instruction, target)
    return any(value == 0 for name, value in counters.items() if name in _LOAD_COUNTERS)


def _others(loop: LoopAnalysis) -> float:
    """Cycles the other waves of the SIMD can fill while one waits: their share of an iteration."""
    waves = loop.waves_per_simd
    if waves < 2 or not loop.cycles:
        return 0.0
    return max(loop.cycles.values()) * (waves - 1) / waves


def _latency(device: Device) -> tuple[float, str]:
    """Main-memory latency in clocks and where it is from."""
    measured = device.get("lat_dram")
    if isinstance(measured, (int, float)):
        return float(measured), f"measured on {device.name}"
    return SHORTEST_LATENCY, "assumed, none is published for this device"


def _keeps_memory_busy(subject: Subject, loop: LoopAnalysis, latency: float) -> bool:
    """Whether the resident waves together have enough bytes in flight (Little's law).

    A device that moves B bytes per clock with a latency of L clocks is busy with B * L bytes
    outstanding; each wave has the loads of one iteration.
    """
    rate = bytes_per_clock(subject.device)
    if rate is None:
        return False
    in_flight = loop.bytes_global * loop.waves_per_simd * subject.device.simds_per_cu
    return in_flight >= rate * latency


def _finding(
    subject: Subject,
    loop: Loop,
    analysis: LoopAnalysis,
    exposure: _Exposure,
    numbers: tuple[float, str, float],
) -> Finding:
    latency, source, hidden = numbers
    matrix = analysis.matrix_density > 0
    return Finding(
        rule=NAME,
        severity="warning" if matrix else "note",
        message=f"the loop{at_line(loop.location)} waits for loads right after issuing them",
        evidence=f"{exposure.cycles:.0f} cycles of work between the last load and the wait for all "
        f"loads; with {count(analysis.waves_per_simd, 'wave')} per SIMD {hidden:.0f} of about "
        f"{latency:.0f} clocks of memory latency are covered ({source}), and an iteration has only "
        f"{size(analysis.bytes_global)} per wave in flight",
        advice=_advice(subject, matrix),
        location=exposure.wait.location or loop.location,
        instruction=exposure.wait.index,
    )


def _advice(subject: Subject, matrix: bool) -> str:
    if subject.code.origin != "triton":
        return (
            "Load the next iteration's data into a second set of registers (or LDS buffer) before "
            "computing on this one's, so that the wait is for older loads only."
        )
    if matrix:
        stages = subject.code.options.get("num_stages")
        now = f" (now {stages})" if isinstance(stages, int) else ""
        return (
            f"Use num_stages of 2 or more{now} so that the next tile is loaded during the dots; "
            "if it is set already, see num-stages-no-effect. More resident waves hide it too."
        )
    return (
        "Give a wave more to load at once: a larger block, or tl.range(…, num_stages=2) or "
        "unrolling so that several iterations' loads are in flight; more resident waves hide it "
        "too."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Full wait on fresh loads in a loop",
    explanation=f"""\
`s_waitcnt vmcnt(0)` waits for every outstanding load. When the youngest was issued just before
it, nothing is prefetched: each iteration stands still for a trip to memory, unless other waves
fill the gap.

Looked at is the work between the youngest load and the wait, plus what the other resident
waves have to do meanwhile, against the device's memory latency (measured; {SHORTEST_LATENCY}
clocks where no measurement is published). Also silent when all resident waves together have
enough bytes in flight to keep memory busy (bandwidth x latency). `warning` with matrix
instructions in the loop, `note` otherwise.""",
    check=_check,
)
