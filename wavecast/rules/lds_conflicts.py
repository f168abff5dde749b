"""LDS accesses of a hot loop whose lanes meet in the same banks."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.rules.accesses import group
from wavecast.rules.finding import Finding, Rule, Subject
from wavecast.rules.loops import matters

NAME = "lds-bank-conflicts"

CONFLICT_WAYS = 2.0
"""Slow-down of one instruction from which on the rule speaks."""


def _check(subject: Subject) -> Iterator[Finding]:
    for found in group(subject.analysis.memory, _conflicts):
        if not matters(subject, found.first):
            continue
        worst = max(found.instructions, key=lambda item: item.conflict_ways or 0)
        stride = f", lanes {worst.stride} bytes apart" if worst.stride is not None else ""
        yield Finding(
            rule=NAME,
            severity="warning" if found.first.loop is not None else "note",
            message=f"LDS {worst.kind}s take {worst.conflict_ways:.3g} times as long as without "
            "bank conflicts",
            evidence=f"{found.mnemonics}{stride}",
            advice=_advice(subject),
            location=found.location,
            instruction=worst.index,
        )


def _conflicts(item: MemoryInstruction) -> bool:
    return (
        item.space == "lds"
        and item.conflict_ways is not None
        and item.conflict_ways >= CONFLICT_WAYS
    )


def _advice(subject: Subject) -> str:
    if subject.code.origin == "triton":
        return (
            "Change what decides the shared layout: a BLOCK_K whose row fills all banks (128 bytes "
            "or a multiple), the operand order that is contiguous in K, or kpack on gfx942."
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
instruction's width and the chip; the analysis uses the measured groups where they are known.

Fires when the addresses of an instruction could be derived and it takes at least
{CONFLICT_WAYS:g} times as long as without conflicts, in loops (elsewhere only when the kernel
has none, as a `note`).""",
    check=_check,
)
