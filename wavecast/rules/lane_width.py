"""HIP code for 32 lanes whose waves have 64."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.lanes.assumption import LaneAssumption, one_per_mistake
from wavecast.analyze.lanes.assumptions import assumptions, is_wide
from wavecast.analyze.lanes.masks import mask_sites
from wavecast.analyze.lanes.positions import instructions_at, location_of
from wavecast.analyze.lanes.words import WORDS
from wavecast.compile.parsing import parse_descriptor
from wavecast.rules.finding import Finding, Rule, RuleInput

NAME = "assumes-32-lanes"


def _check(subject: RuleInput) -> Iterator[Finding]:
    code = subject.code
    text = code.stages.get("llir", "")
    if code.origin != "hip" or not code.is_amd or not isinstance(text, str):
        return
    sites = (site for site in _sites(subject, text) if site.certain and site.position)
    for site in one_per_mistake(sites):
        yield _finding(subject, site)


def _sites(subject: RuleInput, text: str) -> Iterator[LaneAssumption]:
    block = subject.launch.block if subject.launch is not None else None
    descriptor = parse_descriptor(subject.code)
    yield from assumptions(text, subject.code.kernel, descriptor, block)
    if is_wide(descriptor, block):
        yield from mask_sites(subject.code, subject.program)


def _finding(subject: RuleInput, site: LaneAssumption) -> Finding:
    words = WORDS[site.what]
    exact, _ = instructions_at(subject.program, site.position)
    return Finding(
        rule=NAME,
        severity="warning",
        message=f"this {words.effect}",
        evidence=f"a wave of {subject.code.target} has 64 lanes in this kernel, and both halves "
        "execute the line",
        advice=words.advice,
        location=location_of(subject.program, site.position, subject.code.source),
        instruction=exact[0] if exact else None,
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Code for 32 lanes on waves of 64",
    explanation="""\
Waves have 64 lanes on CDNA, and on RDNA where the kernel is compiled for them. Code written for
warps of 32 runs there with other results: a ballot kept in 32 bits (`unsigned m = __ballot(p)`,
`__popc`, `__ffs`), 32 ones compared with a ballot or passed as a mask, a shift of 32 bits by the
number of a lane, a reduction by shuffles that begins at 16 and of which one lane of 64 uses the
result, a scan that ends after 32 lanes, a shuffle without a width in groups of 32, and a value of
the first lane of each group that all 64 lanes take from lane 0 (`__shfl(v, 0)`, `readfirstlane`).

Fires for HIP source, from the LLVM IR of the kernel, where lanes of both halves execute the line
and the other half is lost or mixed whatever the data is: the upper bits of the ballot are read
nowhere, or the lanes in which results are used are made of 32 lanes only. Groups of 32 that state
their width, or whose results are all used, and blocks of at most 32 threads are left alone. Where
only the data tells, `wavecast run --check` does.""",
    check=_check,
)
