"""A matrix product that the compiler lowered to vector FMAs."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.triton_stages import (
    Dot,
    dots,
    element_name,
    matrix_elements,
    module,
    smallest_tile,
)

NAME = "no-matrix-instructions"

_TABLE_NAMES = {
    "f64": ("f64",),
    "f32": ("f32",),
    "f16": ("f16", "f8f6f4"),
    "bf16": ("bf16",),
    "i8": ("i8", "iu8"),
}
"""MLIR element type -> input types of matrix instructions that take it."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    written = {dot.location: dot for dot in dots(module(subject, "ttir"))}
    locations = set()
    for dot in dots(module(subject, "ttgir")):
        if dot.on_matrix_unit or dot.location in locations:
            continue
        locations.add(dot.location)
        source = written.get(dot.location, dot)
        reason, advice = _reason(subject, source)
        element = element_name(source.a.element)
        yield Finding(
            rule=NAME,
            severity="warning",
            message=f"the {source.shape} dot in {element} runs on the vector unit",
            evidence=f"its result has the layout {_layout_name(dot)}; {reason}",
            advice=advice,
            location=dot.location,
        )


def _layout_name(dot: Dot) -> str:
    return dot.layout.partition("<")[0].removeprefix("#ttg.")


def _reason(subject: RuleInput, dot: Dot) -> tuple[str, str]:
    """Why, and what to change."""
    target = subject.code.target
    m, n, k = dot.result.shape[-2], dot.result.shape[-1], dot.depth
    if subject.code.is_amd:
        table_names = _TABLE_NAMES.get(dot.a.element, (dot.a.element,))
        element = element_name(dot.a.element)
        if dot.a.element in _TABLE_NAMES and not matrix_elements(target) & set(table_names):
            if dot.a.element == "f64":
                return (
                    f"{target} has no matrix instruction for fp64",
                    "Compute in fp32 where the accuracy allows it; fp64 matrix instructions exist "
                    "on CDNA only.",
                )
            return (
                f"{target} has no matrix instruction for {element}",
                "Convert the inputs to bf16 or fp16 where the accuracy allows it, or split each "
                "value into two or three bf16 parts (input_precision='bf16x3').",
            )
        smallest = smallest_tile(target)
    elif dot.a.element == "f32" and "inputPrecision" not in dot.operation.text:
        return (
            "tensor cores multiply tf32, and the dot asks for input_precision='ieee'",
            "Pass input_precision='tf32' if 10 bits of mantissa are enough, or 'tf32x3' for nearly "
            "all of fp32 at a third of the rate.",
        )
    else:
        smallest = 16
    if min(m, n) < smallest:
        short = "M" if m < n else "N" if n < m else "M and N"
        return (
            f"{short} of the tile is {min(m, n)}, the smallest matrix instruction takes {smallest}",
            f"Make the tile at least {smallest}x{smallest}: pad {short} and mask the rest, or give "
            "one workgroup several of the small problems (group the query heads, batch the rows).",
        )
    return (
        f"M, N, K = {m}, {n}, {k} would fit a matrix instruction",
        "Give the dot a K of at least 16 (32 for 8-bit types) and equal input types.",
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="A dot that does not use matrix instructions",
    explanation="""\
Matrix instructions (MFMA, WMMA, mma) give several times the throughput of vector FMAs. Triton
falls back to FMAs in silence when the tile is smaller than the smallest matrix instruction or
the target has none for the element type.

Fires for every `tl.dot` whose result does not have a matrix layout in TTGIR, and names the
reason: compared are the tile with the smallest matrix instruction of the target and the input
type with the types its matrix instructions take.""",
    check=_check,
)
