"""Findings in words: their lines, the predicted effect of their advice, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wavecast.report.explain import summary
from wavecast.report.explain.words import where
from wavecast.report.kit import units

if TYPE_CHECKING:
    from wavecast.rules.finding import Finding

MOST_LINES: Final = 6
"""Lines of a finding that are shown."""


def lines(finding: Finding) -> str:
    """`line 12`, or `lines 12, 14` for a finding about several; "" where none is known."""
    numbers = summary.lines_of(finding)
    if len(numbers) < 2:
        return where(finding.location) if finding.location is not None else ""
    text = ", ".join(map(str, numbers[:MOST_LINES]))
    return f"lines {text}{' …' if len(numbers) > MOST_LINES else ''}"


def effect(finding: Finding) -> str:
    """`saves 26%: 240 µs → 177 µs (150 µs to 220 µs), compiled with the fix`; "" where it is not
    predicted."""
    if finding.time_saved is None:
        return ""
    if finding.outcome is None:
        return "hidden behind other work: a fix saves nothing here"
    outcome = finding.outcome
    before = outcome.seconds / (1 - finding.time_saved)
    how = "compiled with the fix" if outcome.method == "recompiled" else "simulated with the fix"
    if outcome.at_best:
        how = "simulated without what was found: the fix may save less"
    ends = f"{units.seconds(outcome.low)} to {units.seconds(outcome.high)}"
    return (
        f"saves {'up to ' if outcome.at_best else ''}{finding.time_saved:.0%}: "
        f"{units.seconds(before)} → {units.seconds(outcome.seconds)} ({ends}), {how}"
    )


def cost(finding: Finding) -> str:
    """What changes with the fix besides the time: `VGPRs 40 → 52 · LDS 4 KiB → 4.1 KiB`, and after
    how many launches a copy pays; "" where nothing does."""
    outcome = finding.outcome
    if outcome is None:
        return ""
    parts = []
    if outcome.after is not None:
        before, after = outcome.before, outcome.after
        resources = (
            ("VGPRs", str(before.vgpr), str(after.vgpr)),
            ("spilled VGPRs", str(before.spilled), str(after.spilled)),
            ("LDS", units.size(before.lds_bytes), units.size(after.lds_bytes)),
            ("waves per SIMD", str(before.waves_per_simd), str(after.waves_per_simd)),
            ("workgroups per unit", str(before.workgroups), str(after.workgroups)),
        )
        parts += [f"{name} {old} → {new}" for name, old, new in resources if old != new]
    if outcome.break_even is not None:
        parts.append(f"a copy pays after {units.plural(outcome.break_even, 'launch')}")
    return " · ".join(parts)


__all__ = ["cost", "effect", "lines"]
