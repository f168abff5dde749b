"""Loads or stores that take alternate elements of one row: real and imaginary, gate and up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wavecast.compile.ttgir import IrModule, Operation, Tensor, tensors
from wavecast.rules.accesses import at_lines
from wavecast.rules.affine import AffineForm, Forms
from wavecast.rules.changes import widen_accesses
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Change, Fix, Recompiled, Simulated
from wavecast.rules.pair_rewrite import CannotRewrite, Pair, rewritten
from wavecast.rules.triton_slice import TritonSlices, access
from wavecast.rules.triton_stages import module, module_slices, stage
from wavecast.rules.wording import count, join_names, lines

NAME = "interleaved-pairs"

MOST = 4
"""Elements of a group that are looked for: pairs, and pixels of up to four channels."""

_ACCESSES = ("tt.load", "tt.store")


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or store: the form of its addresses, and the range that is `stride` elements apart."""

    operation: Operation
    tensor: Tensor
    form: AffineForm
    lanes: str
    stride: int


def _check(subject: RuleInput) -> Iterator[Finding]:
    parsed, sliced = module(subject, "ttir"), module_slices(subject, "ttir")
    if parsed is None or sliced is None:
        return
    forms = Forms(parsed)
    by_stride: dict[int, list[tuple[_Access, ...]]] = {}
    for group in _groups(list(_accesses(parsed, forms))):
        by_stride.setdefault(group[0].stride, []).append(group)
    for groups in by_stride.values():
        yield _finding(subject, parsed, sliced, forms, groups)


def _accesses(parsed: IrModule, forms: Forms) -> Iterator[_Access]:
    """The accesses whose last axis goes through memory in steps of 2 to `MOST` elements."""
    for operation in parsed.operations_named(*_ACCESSES):
        types = tensors(operation.types)
        address = access(operation).address[:1]
        if not types or not address or not types[0].element.startswith("!tt.ptr<"):
            continue
        form = forms.of(address[0])
        for name, factor in form.terms.items():
            span = forms.lanes(name)
            if span is not None and span[1] == types[0].shape[-1] and 2 <= factor <= MOST:
                element = types[0].element.removeprefix("!tt.ptr<").removesuffix(">")
                tensor = Tensor(types[0].shape, element, types[0].layout)
                yield _Access(operation, tensor, form, name, factor)


def _groups(accesses: list[_Access]) -> Iterator[tuple[_Access, ...]]:
    """Accesses of one block whose elements are neighbours, as many as they are apart, in the order
    of memory."""
    worklist = list(accesses)
    while worklist:
        first = worklist.pop(0)
        offsets = {0: first}
        for other in worklist:
            alike = (
                other.operation.name == first.operation.name
                and other.operation.parent == first.operation.parent
                and other.tensor == first.tensor
                and (other.lanes, other.stride) == (first.lanes, first.stride)
            )
            difference = other.form.plus(first.form, -1)
            if alike and difference.is_constant and abs(difference.constant) < first.stride:
                offsets.setdefault(difference.constant, other)
        ordered = [offsets[offset] for offset in sorted(offsets)]
        if len(ordered) == first.stride and max(offsets) - min(offsets) == first.stride - 1:
            worklist = [item for item in worklist if item not in ordered]
            yield tuple(ordered)


def _finding(
    subject: RuleInput,
    parsed: IrModule,
    sliced: TritonSlices,
    forms: Forms,
    groups: list[tuple[_Access, ...]],
) -> Finding:
    operations = [item.operation for group in groups for item in group]
    locations = tuple(op.location for op in operations if op.location is not None)
    stride = groups[0][0].stride
    verbs = dict.fromkeys(op.name.removeprefix("tt.") for op in operations)
    instructions = [
        item
        for verb in verbs
        for item in at_lines(
            subject.analysis.memory,
            (op.location for op in operations if op.location and op.name.endswith(verb)),
            verb,
        )
    ]
    pointers = dict.fromkeys(
        arg.name for op in operations for arg in sliced.of(access(op).address) if arg.is_pointer
    )
    narrow = min((item.bytes_per_lane for item in instructions), default=0)
    advice = " ".join(_advice(verb, stride) for verb in verbs)
    part = "half" if stride == 2 else f"1/{stride}"
    nth = "second" if stride == 2 else "third" if stride == 3 else f"{stride}th"
    return Finding(
        rule=NAME,
        severity="warning",
        message=f"{join_names(f'{verb}s' for verb in verbs)} of {join_names(pointers)} take "
        f"every {nth} "
        "element each, and together all",
        evidence=f"the lanes of each access at {lines(locations)} are {stride} elements apart: "
        f"it moves {count(narrow, 'byte')} per lane at a time, and uses {part} of the cache lines "
        "it touches",
        advice=advice,
        location=locations[0] if locations else None,
        locations=locations,
        instruction=instructions[0].index if instructions else None,
        fixes=(
            Fix(
                advice,
                _change(subject, parsed, forms, groups, frozenset(i.index for i in instructions)),
            ),
        ),
        covers=frozenset(item.index for item in instructions),
    )


def _change(
    subject: RuleInput,
    parsed: IrModule,
    forms: Forms,
    groups: list[tuple[_Access, ...]],
    instructions: frozenset[int],
) -> Change:
    """The kernel with one access per row; simulated where the rewriting does not cover it."""
    wide = Simulated(instructions, widen_accesses)
    if any(len(group) != 2 for group in groups):
        return wide
    pairs = [
        Pair(first.operation, second.operation, first.lanes, first.tensor, first.form)
        for first, second in groups
    ]
    try:
        return Recompiled(rewritten(stage(subject, "ttir"), parsed, forms, pairs))
    except CannotRewrite:
        return wide


def _advice(verb: str, stride: int) -> str:
    if verb == "load":
        split = (
            "tl.split(tl.reshape(block, (BLOCK, 2)))" if stride == 2 else "tl.reshape and tl.split"
        )
        return (
            f"Load the {stride} * BLOCK neighbouring elements with one tl.load and separate them "
            f"with {split}; or store the parts one after the other instead of alternating."
        )
    join = "tl.join(first, second)" if stride == 2 else "tl.join"
    return (
        f"Interleave the values with {join} and tl.reshape, and store the {stride} * BLOCK "
        "neighbouring elements with one tl.store."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Interleaved elements accessed apart",
    explanation=f"""\
Two loads that take the even and the odd elements of a row (gate and up projections, real and
imaginary parts, interleaved rotary embeddings) read every cache line twice, and Triton cannot
widen them: the lanes of each are not neighbours. One load of the whole block and `tl.split` move
the same data with the widest instructions. For stores it is `tl.join`.

Fires for 2 to {MOST} loads or stores of Triton whose lanes are as many elements apart as there are
accesses, and which together take all. The fix is predicted by rewriting pairs in Triton's IR and
compiling the kernel again; where the addresses are written in a form that the rewriting does not
cover (carried around a loop, masked by row), by simulating wide accesses.""",
    check=_check,
)
