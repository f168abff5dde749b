"""Neighbouring elements of one lane loaded one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from wavecast.analyze.result import MemoryInstruction
from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.reshaping import wider_lanes
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.accesses import AccessGroup, group, operation_of, operations_at, stride_names
from wavecast.rules.changes import simulated_fix, widen_accesses
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Array, Fix, Recompiled
from wavecast.rules.loops import GLOBAL_SPACES, matters
from wavecast.rules.specialise import DIVISOR, declare_divisible, multiple
from wavecast.rules.triton_slice import FunctionArgument, access
from wavecast.rules.triton_stages import module, module_slices, stage
from wavecast.rules.wording import count, join_names

NAME = "narrow-global-access"

NARROW_BYTES = 4
"""An access of at most this many bytes per lane is narrow; 16 is the widest."""

WORD = 4
"""Bytes per lane from which on contiguous lanes use whole cache lines: only a note."""

SHARE = 0.1
"""Least share of the bytes its loop moves."""

ROWS = 4
"""Cache lines per ideal one up to which an irregular access is rows of a tile, not a gather."""

SMALL = 2
"""Bytes of an element that is too small for one thread each."""

REPEATS = 4
"""Narrow instructions of one source line from which on the rule speaks."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    for access_group in group(subject.analysis.memory, _is_narrow):
        if _is_single(subject, access_group):
            yield _single(subject, access_group)
            continue
        if access_group.count < REPEATS * _operations(subject, access_group) or not matters(
            subject, access_group.first
        ):
            continue
        if _share(subject, access_group) < SHARE:
            continue
        if not _could_be_wide(access_group) or _is_synthetic(subject, access_group):
            continue
        if access_group.first.pattern == "irregular" and _is_gather(subject, access_group):
            continue
        yield _finding(subject, access_group)


def _is_single(subject: RuleInput, access_group: AccessGroup) -> bool:
    """Whether each thread of a HIP kernel moves one small element, next to its neighbours'."""
    return (
        subject.code.origin == "hip"
        and access_group.count < REPEATS
        and access_group.widest <= SMALL
        and matters(subject, access_group.first)
        and all(item.pattern == "contiguous" for item in access_group.instructions)
        and _share(subject, access_group) >= SHARE
    )


def _single(subject: RuleInput, access_group: AccessGroup) -> Finding:
    verb, element = access_group.first.kind, access_group.widest
    factor = 16 // element
    alike = [item.index for item in subject.analysis.memory if _is_narrow(item)]
    advice = (
        f"Let each thread handle {factor} neighbouring elements through one 16-byte vector type "
        "(uint4, an ext_vector_type), with as many fewer threads."
    )

    analysis, loop = subject.analysis, access_group.first.loop

    def wide(changes: LaunchChanges, mask: Array) -> LaunchTiming:
        return wider_lanes(changes.simulation, mask, factor, analysis, loop)

    return Finding(
        rule=NAME,
        severity="warning",
        message=f"each thread {verb}s one element of {count(element, 'byte')}",
        evidence=f"{access_group.mnemonics}; a thread can move 16 bytes with one instruction, "
        "and has to "
        "compute as many addresses for one as for all",
        advice=advice,
        location=access_group.location,
        instruction=access_group.first.index,
        fixes=(simulated_fix(advice, wide, alike),),
        covers=frozenset(item.index for item in access_group.instructions),
    )


def _operations(subject: RuleInput, access_group: AccessGroup) -> int:
    """How many loads or stores of the source the group is of: an unrolled line has several."""
    parsed = module(subject, "ttir")
    return max(1, len(operations_at(parsed, access_group))) if parsed is not None else 1


def _share(subject: RuleInput, access_group: AccessGroup) -> float:
    """Bytes of the group as a share of all global traffic of its loop (or outside of loops)."""
    total = sum(
        item.bytes_per_lane
        for item in subject.analysis.memory
        if item.space in GLOBAL_SPACES and item.loop == access_group.first.loop
    )
    return access_group.bytes_per_lane / total


def _is_narrow(item: MemoryInstruction) -> bool:
    return (
        item.space in GLOBAL_SPACES
        and item.kind in ("load", "store")
        and item.bytes_per_lane <= NARROW_BYTES
    )


def _could_be_wide(access_group: AccessGroup) -> bool:
    """Whether the instructions together cover neighbouring bytes.

    Either one lane's pieces lie side by side (lanes are as far apart as the pieces together), or
    the lanes' do (each instruction is contiguous over the wave), so that a lane could take a
    longer piece. A gather or a broadcast could not.
    """
    side_by_side = {access_group.bytes_per_lane, *(2**power for power in range(1, 5))}
    return all(
        item.pattern == "contiguous" or item.stride in side_by_side or _fills_lines(item)
        for item in access_group.instructions
    )


def _fills_lines(item: MemoryInstruction) -> bool:
    """Whether the lanes lie in a few rows (of a tile narrower than the wave), each contiguous."""
    if (
        item.pattern not in ("rows", "irregular")
        or item.lines is None
        or not item.transactions_ideal
    ):
        return False
    return item.lines <= ROWS * item.transactions_ideal


def _is_synthetic(subject: RuleInput, access_group: AccessGroup) -> bool:
    """Whether the source has no such access here: the loads of an atomic's retry loop, say."""
    parsed, location = module(subject, "ttir"), access_group.location
    return parsed is not None and location is not None and not operations_at(parsed, access_group)


def _is_gather(subject: RuleInput, access_group: AccessGroup) -> bool:
    """Whether the address comes from another load."""
    operation, sliced = operation_of(subject, access_group), module_slices(subject, "ttir")
    if operation is None or sliced is None:
        return False
    address = access(operation).address
    return any(item.name == "tt.load" for item in sliced.operations(address))


def _finding(subject: RuleInput, access_group: AccessGroup) -> Finding:
    reason, advice = _cause(subject, access_group)
    return Finding(
        rule=NAME,
        severity="warning"
        if access_group.widest < WORD or _suspects(subject, access_group)[0]
        else "note",
        message=f"{access_group.about} move {count(access_group.widest, 'byte')} per lane where "
        "16 are possible",
        evidence=f"{access_group.mnemonics} for {count(access_group.bytes_per_lane, 'byte')} per "
        "lane; "
        f"{count(-(-access_group.bytes_per_lane // 16), '16-byte instruction')} would do{reason}",
        advice=advice,
        location=access_group.location,
        instruction=access_group.first.index,
        fixes=_fixes(subject, access_group, advice),
        about=access_group.about,
        covers=frozenset(item.index for item in access_group.instructions),
    )


def _fixes(subject: RuleInput, access_group: AccessGroup, advice: str) -> tuple[Fix, ...]:
    """Compiled with what Triton could not prove, where that is all; else simulated."""
    instructions = frozenset(item.index for item in access_group.instructions)
    wide = simulated_fix(advice, widen_accesses, instructions)
    unproven, role = _suspects(subject, access_group)
    values = subject.launch.scalars if subject.launch is not None else {}
    numbers = {arg.name: values.get(arg.name) for arg in unproven if not arg.is_pointer}
    if not unproven or not all(isinstance(value, int) for value in numbers.values()):
        return (wide,)
    if role == "address" and not numbers.keys() <= stride_names(
        subject, access_group.first.argument
    ):
        return ()  # a number that is not the stride of a row cannot be padded
    scalars = {name: multiple(int(value or 0), DIVISOR) for name, value in numbers.items()}
    text = declare_divisible(stage(subject, "ttir"), [arg.name for arg in unproven])
    return (Fix(advice, Recompiled(text, scalars=scalars)),)


def _cause(subject: RuleInput, access_group: AccessGroup) -> tuple[str, str]:
    """What keeps the compiler from widening (appended to the evidence), and what to change."""
    if operation_of(subject, access_group) is None:
        return "", (
            "Let each thread handle 16 neighbouring bytes through one vector type (float4, "
            "an ext_vector_type) and align the pointer and the row stride to 16 bytes."
        )
    suspects, role = _suspects(subject, access_group)
    if not suspects:
        return "; every argument in its address is a known multiple of 16", (
            "Give each lane neighbouring elements: a larger block or fewer warps, and "
            "tl.max_contiguous(tl.multiple_of(offsets, 16), 16) where offsets went through a "
            "modulo or a table."
        )
    reason = (
        f"; its {role} depends on {_values(subject, suspects)}, not known to be "
        f"{'a multiple' if len(suspects) == 1 else 'multiples'} of 16"
    )
    return reason, _divisibility_advice(suspects, role)


def _suspects(
    subject: RuleInput, access_group: AccessGroup
) -> tuple[list[FunctionArgument], Literal["address", "mask"]]:
    """The arguments that Triton could not prove to be aligned, and where they are used."""
    operation, sliced = operation_of(subject, access_group), module_slices(subject, "ttir")
    if operation is None or sliced is None:
        return [], "address"
    memory_access = access(operation)
    unknown = list(sliced.unproven(memory_access.address))
    masked = [arg for arg in sliced.of(memory_access.mask) if not arg.has("tt.divisibility")]
    if unknown:
        return unknown, "address"
    return [arg for arg in masked if not arg.is_pointer], "mask"


def _values(subject: RuleInput, arguments: list[FunctionArgument]) -> str:
    """Names, with their values where the launch knows them: `K = 1000`."""
    scalars = subject.launch.scalars if subject.launch is not None else {}
    return join_names(
        f"{arg.name} = {scalars[arg.name]}" if arg.name in scalars else arg.name
        for arg in arguments
    )


def _divisibility_advice(arguments: list[FunctionArgument], role: str) -> str:
    pointers = [arg.name for arg in arguments if arg.is_pointer]
    numbers = [arg.name for arg in arguments if not arg.is_pointer]
    parts = []
    if pointers:
        parts.append(f"align the data of {join_names(pointers)} to 16 bytes")
    if numbers and role == "address":
        parts.append(
            f"pad the tensor so that {join_names(numbers)} is a multiple of 16 (or pass it as a "
            "tl.constexpr): Triton then adds tt.divisibility"
        )
    elif numbers:
        parts.append(
            f"make {join_names(numbers)} a multiple of 16, or peel the masked tail off so that the "
            "main part has no mask"
        )
    text = ", and ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Narrow access to global memory",
    explanation=f"""\
A lane can move 16 bytes with one instruction. Moving the same bytes in pieces of 2 or 4
multiplies the instructions, the address arithmetic and the work of the address unit. In Triton
the usual cause is something the compiler cannot prove: a pointer that is not 16-byte aligned, a
stride or a bound that is not a multiple of 16 and so gets no `tt.divisibility`.

Fires when one source line became at least {REPEATS} loads or stores of at most {NARROW_BYTES}
bytes per lane whose lanes touch neighbouring bytes, in the kernel's loops (anywhere when it
has none), and they are at least {SHARE:.0%} of the bytes moved there. Names the arguments
whose specialisation is missing.""",
    check=_check,
)
