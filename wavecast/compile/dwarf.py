"""Source lines of machine code: the `.debug_line` table of a code object, and the calls that its
`.debug_info` says were inlined."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wavecast.isa.elf import Elf

Position = tuple[int, int, int]
"""(file, line, column)"""


@dataclass(frozen=True, slots=True)
class InlinedCall:
    """Code that a call was replaced by: addresses, depth among the calls it lies in, call site."""

    first: int
    end: int
    depth: int
    site: Position


@dataclass(frozen=True, slots=True)
class CallTable:
    """Where code was called from before it was inlined: `sites[i]` from `addresses[i]` to the next
    one, the innermost call first, that in the kernel's body last."""

    addresses: Sequence[int]
    sites: Sequence[tuple[Position, ...]]

    @classmethod
    def of(cls, calls: Sequence[InlinedCall]) -> CallTable:
        """The table of these calls."""
        starts = sorted(calls, key=lambda call: call.first)
        addresses = sorted({address for call in calls for address in (call.first, call.end)})
        sites: list[tuple[Position, ...]] = []
        active: list[InlinedCall] = []
        following = 0
        for address in addresses:
            active = [call for call in active if address < call.end]
            while following < len(starts) and starts[following].first == address:
                active.append(starts[following])
                following += 1
            deepest = sorted(active, key=lambda call: -call.depth)
            sites.append(tuple(call.site for call in deepest if call.end > address))
        return cls(addresses, sites)

    def at(self, address: int) -> tuple[Position, ...]:
        """The call sites of the code at `address`."""
        index = bisect_right(self.addresses, address) - 1
        return self.sites[index] if index >= 0 else ()


@dataclass(frozen=True, slots=True)
class LineTable:
    """Which source line each address comes from.

    `files[n]` is (folder, name) of file number n. Rows are sorted by address; row i holds from
    `addresses[i]` to the next one. A row of file -1 ends a sequence: no source line.
    """

    files: Sequence[tuple[str, str]]
    addresses: Sequence[int]
    rows: Sequence[Position]
    calls: CallTable = field(default_factory=lambda: CallTable((), ()))

    def at(self, address: int) -> Position | None:
        """The source line of the instruction at `address`."""
        index = bisect_right(self.addresses, address) - 1
        if index < 0 or self.rows[index][0] < 0:
            return None
        return self.rows[index]


def line_table(data: bytes, image: Elf) -> LineTable | None:
    """The line table of a code object, None when it has none or it cannot be read.

    Debug information is an extra: a damaged table means no source lines, not an error.
    """
    if image.section(".debug_line") is None:
        return None
    if (
        not image.is_linked
        and sum(name.startswith(".text") for name in _nonempty_sections(image)) != 1
    ):
        return None  # addresses of several unlinked sections overlap
    from elftools.elf.elffile import ELFFile

    try:
        info = ELFFile(io.BytesIO(data)).get_dwarf_info(relocate_dwarf_sections=False)
        return _read(info)
    except Exception:  # pyelftools lets whatever its reading of damaged data ran into pass
        return None


def _nonempty_sections(image: Elf) -> list[str]:
    return [section.name for section in image.sections if section.data]


def _read(info) -> LineTable | None:
    files: list[tuple[str, str]] = []
    rows: list[tuple[int, Position]] = []
    calls: list[InlinedCall] = []
    for unit in info.iter_CUs():
        program = info.line_program_for_CU(unit)
        if program is None:
            continue
        base = len(files)
        header = program.header
        version = header["version"]
        files += _files(header, version, unit)
        calls += _inlined(info, unit, base if version >= 5 else base - 1)
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            number = state.file if version >= 5 else state.file - 1
            row = (-1, 0, 0) if state.end_sequence else (base + number, state.line, state.column)
            rows.append((state.address, row))
    if not rows:
        return None
    # At one address the last row wins, except that the end of one sequence yields to the
    # start of the next.
    rows.sort(key=lambda item: (item[0], item[1][0] >= 0))
    return LineTable(
        files, [item[0] for item in rows], [item[1] for item in rows], CallTable.of(calls)
    )


def _inlined(info, unit, base: int) -> Iterator[InlinedCall]:
    """The inlined calls of a unit whose file 0 is `files[base]`."""
    waiting = [(unit.get_top_DIE(), 0)]
    while waiting:
        entry, depth = waiting.pop()
        if entry.tag == "DW_TAG_inlined_subroutine":
            values = {name: attribute.value for name, attribute in entry.attributes.items()}
            if values.get("DW_AT_call_line"):
                file = base + values.get("DW_AT_call_file", 0)
                site = file, values["DW_AT_call_line"], values.get("DW_AT_call_column", 0)
                for first, end in _addresses(info, unit, entry):
                    yield InlinedCall(first, end, depth, site)
            depth += 1
        waiting += ((child, depth) for child in entry.iter_children())


def _addresses(info, unit, entry) -> Iterator[tuple[int, int]]:
    """The intervals of addresses of an entry (DWARF 5, 2.17)."""
    low, high = (entry.attributes.get(f"DW_AT_{name}_pc") for name in ("low", "high"))
    if low is not None and high is not None:
        yield low.value, high.value + (0 if high.form == "DW_FORM_addr" else low.value)
        return
    ranges, lists = entry.attributes.get("DW_AT_ranges"), info.range_lists()
    if ranges is None or lists is None:
        return
    start = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = start.value if start is not None else 0
    for item in lists.get_range_list_at_offset(ranges.value, cu=unit):
        if hasattr(item, "base_address"):
            base = item.base_address
        elif item.is_absolute:
            yield item.begin_offset, item.end_offset
        else:
            yield base + item.begin_offset, base + item.end_offset


def _files(header, version: int, unit) -> list[tuple[str, str]]:
    folders = [_text(item) for item in header["include_directory"]]
    if version < 5:
        top = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        folders = [_text(top.value) if top else "", *folders]
    entries = []
    for item in header["file_entry"]:
        folder = folders[item.dir_index] if item.dir_index < len(folders) else ""
        if folder and not folder.startswith("/") and folders:
            folder = f"{folders[0]}/{folder}"
        entries.append((folder, _text(item.name)))
    return entries


def _text(value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
