"""LDS accesses of one or two bytes per lane in a hot loop."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.rules.accesses import AccessGroup, group
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import GLOBAL_SPACES, hot_loops, pipe_share
from wavecast.rules.triton_stages import module
from wavecast.rules.wording import count, shared_memory

NAME = "narrow-lds-access"

NARROW_BYTES = 2
"""An access of at most this many bytes per lane is narrow; 16 is the widest."""

REPEATS = 8
"""Narrow instructions of one source line in one iteration from which on the rule speaks."""


RELEVANT = 0.25
BINDING = 0.75
"""LDS cycles as a share of the busiest pipe's, from which on the rule speaks, and warns."""


_LAYOUT_CHANGES = ("ttg.convert_layout", "ttg.local_alloc")


def _check(subject: RuleInput) -> Iterator[Finding]:
    shares = {loop.index: pipe_share(subject, loop, "lds") for loop in hot_loops(subject)}
    for access_group in group(subject.analysis.memory, _is_narrow):
        share = (
            shares.get(access_group.first.loop, 0.0) if access_group.first.loop is not None else 0.0
        )
        if share < RELEVANT or access_group.count < REPEATS:
            continue
        if access_group.first.kind == "store" and _loaded_narrow(subject, access_group):
            continue
        memory = shared_memory(subject.code.is_amd)
        wide = max(1, access_group.bytes_per_lane // 16)
        yield Finding(
            rule=NAME,
            severity="warning" if share >= BINDING else "note",
            message=f"{memory} {access_group.first.kind}s move "
            f"{count(access_group.widest, 'byte')} per lane in "
            "a loop",
            evidence=f"{access_group.mnemonics} per iteration for "
            f"{count(access_group.bytes_per_lane, 'byte')} per lane; "
            f"{count(wide, '16-byte access', '16-byte accesses')} would move as much; the "
            f"{memory} pipe needs {100 * share:.0f}% of the cycles of the busiest pipe",
            advice=_advice(subject, access_group),
            location=access_group.location,
            instruction=access_group.first.index,
        )


def _is_narrow(item: MemoryInstruction) -> bool:
    return (
        item.space == "lds"
        and item.kind in ("load", "store")
        and item.loop is not None
        and item.bytes_per_lane <= NARROW_BYTES
    )


def _is_computed(subject: RuleInput, access_group: AccessGroup) -> bool:
    """Whether the line takes a computed tile through LDS: it changes a layout and loads nothing."""
    return _has(subject, "ttgir", access_group, *_LAYOUT_CHANGES) and not _has(
        subject, "ttir", access_group, "tt.load"
    )


def _has(subject: RuleInput, stage: str, access_group: AccessGroup, *names: str) -> bool:
    """Whether a stage has one of these operations on the group's line."""
    parsed, location = module(subject, stage), access_group.location
    if parsed is None or location is None:
        return False
    return any(
        operation.location is not None
        and (operation.location.file, operation.location.line) == (location.file, location.line)
        for operation in parsed.operations_named(*names)
    )


def _loaded_narrow(subject: RuleInput, access_group: AccessGroup) -> bool:
    """Whether the stored pieces were loaded as such: then the load is what to change."""
    return any(
        item.space in GLOBAL_SPACES
        and item.kind == "load"
        and item.loop == access_group.first.loop
        and item.bytes_per_lane <= access_group.widest
        for item in subject.analysis.memory
    )


def _advice(subject: RuleInput, access_group: AccessGroup) -> str:
    if subject.code.origin != "triton":
        return (
            "Lay the tile out so that what a lane needs for one matrix instruction is contiguous "
            "(K innermost), and access it through a 16-byte vector type."
        )
    if _is_computed(subject, access_group):
        return (
            "A computed tile changes its layout between two products. Order the products so that "
            "the first result is the second's left operand without a layout change (compute the "
            "transposed product where that avoids a tl.trans)."
        )
    if access_group.first.kind == "store":
        return (
            "The tile is written element by element because its registers run across the shared "
            "layout: load it along the dimension the dot wants contiguous (K)."
        )
    return (
        "The operand lies in memory with the other dimension than K contiguous: store it "
        "K-contiguous (B as N x K) and load its transpose"
        + (
            "; gfx950 can also transpose 16-bit tiles while reading."
            if subject.code.is_amd
            else "."
        )
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Narrow LDS access in a loop",
    explanation=f"""\
An LDS instruction takes its issue slot and address cycles whatever its width; 16 bytes per lane
use the banks fully, 2 bytes use an eighth of them or less. Matrix instructions want neighbouring
K values of a row or column in one lane, so an operand stored along the other dimension is
gathered piece by piece.

Fires when one source line became at least {REPEATS} LDS instructions of at most {NARROW_BYTES}
bytes per lane in a loop whose LDS pipe needs at least a quarter of the busiest
pipe's cycles; `warning` from three quarters.""",
    check=_check,
)
