"""Fixes that are other compiler settings: warps, and limits on registers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wavecast.rules.finding import RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.rates import placement
from wavecast.rules.triton_stages import stage

_CAPS = re.compile(
    r"__attribute__\s*\(\(\s*amdgpu_(?:waves_per_eu|num_vgpr)\s*\([^)]*\)\s*\)\)"
    r"|(?P<bounds>__launch_bounds__\s*\(\s*[^,()]+),[^()]*\)"
)


def most_warps(subject: RuleInput) -> int:
    """Warps of the largest workgroup of the device."""
    return placement(subject).max_workgroup_threads // subject.device.wave_lanes


def more_warps(subject: RuleInput) -> Iterator[Fix]:
    """The kernel of Triton with twice as many warps, which share a tile's registers."""
    warps, text = subject.code.options.get("num_warps"), stage(subject, "ttir")
    if isinstance(warps, int) and text and 2 * warps <= most_warps(subject):
        advice = f"Use num_warps={2 * warps} (now {warps}): each wave has half of the tile."
        yield Fix(advice, Recompiled(text, {"num_warps": 2 * warps}), f"num_warps={2 * warps}")


def fewer_warps(subject: RuleInput, warps: int, advice: str) -> Iterator[Fix]:
    """The kernel of Triton with `warps` warps."""
    text = stage(subject, "ttir")
    if text:
        yield Fix(advice, Recompiled(text, {"num_warps": warps}), f"num_warps={warps}")


def without_caps(subject: RuleInput, advice: str) -> Iterator[Fix]:
    """The kernel without the limits on registers that its options or its source state."""
    options, text = subject.code.options, stage(subject, "ttir")
    if options.get("waves_per_eu") and text:
        yield Fix(advice, Recompiled(text, {"waves_per_eu": 0}), "no waves_per_eu")
    source = subject.code.source_text
    if subject.code.origin == "hip" and _CAPS.search(source):
        changed = _CAPS.sub(lambda match: f"{match['bounds']})" if match["bounds"] else "", source)
        yield Fix(
            "Remove the limit on registers (amdgpu_waves_per_eu, or the second number of "
            "__launch_bounds__).",
            Recompiled(changed),
            "no limit on registers",
        )


__all__ = ["fewer_warps", "more_warps", "most_warps", "without_caps"]
