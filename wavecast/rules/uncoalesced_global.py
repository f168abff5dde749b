"""Lanes of a wave that touch many more cache lines than their bytes need."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from wavecast import dtypes
from wavecast.analyze.result import MemoryInstruction
from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.reshaping import split_loop
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.accesses import AccessGroup, group
from wavecast.rules.changes import contiguous, simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Array, Fix
from wavecast.rules.loops import GLOBAL_SPACES, matters
from wavecast.rules.rates import placement
from wavecast.rules.tiles import NARROWEST, block_sizes, resize_block
from wavecast.rules.wording import join_names
from wavecast.wording import count

NAME = "uncoalesced-global"

EXCESS = 4
"""Cache lines touched, as a multiple of the ideal, from which on the rule speaks."""

_PLURALS = {"load": "loads", "store": "stores", "load_to_lds": "loads to LDS"}


def _check(subject: RuleInput) -> Iterator[Finding]:
    for access_group in group(subject.analysis.memory, _is_scattered):
        if matters(subject, access_group.first) and not _share_lines(access_group):
            yield _finding(subject, access_group)


def _is_scattered(item: MemoryInstruction) -> bool:
    if item.space not in GLOBAL_SPACES or item.kind not in _PLURALS:
        return False
    return (
        item.lines is not None
        and bool(item.transactions_ideal)
        and item.lines >= EXCESS * (item.transactions_ideal or 1)
    )


def _share_lines(access_group: AccessGroup) -> bool:
    """Whether the instructions of a line use the same cache lines up between them.

    Lanes that take 16 bytes in four pieces are 16 bytes apart in each instruction: narrow, but no
    byte of a cache line is left over.
    """
    strides = [item.stride for item in access_group.instructions]
    return all(
        stride is not None and abs(stride) <= access_group.bytes_per_lane for stride in strides
    )


def _finding(subject: RuleInput, access_group: AccessGroup) -> Finding:
    worst = max(access_group.instructions, key=_excess)
    instructions = frozenset(item.index for item in access_group.instructions)
    kind = _PLURALS[worst.kind]
    about = f"{kind} of {worst.argument}" if worst.argument else kind
    gather = worst.pattern == "irregular"
    advice = _narrow_tile(subject, worst) or _advice(subject, gather)
    if worst.stride is not None:
        distance = f"neighbouring lanes are {count(worst.stride, 'byte')} apart"
    elif worst.row_bytes is not None:
        distance = f"the lanes' addresses jump after {count(worst.row_bytes, 'byte')}"
    else:
        distance = "the lanes' addresses follow no single stride"
    return Finding(
        rule=NAME,
        severity="note" if gather else "warning",
        message=f"{about} touch {worst.lines} cache lines per wave, "
        f"{worst.transactions_ideal} would do",
        evidence=f"{access_group.mnemonics}: {distance}, {count(worst.bytes_per_lane, 'byte')} "
        "per lane",
        advice=advice,
        location=access_group.location,
        instruction=worst.index,
        fixes=(
            *_wave_per_row(subject, access_group, instructions),
            *_longer_rows(subject, worst),
            replace(simulated_fix(advice, contiguous, instructions), at_best=True),
        ),
        covers=instructions,
        about=about,
    )


def _wave_per_row(
    subject: RuleInput, access_group: AccessGroup, instructions: frozenset[int]
) -> Iterator[Fix]:
    """A wave instead of a lane for each row that a loop goes through, where the device has room for
    as many more waves."""
    lanes, analysis, loop = subject.device.wave_lanes, subject.analysis, access_group.first.loop
    loops = [
        candidate
        for candidate in analysis.loops
        if candidate.index == loop and candidate.trip_count is not None
    ]
    if subject.code.origin == "triton" or not loops or not _has_room(subject):
        return
    stride, trips = access_group.first.stride, loops[0].trip_count or 0.0
    if access_group.first.kind != "load" or stride is None or trips < lanes or loop is None:
        return
    index = loop

    def change(changes: LaunchChanges, mask: Array) -> LaunchTiming:
        return split_loop(
            changes.with_contiguous(mask), analysis, index, lanes, 0.0, has_addition=False
        )

    yield simulated_fix(
        f"Let the {lanes} lanes of a wave go through one row together, an element in each lane, "
        "and combine their results by shuffles, with a wave instead of a thread for each row.",
        change,
        instructions,
    )


def _longer_rows(subject: RuleInput, access: MemoryInstruction) -> Iterator[Fix]:
    """Tiles of Triton with longer rows in memory, up to a cache line."""
    element, line = _element_bytes(subject, access), _line_bytes(subject)
    for block in block_sizes(subject, NARROWEST):
        if not element or block.value * element != access.row_bytes:
            continue
        for row_bytes in (line // 4, line // 2, line):
            value = row_bytes // element
            change = resize_block(subject, block, value) if value > block.value else None
            if change is not None:
                text = block.text(value)
                yield Fix(
                    f"Use {text} (now {block.value}): a row of the tile is "
                    f"{count(block.value * element, 'contiguous byte')}, a cache line {line}.",
                    change,
                    text,
                )


def _narrow_tile(subject: RuleInput, access: MemoryInstruction) -> str:
    """Advice for a tile of Triton that has few of the elements that are contiguous in memory; ""
    for another access."""
    element, line = _element_bytes(subject, access), _line_bytes(subject)
    row_bytes = access.row_bytes
    if not element or row_bytes is None or row_bytes >= line:
        return ""
    names = [
        parameter.name
        for parameter in subject.code.parameters
        if parameter.constant == row_bytes // element and not isinstance(parameter.constant, bool)
    ]
    if not names:
        return ""
    return (
        f"Let the tile have more of the elements that are contiguous in memory: its rows "
        f"({join_names(names)} = {row_bytes // element}) have {count(row_bytes, 'byte')}, a cache "
        f"line {line}."
    )


def _element_bytes(subject: RuleInput, access: MemoryInstruction) -> int:
    """Bytes of an element of the tensor that a kernel of Triton accesses; 0 if it is not known."""
    if subject.code.origin != "triton" or subject.launch is None:
        return 0
    dtypes_by_name = {argument.name: argument.dtype for argument in subject.launch.arguments}
    dtype = dtypes_by_name.get(access.argument, "")
    return int(dtypes.element_bytes(dtype)) if dtype and dtypes.is_dtype(dtype) else 0


def _line_bytes(subject: RuleInput) -> int:
    return subject.device.facts.integer("l1v_line", "B")


def _has_room(subject: RuleInput) -> bool:
    """Whether the launch has fewer waves than fit the device."""
    limits, launch = placement(subject), subject.launch
    if launch is None or limits.units is None:
        return False
    occupancy = subject.analysis.occupancy
    waves = math.prod(launch.grid) * occupancy.waves_per_workgroup
    return waves < limits.units * limits.simds * occupancy.waves_per_simd


def _excess(item: MemoryInstruction) -> float:
    return (item.lines or 0) / (item.transactions_ideal or 1)


def _advice(subject: RuleInput, gather: bool) -> str:
    if gather:
        return (
            "Let a lane take at least a cache line's worth per gathered row, or sort or pack the "
            "rows first so that neighbours come together."
        )
    if subject.code.origin == "triton":
        return (
            "Let the tile dimension that is contiguous in memory be the one whose stride is the "
            "constant 1 in the kernel (a stride argument hides it), load along it, and transpose "
            "the tile with tl.trans; or store the tensor transposed."
        )
    return (
        "Map threadIdx.x to the dimension that is contiguous in memory; transpose through LDS "
        "where the computation needs the other order."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Uncoalesced global access",
    explanation=f"""\
The vector cache serves one cache line per clock. A wave whose lanes lie in the same few lines is
served in as many clocks as it has lines; lanes that are a row apart touch a line each, and most
of every line fetched is thrown away or must survive in a small cache until it is used.

Fires for accesses that touch at least {EXCESS} times the lines their bytes fill, in the
kernel's loops (anywhere when it has none). Gathers, which have no stride, are only a `note`.""",
    check=_check,
)
