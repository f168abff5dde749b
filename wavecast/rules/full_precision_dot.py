"""An fp32 dot that runs at full fp32 rate where a faster route to similar accuracy exists."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.rates import peak_flops
from wavecast.rules.triton_stages import dots, matrix_elements, module

NAME = "full-precision-dot"

LEAST_SPEEDUP = 2.0
"""The alternative's peak rate must be at least this factor higher."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    alternative = _alternative(subject)
    if alternative is None:
        return
    advice, speedup, evidence = alternative
    if speedup < LEAST_SPEEDUP:
        return
    locations = set()
    for dot in dots(module(subject, "ttgir")):
        narrow = "inputPrecision" in dot.operation.text
        if dot.a.element != "f32" or narrow or not dot.on_matrix_unit or dot.location in locations:
            continue
        locations.add(dot.location)
        yield Finding(
            rule=NAME,
            severity="note",
            message=f"the {dot.shape} dot multiplies in full fp32",
            evidence=evidence,
            advice=advice,
            location=dot.location,
        )


def _alternative(subject: RuleInput) -> tuple[str, float, str] | None:
    """Advice, the speedup over fp32, and the rates it follows from."""
    if not subject.code.is_amd:
        return None
    full = peak_flops(subject.device, "fp32")
    if full is None:
        return None
    if "xf32" in matrix_elements(subject.code.target):
        fast, name, parts = peak_flops(subject.device, "xf32"), "xf32", 1
        advice = (
            "Pass input_precision='tf32' to tl.dot if 10 bits of mantissa are enough: gfx942 has "
            "xf32 matrix instructions."
        )
    else:
        fast, name, parts = peak_flops(subject.device, "bf16"), "bf16", 3
        advice = (
            "Pass input_precision='bf16x3' (about 16 bits of mantissa from three bf16 products; "
            "'bf16x6' for nearly all 24), or use bf16 or fp16 inputs where accuracy allows."
        )
    if fast is None:
        return None
    evidence = (
        f"{subject.device.name} peaks at {full / 1e12:,.0f} TFLOP/s in fp32 and "
        f"{fast / 1e12:,.0f} in {name}"
    )
    if parts > 1:
        evidence += f", {fast / parts / 1e12:,.0f} when each product takes {parts}"
    return advice, fast / parts / full, evidence


RULE = Rule(
    name=NAME,
    severity="note",
    title="An fp32 dot at fp32 rate",
    explanation=f"""\
fp32 matrix instructions run at a fraction of the 16-bit rate. Triton's default on AMD is
`input_precision="ieee"`: unlike on NVIDIA, nothing is rounded to tf32 unless it is asked for.
gfx942 has xf32 instructions, gfx950 dropped them and is best served by three bf16 products.

Fires for fp32 dots on the matrix unit when the alternative's peak is at least
{LEAST_SPEEDUP:g} times higher. Whether its accuracy is enough is for you to decide.""",
    check=_check,
)
