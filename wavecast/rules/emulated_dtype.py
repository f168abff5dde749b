"""A dot whose inputs are converted because the target's matrix unit does not take their type."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.dtypes import Spelling, lookup
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.rates import peak_flops
from wavecast.rules.triton_stages import Dot, dots, element_name, matrix_elements, module

NAME = "emulated-dtype"

_SCALED = {"e2m1": "mxfp4", "e4m3": "mxfp8 (e4m3)", "e5m2": "mxfp8 (e5m2)"}


def _check(subject: RuleInput) -> Iterator[Finding]:
    lowered = {dot.location: dot for dot in dots(module(subject, "ttgir"))}
    locations = set()
    for dot in dots(module(subject, "ttir")):
        after = lowered.get(dot.location)
        if after is None or not after.on_matrix_unit or dot.location in locations:
            continue
        if not _is_widened(dot, after):
            continue
        locations.add(dot.location)
        before, compute_dtype = _type_of(dot), element_name(after.a.element)
        yield Finding(
            rule=NAME,
            severity="warning",
            message=f"the {before} dot is computed in {compute_dtype}",
            evidence=f"{subject.code.target} has no matrix instruction for {before}: both operands "
            f"of the {dot.shape} tile are converted to {compute_dtype} with vector instructions, "
            "and the "
            f"matrix pipe runs at its {compute_dtype} rate{_rates(subject, compute_dtype)}",
            advice=_advice(subject, dot),
            location=dot.location,
        )


def _is_widened(dot: Dot, after: Dot) -> bool:
    """Whether the lowered dot takes wider inputs than the source asked for."""
    if dot.operation.name == "tt.dot_scaled":
        return after.operation.name != "tt.dot_scaled"
    return any(
        lookup(new.element, Spelling.MLIR).bits > lookup(old.element, Spelling.MLIR).bits
        for old, new in ((dot.a, after.a), (dot.b, after.b))
    )


def _type_of(dot: Dot) -> str:
    if dot.operation.name == "tt.dot_scaled":
        sides = [
            _SCALED.get(part.split()[0], part.split()[0])
            for part in (dot.operation.text.partition(f"{side} = ")[2] for side in ("lhs", "rhs"))
            if part
        ]
        return " x ".join(dict.fromkeys(sides))
    names = dict.fromkeys((element_name(dot.a.element), element_name(dot.b.element)))
    return " x ".join(names)


def _rates(subject: RuleInput, dtype: str) -> str:
    rate = peak_flops(subject.device, dtype)
    return f" ({rate / 1e12:,.0f} TFLOP/s at most)" if rate is not None else ""


def _advice(subject: RuleInput, dot: Dot) -> str:
    target = subject.code.target
    if dot.operation.name == "tt.dot_scaled":
        return (
            "Block-scaled matrix instructions exist on gfx950 and sm_100 and later. Here keep the "
            "narrow type for memory only and expect the 16-bit rate, or use the 8-bit type the "
            "target has."
        )
    has_fp8 = bool({"fp8", "bf8"} & matrix_elements(target)) if subject.code.is_amd else False
    ocp = "FN" in dot.a.element + dot.b.element or "E5M2" in dot.a.element + dot.b.element
    fnuz = "FNUZ" in dot.a.element + dot.b.element
    if has_fp8 and fnuz:
        return (
            f"Use the OCP types on {target} (torch.float8_e4m3fn, torch.float8_e5m2): the same "
            "bits mean twice the value there, so halve the scale, and map the FNUZ NaN 0x80."
        )
    if has_fp8 and ocp:
        return (
            f"Convert the tensors once to the FNUZ types {target} computes in "
            "(torch.float8_e4m3fnuz, torch.float8_e5m2fnuz): the same bits mean half the value, so "
            "double the scale, and map the OCP pattern 0x80 to 0."
        )
    return (
        "Keep 8-bit storage where memory bounds the kernel, but convert once per tile before it is "
        "reused; for rate use int8, which the matrix unit takes, or bf16/fp16 inputs."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="A dot in a type the matrix unit does not have",
    explanation="""\
The compiler accepts fp8, bf8 and block-scaled types on every target and converts the inputs to
fp16 or bf16 where the matrix unit lacks them. The result is right, but the dot runs at the wider
type's rate and pays vector instructions for every conversion, often once per use instead of once
per value.

gfx942 multiplies fp8 in the FNUZ encodings only; OCP e4m3 and e5m2 are emulated there. gfx950,
gfx1201 and gfx1250 take OCP types, gfx90a and gfx1100 none. Block-scaled dots (`tl.dot_scaled`)
are native on gfx950 and gfx1250.

Fires when a dot's inputs in TTGIR are wider than in TTIR, or `tl.dot_scaled` became a plain
dot.""",
    check=_check,
)
