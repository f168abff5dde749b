"""A loop that waits for the loads it has only just issued."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from wavecast.analyze.charges import Charges
from wavecast.analyze.result import LoopAnalysis
from wavecast.arch import Device
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Role, Space
from wavecast.isa.program import Loop, Program
from wavecast.isa.waits import wait_counters
from wavecast.perfmodel.coefficients import coefficient
from wavecast.rules.changes import prefetch_loads, simulated_fix, unroll_loads
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.loops import body_analysis, hot_loops, loop_analysis
from wavecast.rules.rates import bytes_per_clock, placement
from wavecast.rules.triton_pipeline import dot_loops
from wavecast.rules.triton_stages import module, stage
from wavecast.rules.wording import at_line, count, size

NAME = "full-wait-in-loop"

_SHORTEST = {"lat_l2": "shortest_l2", "lat_dram": "shortest_hbm"}
"""Coefficients of `chips` where no measurement of the device exists."""

_LOAD_COUNTERS = frozenset({"vmcnt", "loadcnt", "asynccnt", "tensorcnt"})
_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})
_LOADS = frozenset({MemoryKind.LOAD, MemoryKind.LOAD_TO_LDS})


@dataclass(frozen=True, slots=True)
class _Exposure:
    """A full wait, the youngest load it waits for, and the issue cycles of one wave in between."""

    wait: Instruction
    load: Instruction
    cycles: float


def _check(subject: RuleInput) -> Iterator[Finding]:
    program = subject.program
    if not subject.code.is_amd:
        yield from _not_asynchronous(subject)
        return
    charges = Charges(subject.device, subject.device.wave_lanes)
    for loop in hot_loops(subject):
        whole = loop_analysis(subject, loop)
        exposure = _worst(program, loop, charges)
        if whole is None or exposure is None:
            continue
        analysis = _as_launched(subject, whole.body)
        hidden = exposure.cycles + _others(subject, _as_launched(subject, whole))
        if _is_slow(subject, analysis, hidden) or _not_pipelined(subject, analysis):
            yield _finding(subject, loop, analysis, exposure, hidden)


def _not_asynchronous(subject: RuleInput) -> Iterator[Finding]:
    """Loops with dots of an NVIDIA kernel that Triton was told not to pipeline: SASS waits by
    scoreboards, which the time of the launch has already."""
    for loop in hot_loops(subject):
        analysis = body_analysis(subject, loop)
        if analysis is None or not _not_pipelined(subject, analysis):
            continue
        advice = _pipeline_advice(subject)
        yield Finding(
            rule=NAME,
            severity="warning",
            message=f"the loop{at_line(loop.location)} waits for loads right after issuing them",
            evidence=f"num_stages={subject.code.options.get('num_stages')}: no tile is copied "
            "to shared memory ahead of the dots; a warp has "
            f"{size(analysis.bytes_global)} in flight per iteration",
            advice=advice,
            location=loop.location,
            fixes=tuple(
                Fix(
                    f"Use num_stages={stages}, so that tiles are copied during the dots.",
                    Recompiled(stage(subject, "ttir"), {"num_stages": stages}),
                    f"num_stages={stages}",
                )
                for stages in (3, 2)
            ),
        )


def _as_launched(subject: RuleInput, loop: LoopAnalysis) -> LoopAnalysis:
    """The loop with no more waves than the launch has for each SIMD."""
    limits = placement(subject)
    if subject.launch is None or limits.units is None:
        return loop
    occupancy = subject.analysis.occupancy
    waves = math.prod(subject.launch.grid) * occupancy.waves_per_workgroup
    most = max(1, -(-waves // (limits.units * limits.simds)))
    return replace(loop, waves_per_simd=min(loop.waves_per_simd, most))


def _not_pipelined(subject: RuleInput, loop: LoopAnalysis) -> bool:
    """Whether Triton was told not to pipeline a loop with matrix instructions."""
    stages = subject.code.options.get("num_stages")
    return loop.matrix_density > 0 and isinstance(stages, int) and stages < 2


def _is_slow(subject: RuleInput, loop: LoopAnalysis, hidden: float) -> bool:
    """Whether waves wait for memory although memory is not busy.

    Tiles of a matrix product are shared by workgroups and come from L2, mostly. A loop without
    matrix instructions streams from main memory; the memory is busy when the resident waves have
    bandwidth x latency bytes in flight (Little's law), each with the loads of one iteration.
    """
    if loop.matrix_density > 0:
        return hidden < _latency(subject.device, "lat_l2")[0]
    latency, _ = _latency(subject.device, "lat_dram")
    rate = bytes_per_clock(subject.device)
    in_flight = loop.bytes_global * loop.waves_per_simd * subject.device.simds_per_cu
    return hidden < latency and (rate is None or in_flight < rate * latency)


def _worst(program: Program, loop: Loop, charges: Charges) -> _Exposure | None:
    """The full wait that follows its youngest load most closely, both in no inner loop; None when
    there is none."""
    order: list[Instruction | None] = []
    for block in program.reverse_postorder:
        if block in loop.blocks:
            is_own = program.innermost_loop[block] == loop.index
            order += program.block_instructions(block) if is_own else [None]
    worst: _Exposure | None = None
    for position, instruction in enumerate(order):
        if instruction is None or not _waits_for_all_loads(instruction, program.target):
            continue
        exposure = _exposure(order, position, program.target, charges)
        if exposure is not None and (worst is None or exposure.cycles < worst.cycles):
            worst = exposure
    return worst


def _exposure(
    order: list[Instruction | None], position: int, target: str, charges: Charges
) -> _Exposure | None:
    """Walk back from a wait, around the loop, to the youngest load before it. An inner loop, None
    in `order`, takes the time that a load needs."""
    cycles = 0.0
    wait = order[position]
    for step in range(1, len(order)):
        earlier = order[position - step]
        if wait is None or earlier is None or _waits_for_all_loads(earlier, target):
            return None
        memory = earlier.memory
        if memory is not None and memory.space in _GLOBAL and memory.kind in _LOADS:
            return _Exposure(wait, earlier, cycles)
        cycles += charges.of(earlier.decoded).cycles
    return None


def _waits_for_all_loads(instruction: Instruction, target: str) -> bool:
    if instruction.opcode.role is not Role.WAIT:
        return False
    counters = wait_counters(instruction, target)
    return any(value == 0 for name, value in counters.items() if name in _LOAD_COUNTERS)


def _others(subject: RuleInput, loop: LoopAnalysis) -> float:
    """Cycles the other waves of a SIMD can fill while one waits: their share of an iteration.

    With a barrier in the loop, the waves of a workgroup wait together; only those of other
    workgroups fill the time.
    """
    occupancy = subject.analysis.occupancy
    together = -(-occupancy.waves_per_workgroup // placement(subject).simds)
    groups = loop.waves_per_simd // together if loop.barriers else loop.waves_per_simd
    if groups < 2 or not loop.cycles:
        return 0.0
    return max(loop.cycles.values()) * (groups - 1) / groups


def _latency(device: Device, name: str) -> tuple[float, str]:
    """A latency in clocks and where it is from."""
    measured = device.get(name)
    if isinstance(measured, (int, float)):
        return float(measured), f"measured on {device.name}"
    shortest = coefficient("chips", _SHORTEST[name]).of(device)
    return shortest, "assumed, none is published for this device"


def _finding(
    subject: RuleInput, loop: Loop, analysis: LoopAnalysis, exposure: _Exposure, hidden: float
) -> Finding:
    matrix = analysis.matrix_density > 0
    level = "L2" if matrix else "memory"
    latency, source = _latency(subject.device, "lat_l2" if matrix else "lat_dram")
    advice = _advice(subject, matrix)
    return Finding(
        rule=NAME,
        severity="warning" if matrix else "note",
        message=f"the loop{at_line(loop.location)} waits for loads right after issuing them",
        evidence=f"{exposure.cycles:.0f} cycles of work between the last load and the wait for all "
        f"loads; with {count(analysis.waves_per_simd, 'wave')} per SIMD {hidden:.0f} of about "
        f"{latency:.0f} clocks of {level} latency are covered ({source}); a wave has "
        f"{size(analysis.bytes_global)} in flight per iteration",
        advice=advice,
        fixes=_fixes(subject, advice, exposure.wait.index, matrix=matrix),
        location=exposure.wait.location or loop.location,
        locations=tuple(
            location for location in (exposure.wait.location, loop.location) if location is not None
        ),
        instruction=exposure.wait.index,
    )


def _fixes(subject: RuleInput, advice: str, wait: int, *, matrix: bool) -> tuple[Fix, ...]:
    """Pipelined by Triton where it is not; else simulated with the loads of earlier
    iterations outstanding: of one with matrix instructions, of three without."""
    stages, text = subject.code.options.get("num_stages"), stage(subject, "ttir")
    if isinstance(stages, int) and stages < 2 and text:
        return (Fix(advice, Recompiled(text, {"num_stages": 2}), "num_stages=2"),)
    return (simulated_fix(advice, prefetch_loads if matrix else unroll_loads, (wait,)),)


def _advice(subject: RuleInput, matrix: bool) -> str:
    if subject.code.origin != "triton":
        return (
            "Have the loads of several iterations in flight: unroll the loop by four with all "
            "loads first, or load the next iteration's data into a second set of registers (or "
            "LDS buffer) before computing on this one's."
        )
    if matrix:
        return _pipeline_advice(subject)
    return (
        "Give a wave more to load at once: a larger block, or tl.range(…, num_stages=2) or "
        "unrolling so that several iterations' loads are in flight; more resident waves hide it "
        "too."
    )


def _pipeline_advice(subject: RuleInput) -> str:
    """For a loop with a dot: pipeline it, or help the compiler keep the loads early."""
    stages, ir_module = subject.code.options.get("num_stages"), module(subject, "ttgir")
    loops = dot_loops(ir_module) if ir_module is not None else []
    if not isinstance(stages, int) or stages < 2:
        return (
            "Use num_stages=2 or more, so that the next tile is loaded during the dots. More "
            "resident workgroups hide the latency too."
        )
    if not any(loop.pipelined for loop in loops):
        return f"num_stages is {stages} but took no effect: see num-stages-no-effect."
    peak = subject.analysis.pressure.peak_vgpr if subject.analysis.pressure is not None else 0
    pressure = f" (the pressure peaks at {peak} VGPRs)" if peak else ""
    return (
        "Triton issues the loads ahead, but the compiler moved them down to where they are used, "
        f"as it does to save registers{pressure}: use a smaller tile or more warps, so that a tile "
        "in flight fits in registers with the accumulator, or a second resident workgroup."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Full wait on fresh loads in a loop",
    explanation="""\
`s_waitcnt vmcnt(0)` waits for every outstanding load. When the youngest was issued just before
it, nothing is prefetched: each iteration waits for the full memory latency, unless other waves
hide it.

Fires when the work between the youngest load and the wait, plus what the other resident waves
have to do meanwhile (only those of other workgroups when the loop has a barrier), does not
cover the latency: that of L2 for a loop with matrix instructions (`warning`), that of main
memory for another loop (`note`), unless the resident waves together have bandwidth times
latency bytes in flight. Latencies are measured ones; where none is published, 200 and 500
clocks. On NVIDIA targets, for loops with dots whose num_stages is below 2.""",
    check=_check,
)
