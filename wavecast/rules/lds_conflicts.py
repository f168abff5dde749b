"""LDS accesses whose lanes meet in the same banks."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.analyze.values.banks import phases
from wavecast.compile.codeobject import CodeObject
from wavecast.isa.opcode import Opcode
from wavecast.rules.accesses import AccessGroup, group
from wavecast.rules.changes import contiguous, simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix, Recompiled
from wavecast.rules.hip_source import SharedArray, arrays_at, pad_rows
from wavecast.rules.loops import hot_loops, pipe_share, straight_matters
from wavecast.rules.wording import count, shared_memory

NAME = "lds-bank-conflicts"

KNOWN_SLOWDOWN = 2.0
"""Slow-down from which on the rule speaks where it is known which lanes are served together."""

DERIVED_SLOWDOWN = 4.0
"""The same where that is derived, not measured or documented."""

_WORDS = {"spec": "documented", "measured": "measured", "derived": "derived"}
"""Status of phases -> the word for it."""

BANK_BYTES = 4
"""Bytes of a bank's word."""

_BYTES = {"char": 1, "__half": 2, "_Float16": 2, "short": 2, "__hip_bfloat16": 2, "double": 8}
"""Bytes of the element types that are not 4 bytes."""

RELEVANT = 0.25
BINDING = 0.5
"""LDS cycles as a share of the busiest pipe's, from which on the rule speaks, and warns."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    shares = {loop.index: pipe_share(subject, loop, "lds") for loop in hot_loops(subject)}
    straight = _straight_share(subject)
    for access_group in group(subject.analysis.memory, lambda item: _conflicts(subject, item)):
        loop = access_group.first.loop
        share = shares.get(loop, 0.0) if loop is not None else straight
        if share is not None and share >= RELEVANT:
            yield _finding(subject, access_group, share)


def _straight_share(subject: RuleInput) -> float | None:
    """LDS cycles as a share of the busiest pipe's in code that is in no loop; None where loops
    take the time."""
    cycles = subject.analysis.straight
    if not straight_matters(subject):
        return None
    return cycles.get("lds", 0.0) / max(cycles.values(), default=1.0)


def _finding(subject: RuleInput, access_group: AccessGroup, share: float) -> Finding:
    worst = max(access_group.instructions, key=lambda item: item.conflict_ways or 0)
    stride = f", lanes {worst.stride} bytes apart" if worst.stride is not None else ""
    status = _status(subject, worst)
    binds = share >= BINDING and status != "derived"
    fixes = tuple(_fixes(subject, access_group))
    memory = shared_memory(subject.code.is_amd)
    return Finding(
        rule=NAME,
        severity="warning" if binds else "note",
        message=f"{memory} {worst.kind}s take {worst.conflict_ways:.3g} times as long as without "
        "bank conflicts",
        evidence=f"{access_group.mnemonics}{stride}; which lanes are served together is "
        f"{_WORDS[status]}{_share(subject, access_group, share)}",
        advice=fixes[0].advice,
        location=access_group.location,
        instruction=worst.index,
        fixes=fixes,
        covers=frozenset(item.index for item in access_group.instructions),
    )


def _share(subject: RuleInput, access_group: AccessGroup, share: float) -> str:
    """How busy the pipe of the LDS is where the accesses are."""
    straight = "the code in no loop" if subject.analysis.loops else "the kernel"
    where = "an iteration" if access_group.first.loop is not None else straight
    pipe = f"{shared_memory(subject.code.is_amd)} pipe"
    return f"; the {pipe} needs {100 * share:.0f}% of the cycles of the busiest pipe in {where}"


def _fixes(subject: RuleInput, access_group: AccessGroup) -> Iterator[Fix]:
    """Padding where the source shows the array, with an odd number of banks or 16 bytes per row;
    and no conflicts at all, which swizzling reaches without more LDS."""
    code, location = subject.code, access_group.location
    line = location.outermost.line if location is not None else 0
    for array in arrays_at(code, line) if _can_be_padded(access_group) else ():
        if array.rank < 2:
            continue
        width = _element_bytes(array.type)
        for elements in dict.fromkeys((max(1, BANK_BYTES // width), max(1, 16 // width))):
            yield Fix(
                f"Pad the rows of {array.name} by {count(elements, 'element')}: "
                f"{array.type} {array.name}[…][{_size(code, array)} + {elements}].",
                Recompiled(pad_rows(code.source_text, array, elements)),
                "padding",
            )
    instructions = (item.index for item in access_group.instructions)
    yield simulated_fix(_advice(subject), contiguous, instructions, "swizzling")


def _can_be_padded(access_group: AccessGroup) -> bool:
    """Whether padding can help: the lanes are in different rows."""
    return all(item.pattern != "broadcast" for item in access_group.instructions)


def _size(code: CodeObject, array: SharedArray) -> str:
    return code.source_text[array.start : array.end].strip()


def _element_bytes(type_: str) -> int:
    """Bytes of an element of a C++ type, those of a bank where it is not one of the registry."""
    byte_count = _BYTES.get(type_.removeprefix("const ").removeprefix("unsigned "))
    return byte_count or BANK_BYTES


def _conflicts(subject: RuleInput, item: MemoryInstruction) -> bool:
    if item.space != "lds" or item.conflict_ways is None:
        return False
    least = DERIVED_SLOWDOWN if _status(subject, item) == "derived" else KNOWN_SLOWDOWN
    return item.conflict_ways >= least


def _status(subject: RuleInput, item: MemoryInstruction) -> str:
    """Status of the groups of lanes that are served together: a key of `_WORDS`.

    Known are those of plain reads and writes, which every target of a family has; not those of
    two-address forms and of the transposing reads only one target has.
    """
    if not subject.code.is_amd or not _is_plain(subject.program.instructions[item.index].opcode):
        return "derived"
    banks = subject.device.facts.integer("lds_banks")
    write = item.kind == "store"
    lanes = subject.device.wave_lanes
    return phases(subject.code.target, item.bytes_per_lane, write, lanes, banks).status


def _is_plain(opcode: Opcode) -> bool:
    two_addresses = any(role.type.endswith("x2") for role in opcode.operands)
    return len(opcode.mnemonics) > 1 and not two_addresses


def _advice(subject: RuleInput) -> str:
    if subject.code.origin == "triton":
        return (
            "Change what decides the shared layout: a BLOCK_K whose row fills all banks (128 bytes "
            "or a multiple), "
            + (
                "operands that are contiguous in K, or kpack=2."
                if subject.code.is_amd and subject.device.capabilities.matrix_half_k
                else "or operands that are contiguous in K."
            )
        )
    return (
        "XOR the column with the row number (swizzle) on both the store and the load: it removes "
        f"the conflicts without more {shared_memory(subject.code.is_amd)}, which padding of the "
        "rows needs."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="LDS bank conflicts",
    explanation=f"""\
LDS is built of banks that serve one 4-byte word each per clock. Lanes that want different words
of one bank at the same time wait for each other. Which lanes are served together depends on the
instruction's width and the chip; it is measured or documented for wide reads of CDNA and derived
elsewhere.

Fires in loops, and in code that is in no loop where that takes a tenth of the time or more, when an
access takes at least {KNOWN_SLOWDOWN:g} times as long as without conflicts
({DERIVED_SLOWDOWN:g} times where the groups are derived) and the LDS pipe needs at least a quarter
of the cycles of the busiest pipe; `warning` from half, where the groups are known. For HIP the fix
is predicted by compiling the kernel with padded rows, else by simulating it without conflicts.""",
    check=_check,
)
