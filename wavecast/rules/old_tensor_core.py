"""Tensor cores driven by the instructions of an older generation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.triton_stages import Dot, dots, element_name, module

NAME = "old-tensor-core-path"

_ASYNCHRONOUS = {3: "wgmma", 5: "tcgen05.mma"}
"""Major version of the layout in TTGIR -> PTX instruction that takes operands from shared memory.
"""

SMALLEST_M = 64
"""Rows of the smallest wgmma and tcgen05.mma tile (PTX ISA)."""

_VERSION = re.compile(r"versionMajor = (\d+)")


def _check(subject: RuleInput) -> Iterator[Finding]:
    version = subject.device.capabilities.mma_version
    instruction = _ASYNCHRONOUS.get(version)
    if instruction is None:
        return
    locations = set()
    for dot in dots(module(subject, "ttgir")):
        match = _VERSION.search(dot.layout)
        if match is None or int(match[1]) >= version or dot.location in locations:
            continue
        locations.add(dot.location)
        reason, advice = _reason(subject, dot, instruction)
        kinds = ", ".join(f"{name} x {count}" for name, count in _kinds(subject))
        yield Finding(
            rule=NAME,
            severity="note" if dot.result.shape[-2] < SMALLEST_M else "warning",
            message=f"the {dot.shape} dot uses mma.sync, not {instruction}",
            evidence=f"{reason}{f'; tensor-core instructions: {kinds}' if kinds else ''}",
            advice=advice,
            location=dot.location,
        )


def _kinds(subject: RuleInput) -> list[tuple[str, int]]:
    return sorted(subject.analysis.matrix_kinds.items(), key=lambda item: -item[1])[:3]


def _reason(subject: RuleInput, dot: Dot, instruction: str) -> tuple[str, str]:
    warps = subject.code.options.get("num_warps")
    m, n = dot.result.shape[-2], dot.result.shape[-1]
    if isinstance(warps, int) and warps < 4:
        return (
            f"num_warps is {warps}; {instruction} is issued by four warps together",
            "Use num_warps=4 or a multiple of it.",
        )
    if m < SMALLEST_M:
        return (
            f"M of the tile is {m}; {instruction} takes at least {SMALLEST_M} rows",
            "Use BLOCK_M of 64 or more, or swap the operands so that the long side becomes M.",
        )
    return (
        f"the tile is {m}x{n} in {element_name(dot.a.element)}",
        "Use 16-bit or 8-bit inputs loaded from shared memory, K contiguous for 8-bit types, and "
        "keep the operands' conversions out of the loop.",
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Tensor cores through the older instructions",
    explanation="""\
Hopper and data-centre Blackwell reach their peak only through their own asynchronous
instructions (wgmma, tcgen05.mma), which read operands from shared memory. `mma.sync` still works
there, but takes its operands from registers and cannot reach that peak.

Fires for a dot whose TTGIR layout is of an older major version than the device's generation; a
`note` where the tile is too short for the newer one.""",
    check=_check,
)
