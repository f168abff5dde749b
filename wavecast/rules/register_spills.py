"""Registers that did not fit and went to memory."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.isa.instruction import OperandClass, SourceLocation
from wavecast.isa.opcode import OperandKind
from wavecast.rules.changes import free, simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix
from wavecast.rules.loops import body_instructions, hot_loops, of_class
from wavecast.rules.rates import placement
from wavecast.rules.settings import more_warps, without_caps
from wavecast.rules.tiles import other_blocks
from wavecast.rules.wording import at_line, count, join_names, lines

NAME = "register-spills"

LANE_MOVES = 4
"""Moves between SGPRs and VGPR lanes per iteration from which on SGPR spills are worth a note."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    scratch = [item for item in subject.analysis.memory if _is_scratch(subject, item)]
    if not scratch:
        yield from _scalar_spills(subject)
        return
    in_loop = [item for item in scratch if item.loop is not None]
    pressure = subject.analysis.pressure
    location = pressure.peak_location if pressure is not None else None
    if location is None and scratch:
        location = (in_loop or scratch)[0].location
    advice = _advice(subject)
    yield Finding(
        rule=NAME,
        severity="warning" if in_loop else "note",
        message=_message(subject, in_loop),
        evidence=_evidence(subject, scratch, in_loop),
        advice=advice,
        fixes=tuple(_fixes(subject, advice, scratch)),
        location=location or subject.kernel_location,
        locations=_locations(subject, location, in_loop),
        instruction=(in_loop or scratch)[0].index if scratch else None,
    )


def _locations(
    subject: RuleInput, peak: SourceLocation | None, in_loop: list[MemoryInstruction]
) -> tuple[SourceLocation, ...]:
    """Where the pressure peaks, the loops it is in, and where a loop accesses scratch."""
    loops = [loop.location for loop in hot_loops(subject)] if in_loop else []
    locations = (peak, *loops, *(item.location for item in in_loop))
    return tuple(dict.fromkeys(location for location in locations if location is not None))


def _is_scratch(subject: RuleInput, item: MemoryInstruction) -> bool:
    """Whether an access is to private memory.

    gfx90a reaches it through a buffer descriptor and no address of the lane's own: `off`, which
    no access to a tensor has.
    """
    if item.space != "buffer":
        return item.space == "scratch"
    instruction = subject.program.instructions[item.index]
    own_address = any(
        role.kind is OperandKind.ADDRESS and operand.kind is not OperandClass.OFF
        for role, operand in zip(instruction.opcode.operands, instruction.operands, strict=False)
    )
    return subject.analysis.registers.scratch_bytes > 0 and not own_address


def _scalar_spills(subject: RuleInput) -> Iterator[Finding]:
    """SGPRs spill to lanes of a VGPR; that costs instructions, no memory."""
    spilled = subject.analysis.registers.spilled_sgpr
    if not spilled:
        return
    for loop in hot_loops(subject):
        body = body_instructions(subject.program, loop)
        moves = [item for item in body if item.opcode.cost_class == "valu_lane"]
        if len(moves) < LANE_MOVES:
            continue
        yield Finding(
            rule=NAME,
            severity="note",
            message=f"{count(spilled, 'SGPR')} spilled to VGPR lanes, also inside a loop",
            evidence=f"{count(len(moves), 'lane move')} of {len(body):,} instructions in the loop"
            + at_line(loop.location),
            advice="Keep fewer uniform values alive across the loop: fewer pointer and stride "
            "arguments, constants (tl.constexpr) for those that do not change.",
            location=moves[0].location or loop.location,
            instruction=moves[0].index,
        )


def _message(subject: RuleInput, in_loop: list[MemoryInstruction]) -> str:
    registers = subject.analysis.registers
    if registers.spilled or registers.spilled_sgpr:
        kinds = []
        if registers.spilled_vgpr:
            kinds.append(
                count(registers.spilled_vgpr, "VGPR" if subject.code.is_amd else "register")
            )
        if registers.spilled_sgpr:
            kinds.append(count(registers.spilled_sgpr, "SGPR"))
        what = f"{join_names(kinds)} spilled"
    else:
        what = f"{registers.scratch_bytes} bytes per lane live in private memory"
    return f"{what}, also inside a loop" if in_loop else f"{what}, outside of loops"


def _evidence(
    subject: RuleInput, scratch: list[MemoryInstruction], in_loop: list[MemoryInstruction]
) -> str:
    registers = subject.analysis.registers
    facts = [f"{registers.scratch_bytes:,} bytes of scratch per lane"]
    if in_loop:
        where = lines(item.location for item in in_loop)
        where = f" ({where})" if where else ""
        facts.append(f"{count(len(in_loop), 'scratch instruction')} in loops{where}")
    facts.append(f"{len(scratch) - len(in_loop)} outside of loops")
    pressure = subject.analysis.pressure
    if pressure is not None and pressure.peak_vgpr:
        facts.append(
            f"register pressure peaks at {pressure.peak_vgpr} VGPRs"
            + at_line(pressure.peak_location)
        )
    return "; ".join(facts)


def _fixes(subject: RuleInput, advice: str, scratch: list[MemoryInstruction]) -> Iterator[Fix]:
    """Without the limit that causes them, with more warps, or simulated without scratch and
    without the lanes of VGPRs that SGPRs spill to."""
    yield from without_caps(subject, advice)
    if not _workgroup_fills_file(subject):
        yield from more_warps(subject)
    yield from other_blocks(subject, smaller=True, why=": each wave holds less")
    moves = of_class(subject.program, "valu_lane")
    yield simulated_fix(advice, free, (*(item.index for item in scratch), *moves))


def _advice(subject: RuleInput) -> str:
    options = subject.code.options
    waves, cap = options.get("waves_per_eu"), options.get("maxnreg")
    if isinstance(waves, int) and _caps_registers(subject, waves):
        return (
            f"Remove waves_per_eu={waves}: it caps a wave at 1/{waves} of the register file. If it "
            "still spills, use a smaller tile."
        )
    if isinstance(cap, int):
        return f"Raise or remove maxnreg={cap}: the cap forces values to memory."
    if subject.code.origin != "triton":
        return (
            "Shorten live ranges at the peak line, hold fewer accumulators per thread, or relax "
            "the limit set by __launch_bounds__ or amdgpu_waves_per_eu; index private arrays with "
            "constants."
        )
    if _workgroup_fills_file(subject):
        return (
            f"The {subject.analysis.occupancy.waves_per_workgroup} waves of a workgroup share the "
            "register file, so more warps would not help: shrink BLOCK_M or BLOCK_N (the "
            "accumulator), or BLOCK_K and num_stages where tiles are staged in registers."
        )
    warps = options.get("num_warps")
    more = f" (now {warps})" if isinstance(warps, int) else ""
    return (
        f"Give each wave less to hold: raise num_warps{more}, or shrink BLOCK_M or BLOCK_N, whose "
        "product divided by the threads is the accumulator registers of a lane."
    )


def _caps_registers(subject: RuleInput, waves: int) -> bool:
    """Whether room for this many waves per SIMD leaves a wave fewer registers than it can use."""
    limits = placement(subject)
    most = limits.vgpr_total if limits.unified_agpr else limits.vgpr_addressable
    return waves > 1 and limits.vgpr_total // waves < most


def _workgroup_fills_file(subject: RuleInput) -> bool:
    """Whether a wave has every register that the other waves of its workgroup leave free."""
    limits = placement(subject)
    together = -(-subject.analysis.occupancy.waves_per_workgroup // limits.simds)
    registers = subject.analysis.registers
    vgprs = registers.vgpr + registers.agpr if limits.unified_agpr else registers.vgpr
    return together > 1 and vgprs + limits.vgpr_granule > limits.vgpr_total // together


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Registers spilled to memory",
    explanation="""\
A value that finds no register is stored to scratch (private memory behind the caches) and loaded
back: hundreds of cycles of latency per use, and memory traffic that nothing in the source shows.
In a loop it is paid every iteration.

Fires when the code accesses scratch (VGPRs that CDNA spills to AGPRs cost copies instead, see
accumulator-copies); `warning` when that happens inside a loop, `note` otherwise. Arrays
indexed with run-time values live in scratch too. Spilled SGPRs go to lanes of a VGPR; that is
a `note`, and only where a hot loop moves them back.""",
    check=_check,
)
