"""Source lines of machine code: the `.debug_line` table of a code object."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from wavecast.isa.elf import Elf


@dataclass(frozen=True, slots=True)
class LineTable:
    """Which source line each address comes from.

    `files[n]` is (folder, name) of file number n. Rows are sorted by address; row i holds from
    `addresses[i]` to the next one. A row of file -1 ends a sequence: no source line.
    """

    files: Sequence[tuple[str, str]]
    addresses: Sequence[int]
    rows: Sequence[tuple[int, int, int]]
    """(file, line, column)"""

    def at(self, address: int) -> tuple[int, int, int] | None:
        """(file, line, column) of the instruction at `address`."""
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
    rows: list[tuple[int, tuple[int, int, int]]] = []
    for unit in info.iter_CUs():
        program = info.line_program_for_CU(unit)
        if program is None:
            continue
        base = len(files)
        header = program.header
        version = header["version"]
        files += _files(header, version, unit)
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
    return LineTable(files, [item[0] for item in rows], [item[1] for item in rows])


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
