"""A small saving of registers or LDS that would let another wave in."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavecast.analyze.result import NextStep
from wavecast.rules.changes import one_more_resident, simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import hot_loop_analyses
from wavecast.rules.padding_occupancy import costly_padding
from wavecast.rules.rates import placement
from wavecast.rules.wording import join_names, size

NAME = "occupancy-one-step-away"

SMALL_SHARE = 0.10
"""The saving counts as small up to this share of what is used now."""

LEAST_INCREASE = 1.25
"""The step must give at least this factor more waves: 4 to 5, but not 5 to 6."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    occupancy = subject.analysis.occupancy
    step = occupancy.next
    if step is None or not occupancy.fits or _is_full(subject):
        return
    steps = (step, *step.also)
    if any(item.delta > SMALL_SHARE * (item.target + item.delta) for item in steps):
        return
    if step.waves_per_simd < LEAST_INCREASE * occupancy.waves_per_simd:
        return
    if _is_saturated(subject) or _is_starved(subject):
        return
    if step.resource == "lds" and any(costly_padding(subject)):
        return
    advice = " ".join(dict.fromkeys(_advice(subject, item) for item in steps))
    pressure = subject.analysis.pressure
    location = pressure.peak_location if pressure is not None else None
    yield Finding(
        rule=NAME,
        severity="note",
        message=f"{join_names(_amount(item) for item in steps)} fewer would give "
        f"{step.waves_per_simd} waves per SIMD instead of {occupancy.waves_per_simd}",
        evidence="; ".join(_share(item) for item in steps),
        advice=advice,
        fixes=(simulated_fix(advice, one_more_resident),),
        location=location if step.resource == "vgpr" else subject.kernel_location,
    )


def _share(step: NextStep) -> str:
    usage = step.target + step.delta
    return (
        f"{step.resource.upper()} limits occupancy: {usage:,} used, {step.target:,} would do, "
        f"{100 * step.delta / usage:.0f}% less"
    )


def _is_full(subject: RuleInput) -> bool:
    """Whether the compiler already ran out of registers; asking for fewer would spill more."""
    registers = subject.analysis.registers
    most = placement(subject).vgpr_addressable
    return registers.spilled_vgpr > 0 or (registers.vgpr >= most and not registers.agpr)


def _is_saturated(subject: RuleInput) -> bool:
    """Whether the waves that fit already keep a pipe of every hot loop busy all the time.

    The cycles of a pipe are those of all resident waves; when they exceed what one wave needs from
    start to end of an iteration, another wave would only wait for the same pipe.
    """
    loops = [loop for loop in hot_loop_analyses(subject) if loop.cycles]
    return bool(loops) and all(
        loop.limiter == "matrix" and loop.cycles["matrix"] >= loop.critical_path for loop in loops
    )


def _is_starved(subject: RuleInput) -> bool:
    """Whether the launch has too few workgroups to fill the present workgroup slots."""
    if subject.launch is None:
        return False
    units = placement(subject).units
    slots = subject.analysis.occupancy.workgroups
    return units is not None and math.prod(subject.launch.grid) <= units * slots


def _amount(step: NextStep) -> str:
    if step.resource == "lds":
        return f"{size(step.delta)} of LDS"
    return f"{step.delta} {step.resource.upper()}{'' if step.delta == 1 else 's'}"


def _advice(subject: RuleInput, step: NextStep) -> str:
    triton = subject.code.origin == "triton"
    if step.resource == "lds":
        return (
            "Lower num_stages or BLOCK_K, or drop the padding of a shared tile."
            if triton
            else "Shrink a shared array or reuse it for the epilogue."
        )
    if subject.code.is_amd and triton:
        return (
            f"Try waves_per_eu={step.waves_per_simd}, which makes the compiler aim for "
            f"{step.target} registers, and check that it does not spill."
        )
    if subject.code.is_amd:
        return (
            f"Try __attribute__((amdgpu_waves_per_eu({step.waves_per_simd}))) or shorten live "
            "ranges at the pressure peak, and check that nothing spills."
        )
    return f"Try maxnreg={step.target} and check that nothing spills."


RULE = Rule(
    name=NAME,
    severity="note",
    title="Occupancy is one small step away",
    explanation=f"""\
Registers and LDS are given out in granules, so occupancy is a staircase: a kernel that uses a
few registers too many loses a whole wave on every SIMD, and with it a share of the latency the
hardware can hide.

Fires when the limiting resource must fall by at most {SMALL_SHARE:.0%} for at least
{LEAST_INCREASE - 1:.0%} more waves. Silent when every hot loop is bound by the matrix pipe
that the resident waves already keep busy, when registers are spilled already, and when the
launch has no workgroups to fill the new slots.""",
    check=_check,
)
