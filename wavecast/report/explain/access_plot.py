"""What the lanes of memory instructions touch: cells of cache lines, or banks of the LDS.

A cell is 4 bytes. In global memory a row is a cache line, in the LDS a group of lanes that is
served together, in order; a cell has the first lane that touches it. Addresses are those of the
first wave that was followed, the first time it executes the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from wavecast.analyze.values import AddressPattern, evaluate
from wavecast.compile.parsing import parse_kernel
from wavecast.isa.opcode import Space
from wavecast.report.explain.accesses import MemoryGroup, memory_groups
from wavecast.report.kit import units
from wavecast.report.kit.svg import PlotFrame, figure, n

if TYPE_CHECKING:
    from wavecast.pipeline.explain.result import Explanation

ROWS: Final = 24
"""Cache lines that are drawn of an access."""
_WORD: Final = 4
_CELL: Final = 20.0
_ROW: Final = 19.0
_LABEL: Final = 96.0


@dataclass(frozen=True, slots=True)
class DrawnAccess:
    """Memory instructions alike in line and addresses, with what one of them touches."""

    group: MemoryGroup
    title: str
    image: Markup


def drawn_accesses(explanation: Explanation) -> tuple[DrawnAccess, ...]:
    """The vector memory instructions whose addresses are known; none for NVIDIA code, whose
    addresses are not kept, and for code without a launch."""
    if not explanation.code.is_amd or explanation.launch is None:
        return ()
    kernel = parse_kernel(explanation.code)
    values = evaluate(kernel.program, kernel.descriptor, explanation.code, explanation.launch)
    accesses = []
    for group in memory_groups(explanation.analysis):
        access = values.memory(group.indices[0])
        if access is None or access.offsets is None or group.space == Space.SCALAR.value:
            continue
        if group.space == Space.LDS.value:
            image = _banks(explanation, access)
        else:
            image = _lines(explanation, group, access)
        if image is not None:
            accesses.append(DrawnAccess(group, _title(group), image))
    return tuple(accesses)


def _title(group: MemoryGroup) -> str:
    parts = [f"{group.kind} {group.argument or group.space}", f"{group.bytes_per_lane} B per lane"]
    if group.stride is not None:
        parts.append(f"stride {group.stride} B")
    else:
        parts.append(group.pattern)
    if group.lines is not None and group.transactions_ideal is not None:
        parts.append(f"{group.lines} cache lines, {group.transactions_ideal} needed")
    if group.conflict_ways is not None:
        factor = units.count(round(group.conflict_ways, 1))
        parts.append(f"{factor}× by bank conflicts" if factor != "1" else "no bank conflicts")
    if group.count > 1:
        parts.append(f"{group.count} instructions")
    return ", ".join(parts)


# --- global memory -------------------------------------------------------------------------------


def _lines(explanation: Explanation, group: MemoryGroup, access: AddressPattern) -> Markup | None:
    """The cache lines in the order of their addresses."""
    size = explanation.device.get("l1v_line")
    if not isinstance(size, (int, float)) or access.offsets is None:
        return None
    line = int(size)
    cells: dict[int, dict[int, list[int]]] = {}
    for lane, first, last in _spans(access.offsets, group.bytes_per_lane):
        for word in range(first // _WORD, (last + _WORD - 1) // _WORD):
            row, column = divmod(word * _WORD, line)
            cells.setdefault(row, {}).setdefault(column // _WORD, []).append(lane)
    rows = [(_offset(row * line, access.exact), cells[row]) for row in sorted(cells)[:ROWS]]
    more = len(cells) - len(rows)
    note = f"and {units.plural(more, 'more cache line')}" if more else ""
    columns = line // _WORD
    return _grid("lines", "Bytes that lanes touch, by cache line", rows, columns, access, note)


def _spans(offsets: Sequence[int | None], width: int) -> Iterator[tuple[int, int, int]]:
    """`(lane, first byte, byte after the last)`."""
    for lane, offset in enumerate(offsets):
        if offset is not None:
            yield lane, offset, offset + max(width, 1)


def _offset(first: int, exact: bool) -> str:
    return f"{'+' if exact else 'base+'}{first:#x}"


# --- LDS -----------------------------------------------------------------------------------------


def _banks(explanation: Explanation, access: AddressPattern) -> Markup | None:
    """The groups of lanes in the order they are served. A bank that is asked for two dwords at
    once serves them one after the other."""
    offsets = access.offsets
    if offsets is None:
        return None
    served = access.phases(explanation.device)
    rows: list[tuple[str, Mapping[int, Sequence[int]]]] = []
    words: dict[tuple[int, int], set[int]] = {}
    for lanes in served.groups:
        cells: dict[int, list[int]] = {}
        for lane in lanes:
            offset = offsets[lane] if lane < len(offsets) else None
            if offset is None:
                continue
            for word in range(offset // _WORD, (offset + max(access.width, 1) + 3) // _WORD):
                cells.setdefault(word % served.banks, []).append(lane)
                words.setdefault((len(rows), word % served.banks), set()).add(word)
        if cells:
            rows.append((f"group {len(rows)}", cells))
    passes = {key: len(dwords) for key, dwords in words.items()}
    label = f"Banks that lanes ask for, by group of lanes ({served.status})"
    note = f"the first of {access.parts} accesses of each lane" if access.parts > 1 else ""
    return _grid("banks", label, rows[:ROWS], served.banks, access, note, passes)


# --- drawing -------------------------------------------------------------------------------------


def _grid(
    kind: str,
    label: str,
    rows: Sequence[tuple[str, Mapping[int, Sequence[int]]]],
    columns: int,
    access: AddressPattern,
    note: str,
    passes: Mapping[tuple[int, int], int] | None = None,
) -> Markup:
    """Rows of cells. A cell that lanes touch has the first of them; its shade follows the lane, and
    cells with more than one pass are marked."""
    total = max(1, len(access.offsets or ()))
    frame = PlotFrame(
        _LABEL + columns * _CELL + 8, 18 + _ROW * len(rows) + (16 if note else 0), _LABEL, 8, 18, 0
    )
    body = [
        Markup('<text class="head" x="{x}" y="11" text-anchor="middle">{text}</text>').format(
            x=n(_LABEL + (column + 0.5) * _CELL), text=column if kind == "banks" else column * _WORD
        )
        for column in range(0, columns, 4)
    ]
    for number, (name, cells) in enumerate(rows):
        y = 18 + number * _ROW
        body.append(
            Markup(
                '<text class="row" x="{x}" y="{y}" text-anchor="end">{name}</text>'
                '<rect class="empty" x="{left}" y="{top}" width="{width}" height="{height}"/>'
            ).format(
                x=n(_LABEL - 6),
                y=n(y + 13),
                name=name,
                left=n(_LABEL),
                top=n(y),
                width=n(columns * _CELL),
                height=n(_ROW - 2),
            )
        )
        for column, lanes in sorted(cells.items()):
            several = passes.get((number, column), 1) if passes else 1
            body.append(_cell(column, y, lanes, total, several, name, kind))
    if note:
        y = 18 + _ROW * len(rows) + 11
        body.append(
            Markup('<text class="row" x="{x}" y="{y}">{note}</text>').format(
                x=n(_LABEL), y=n(y), note=note
            )
        )
    return figure(f"access {kind}", label, frame, body)


def _cell(
    column: int, y: float, lanes: Sequence[int], total: int, passes: int, row: str, kind: str
) -> Markup:
    distinct = sorted(set(lanes))
    shade = 25 + round(70 * distinct[0] / max(1, total - 1))
    where = f"bank {column}" if kind == "banks" else f"{row} + {column * _WORD} B"
    who = ", ".join(map(str, distinct[:16])) + (" …" if len(distinct) > 16 else "")
    title = f"{where}: {'lane' if len(distinct) == 1 else 'lanes'} {who}"
    if passes > 1:
        title += f"; {passes} passes"
    return Markup(
        '<g class="cell{conflict}"><rect x="{x}" y="{y}" width="{w}" height="{h}" '
        'fill-opacity="{shade}%"/><text x="{tx}" y="{ty}" text-anchor="middle">{text}</text>'
        "<title>{title}</title></g>"
    ).format(
        conflict=" conflict" if passes > 1 else "",
        x=n(_LABEL + column * _CELL),
        y=n(y),
        w=n(_CELL - 1),
        h=n(_ROW - 2),
        shade=shade,
        tx=n(_LABEL + (column + 0.5) * _CELL - 0.5),
        ty=n(y + 13),
        text=f"×{passes}" if passes > 1 else distinct[0],
        title=title,
    )


__all__ = ["DrawnAccess", "drawn_accesses"]
