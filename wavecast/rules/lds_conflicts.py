"""LDS accesses of a hot loop whose lanes meet in the same banks."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.analyze.values.banks import phases
from wavecast.isa.opcode import Opcode
from wavecast.rules.accesses import group
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import hot_loops, pipe_share

NAME = "lds-bank-conflicts"

KNOWN_SLOWDOWN = 2.0
"""Slow-down from which on the rule speaks where it is known which lanes are served together."""

DERIVED_SLOWDOWN = 4.0
"""The same where that is derived, not measured or documented."""

_WORDS = {"spec": "documented", "measured": "measured", "derived": "derived"}
"""Status of phases -> the word for it."""

RELEVANT = 0.25
BINDING = 0.5
"""LDS cycles as a share of the busiest pipe's, from which on the rule speaks, and warns."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    shares = {loop.index: pipe_share(subject, loop, "lds") for loop in hot_loops(subject)}
    for found in group(subject.analysis.memory, lambda item: _conflicts(subject, item)):
        share = shares.get(found.first.loop, 0.0) if found.first.loop is not None else 0.0
        if share < RELEVANT:
            continue
        worst = max(found.instructions, key=lambda item: item.conflict_ways or 0)
        stride = f", lanes {worst.stride} bytes apart" if worst.stride is not None else ""
        status = _status(subject, worst)
        sure = status != "derived"
        yield Finding(
            rule=NAME,
            severity="warning" if share >= BINDING and sure else "note",
            message=f"LDS {worst.kind}s take {worst.conflict_ways:.3g} times as long as without "
            "bank conflicts",
            evidence=f"{found.mnemonics}{stride}; which lanes are served together is "
            f"{_WORDS[status]}; the LDS pipe needs {100 * share:.0f} % of the cycles of the "
            "busiest pipe",
            advice=_advice(subject),
            location=found.location,
            instruction=worst.index,
        )


def _conflicts(subject: RuleInput, item: MemoryInstruction) -> bool:
    if item.space != "lds" or item.conflict_ways is None or item.loop is None:
        return False
    least = DERIVED_SLOWDOWN if _status(subject, item) == "derived" else KNOWN_SLOWDOWN
    return item.conflict_ways >= least


def _status(subject: RuleInput, item: MemoryInstruction) -> str:
    """Status of the groups of lanes that are served together: a key of `_WORDS`.

    Known are those of plain reads and writes, which every target of a family has; not those of
    two-address forms and of the transposing reads only one target has.
    """
    if subject.program is None or not _is_plain(subject.program.instructions[item.index].opcode):
        return "derived"
    banks = subject.device.get("lds_banks")
    known = int(banks) if isinstance(banks, (int, float)) else 32
    write = item.kind == "store"
    lanes = subject.device.wave_lanes
    return phases(subject.code.target, item.bytes_per_lane, write, lanes, known).status


def _is_plain(opcode: Opcode) -> bool:
    two_addresses = any(role.type.endswith("x2") for role in opcode.operands)
    return len(opcode.mnemonics) > 1 and not two_addresses


def _advice(subject: RuleInput) -> str:
    if subject.code.origin == "triton":
        return (
            "Change what decides the shared layout: a BLOCK_K whose row fills all banks (128 bytes "
            "or a multiple), operands that are contiguous in K, or kpack on gfx942."
        )
    return (
        "Pad each row of the shared array by 16 bytes, or XOR the column with the row number "
        "(swizzle) on both the store and the load."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="LDS bank conflicts",
    explanation=f"""\
LDS is built of banks that serve one 4-byte word each per clock. Lanes that want different words
of one bank at the same time wait for each other. Which lanes are served together depends on the
instruction's width and the chip; it is measured or documented for wide reads of CDNA and derived
elsewhere.

Fires in innermost loops when an access takes at least {KNOWN_SLOWDOWN:g} times as long as without
conflicts ({DERIVED_SLOWDOWN:g} times where the groups are derived) and the LDS pipe needs at least
a quarter of the cycles of the busiest pipe; `warning` from half, where the groups are known.""",
    check=_check,
)
