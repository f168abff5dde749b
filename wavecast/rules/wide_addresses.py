"""Offsets computed in 64 bits where 32 are enough."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wavecast.compile.ttgir import IrModule
from wavecast.isa.instruction import SourceLocation
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.hip_source import body_of
from wavecast.rules.narrowing import narrow_integers
from wavecast.rules.triton_stages import module, stage
from wavecast.rules.wording import count, lines

NAME = "64-bit-addresses"

REACH = 2**31
"""Bytes that signed 32-bit offsets reach."""

_WIDE_TYPE = re.compile(
    r"\b(?:std::)?(?:size_t|ptrdiff_t|u?int64_t|(?:unsigned\s+)?long(?:\s+long)?(?:\s+int)?)\b"
)
_ARITHMETIC = ("arith.muli", "arith.addi", "arith.divsi", "arith.remsi", "arith.divui")


def _check(subject: RuleInput) -> Iterator[Finding]:
    if not _is_small(subject):
        return
    if subject.code.origin == "triton":
        yield from _triton(subject)
    elif subject.code.origin == "hip":
        yield from _hip(subject)


def _is_small(subject: RuleInput) -> bool:
    """Whether every tensor of the launch is known, and within the reach of 32 bits."""
    arguments = subject.launch.arguments if subject.launch is not None else ()
    tensors = [item for item in arguments if item.kind in ("tensor", "pointer")]
    return bool(tensors) and all(0 < item.bytes < REACH for item in tensors)


def _triton(subject: RuleInput) -> Iterator[Finding]:
    parsed, text = module(subject, "ttir"), stage(subject, "ttir")
    if parsed is None:
        return
    wide = _wide_locations(parsed)
    change = narrow_integers(text)
    if not wide or change is None:
        return
    advice = (
        "Compute offsets in 32 bits: every tensor is below 2 GiB. Drop .to(tl.int64), or add the "
        "64-bit part to the base pointer once and keep the rest in 32."
    )
    yield _finding(wide, advice, Recompiled(change))


def _wide_locations(parsed: IrModule) -> list[SourceLocation]:
    """Where tiles of 64-bit integers are computed with."""
    return [
        operation.location
        for operation in parsed.operations_named(*_ARITHMETIC)
        if "xi64>" in operation.types and operation.location is not None
    ]


def _hip(subject: RuleInput) -> Iterator[Finding]:
    text = subject.code.source_text
    span = body_of(text, subject.code.source_line)
    if span is None:
        return
    body = text[span[0] : span[1]]
    positions = [span[0] + match.start() for match in _WIDE_TYPE.finditer(body)]
    if not positions:
        return
    where = [
        SourceLocation(subject.code.source, text.count("\n", 0, position) + 1)
        for position in positions
    ]
    changed = text[: span[0]] + _WIDE_TYPE.sub("int", body) + text[span[1] :]
    advice = (
        "Compute indices in 32 bits (int): every array is below 2 GiB. GPUs have no 64-bit "
        "integer unit: an addition is two instructions, a product four, a division a hundred."
    )
    yield _finding(where, advice, Recompiled(changed))


def _finding(where: list[SourceLocation], advice: str, change: Recompiled) -> Finding:
    unique = tuple(dict.fromkeys(where))
    return Finding(
        rule=NAME,
        severity="note",
        message="indices are computed in 64 bits",
        evidence=f"{count(len(where), '64-bit value')} at {lines(unique)}; the largest tensor has "
        "less than 2 GiB, which 32-bit offsets reach",
        advice=advice,
        location=unique[0],
        locations=unique,
        fixes=(Fix(advice, change),),
    )


RULE = Rule(
    name=NAME,
    severity="note",
    title="64-bit address arithmetic",
    explanation="""\
GPUs compute 64-bit integers with pairs of 32-bit instructions and pairs of registers: an addition
takes two, a product four or more, a division about a hundred.

Fires where tiles of 64-bit integers (Triton) or 64-bit variables (HIP) make up indices, every
tensor of the launch is below 2 GiB, and the kernel compiled with 32-bit indices is faster.""",
    check=_check,
)
