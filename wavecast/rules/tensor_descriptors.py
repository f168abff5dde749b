"""Tensor descriptors on a target that has no unit for them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from wavecast.isa.instruction import SourceLocation
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.triton_stages import module
from wavecast.rules.wording import count, join_names

NAME = "tensor-descriptors-emulated"

_MAKERS = frozenset({"make_tensor_descriptor", "_experimental_make_tensor_descriptor"})
_HARDWARE = ("descriptor", "tma", "tdm", "tensormap")
"""Parts of operation names that show a descriptor survived lowering."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    lowered = module(subject, "ttgir")
    if lowered is None or any(
        word in operation.name for operation in lowered.operations for word in _HARDWARE
    ):
        return
    arguments = [p.name for p in subject.code.parameters if p.type.startswith("tensordesc")]
    creation_sites = _made_in_kernel(subject)
    if not arguments and not creation_sites:
        return
    how = [f"argument{'s' * (len(arguments) > 1)} {join_names(arguments)}"] if arguments else []
    how += (
        [f"{count(len(creation_sites), 'descriptor')} made in the kernel"] if creation_sites else []
    )
    yield Finding(
        rule=NAME,
        severity="note",
        message=f"tensor descriptors are decomposed into plain loads on {subject.code.target}",
        evidence=f"{join_names(how)}; no descriptor is left in TTGIR: each access computes its own "
        "offsets and tests every element against the bounds",
        advice="Write the AMD path with pointers and 32-bit offsets (tl.load with a mask): it "
        "gives the same loads with less address arithmetic and can use buffer loads. Keep "
        "descriptors for targets with TMA (sm_90 and later) or TDM (gfx1250).",
        location=creation_sites[0] if creation_sites else subject.kernel_location,
    )


def _made_in_kernel(subject: RuleInput) -> list[SourceLocation]:
    """Where the kernel's own source makes descriptors; empty when the source is not known."""
    try:
        tree = ast.parse(textwrap.dedent(subject.code.source_text))
    except SyntaxError:
        return []
    return [
        SourceLocation(subject.code.source, subject.code.source_line + node.lineno - 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _MAKERS
    ]


RULE = Rule(
    name=NAME,
    severity="note",
    title="Tensor descriptors without hardware for them",
    explanation="""\
Tensor descriptors exist for units that copy whole tiles by themselves: TMA on sm_90 and later,
TDM on gfx1250. Everywhere else, CDNA3 and CDNA4 included, Triton rewrites each descriptor access
to pointers with 64-bit offsets and a range test per element, which costs registers and address
arithmetic and can keep the compiler from using buffer loads.

Fires when the kernel takes or makes a descriptor and no descriptor operation is left in TTGIR.""",
    check=_check,
)
