"""The parts of an ELF file that describe AMD code: header, sections, symbols, notes.

Reads 64-bit little-endian ELF only, which every AMDGPU and NVIDIA code object is. Every offset is
checked, so that a truncated or damaged file is an InputError and never an index error.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from wavecast.errors import InputError

Content = bytes | mmap.mmap
"""The bytes of a file, in memory or mapped."""

MAGIC: Final = b"\x7fELF"
MACHINE_X86_64: Final = 62
MACHINE_AARCH64: Final = 183
MACHINE_CUDA: Final = 190
MACHINE_AMDGPU: Final = 224

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")

_ET_REL = 1
_SHT_SYMTAB, _SHT_NOTE, _SHT_NOBITS, _SHT_DYNSYM = 2, 7, 8, 11
_PT_NOTE = 4
_SHN_ABS = 0xFFF1

PROCESSORS: Final[dict[int, str]] = {
    0x2C: "gfx900",
    0x2D: "gfx902",
    0x2E: "gfx904",
    0x2F: "gfx906",
    0x30: "gfx908",
    0x31: "gfx909",
    0x32: "gfx90c",
    0x33: "gfx1010",
    0x34: "gfx1011",
    0x35: "gfx1012",
    0x36: "gfx1030",
    0x37: "gfx1031",
    0x38: "gfx1032",
    0x39: "gfx1033",
    0x3D: "gfx1035",
    0x3E: "gfx1034",
    0x3F: "gfx90a",
    0x40: "gfx940",
    0x41: "gfx1100",
    0x42: "gfx1013",
    0x43: "gfx1150",
    0x44: "gfx1103",
    0x45: "gfx1036",
    0x46: "gfx1101",
    0x47: "gfx1102",
    0x48: "gfx1200",
    0x49: "gfx1250",
    0x4A: "gfx1151",
    0x4B: "gfx941",
    0x4C: "gfx942",
    0x4E: "gfx1201",
    0x4F: "gfx950",
    0x51: "gfx9-generic",
    0x52: "gfx10-1-generic",
    0x53: "gfx10-3-generic",
    0x54: "gfx11-generic",
    0x55: "gfx1152",
    0x58: "gfx1153",
    0x59: "gfx12-generic",
    0x5A: "gfx1251",
    0x5B: "gfx12-5-generic",
    0x5F: "gfx9-4-generic",
}
"""EF_AMDGPU_MACH (low byte of e_flags) -> processor, as LLVM 22 writes it, and Triton 3.9's for the
last generic target of gfx12."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of `file`, `size` bytes from `offset` on. `address` is 0 for sections that are
    not loaded; `size` is 0 for NOBITS."""

    name: str
    kind: int
    address: int
    link: int
    offset: int
    size: int
    file: Content = field(repr=False)

    @property
    def data(self) -> bytes:
        """The content, read when it is asked for."""
        return self.file[self.offset : self.offset + self.size]


class Symbol(NamedTuple):
    """One symbol. `section` is the index of its section, None for undefined and absolute ones."""

    name: str
    value: int
    size: int
    section: int | None
    absolute: bool
    is_function: bool


@dataclass(frozen=True, slots=True)
class Elf:
    """An ELF file: machine, flags, and its sections, symbols and notes by name."""

    machine: int
    flags: int
    is_linked: bool
    """False for a relocatable file, whose sections all start at address 0."""
    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]
    """By name, without labels in code and names of registers (`_named`)."""
    notes: tuple[tuple[str, int, bytes], ...]
    """(owner, type, content) of every note."""

    def section(self, name: str) -> Section | None:
        """The first section called `name`."""
        return next((section for section in self.sections if section.name == name), None)

    def content(self, symbol: Symbol) -> bytes:
        """The bytes a symbol covers. Raises InputError where they lie outside its section."""
        if symbol.section is None:
            raise InputError(f"symbol {symbol.name} has no content")
        section = self.sections[symbol.section]
        start = symbol.value - section.address
        if start < 0 or start + symbol.size > section.size:
            raise InputError(f"symbol {symbol.name} lies outside section {section.name}")
        first = section.offset + start
        return section.file[first : first + symbol.size]


def is_elf(data: Content) -> bool:
    """True when `data` starts like an ELF file."""
    return data[:4] == MAGIC


def machine(data: Content) -> int:
    """The e_machine of an ELF file. Raises InputError when the header is cut off."""
    return _header(data)[2]


def symbol_name(elf: Elf, table: int, number: int) -> str:
    """The name of entry `number` of the symbol table in section `table`; "" where there is none."""
    if not 0 <= table < len(elf.sections):
        return ""
    section, start = elf.sections[table], number * _SYMBOL.size
    if start + _SYMBOL.size > section.size or not 0 <= section.link < len(elf.sections):
        return ""
    return _string(elf.sections[section.link].data, _SYMBOL.unpack_from(section.data, start)[0])


def processor(elf: Elf) -> str:
    """The AMD processor of a code object, from its flags. Raises InputError for an unknown one."""
    number = elf.flags & 0xFF
    if number not in PROCESSORS:
        raise InputError(f"AMD code object for an unknown processor (machine number {number:#x})")
    return PROCESSORS[number]


def read(data: Content) -> Elf:
    """Parse an ELF file. Raises InputError when it is truncated or not 64-bit little-endian."""
    header = _header(data)
    try:
        sections = _sections(data, header)
        symbols = {symbol.name: symbol for symbol in _symbols(sections)}
        notes = tuple(_notes(data, header, sections))
    except struct.error as error:
        raise _damage_error(len(data)) from error
    return Elf(header[2], header[7], header[1] != _ET_REL, sections, symbols, notes)


def _header(data: Content) -> tuple:
    if not is_elf(data):
        raise InputError("not an ELF file")
    if len(data) < _HEADER.size:
        raise _damage_error(len(data))
    if data[4] != 2 or data[5] != 1:
        raise InputError("a 32-bit or big-endian ELF file: no GPU code object is one")
    return _HEADER.unpack_from(data)


def _damage_error(size: int) -> InputError:
    return InputError(
        f"ELF file is truncated or damaged ({size} bytes)", hint="copy or build it again"
    )


def _sections(data: Content, header: tuple) -> tuple[Section, ...]:
    start, entry, count, names_index = header[6], header[11], header[12], header[13]
    if not count:
        return ()
    if entry != _SECTION.size or start + entry * count > len(data):
        raise _damage_error(len(data))
    raw = [_SECTION.unpack_from(data, start + index * entry) for index in range(count)]
    ranges = []
    for fields in raw:
        kind, offset, size = fields[1], fields[4], fields[5]
        if kind == _SHT_NOBITS:
            offset = size = 0
        elif offset + size > len(data):
            raise _damage_error(len(data))
        ranges.append((offset, size))
    names = b""
    if names_index < count:
        offset, size = ranges[names_index]
        names = data[offset : offset + size]
    return tuple(
        Section(_string(names, fields[0]), fields[1], fields[3], fields[6], offset, size, data)
        for fields, (offset, size) in zip(raw, ranges, strict=True)
    )


def extent(data: Content, start: int) -> int:
    """Bytes of the ELF file that starts at `start` of `data`, by its header: to the end of its
    section table, segments or sections. Raises InputError where it does not fit."""
    header = _header(data[start : start + _HEADER.size])
    end = max(header[5] + header[9] * header[10], header[6] + header[11] * header[12])
    tables = ((_SEGMENT, 5, 9, 10, 2, 5), (_SECTION, 6, 11, 12, 4, 5))
    for layout, first, entry, count, offset, size in tables:
        if header[count] and header[entry] != layout.size:
            raise _damage_error(len(data))
        if start + header[first] + layout.size * header[count] > len(data):
            raise _damage_error(len(data))
        for index in range(header[count]):
            fields = layout.unpack_from(data, start + header[first] + index * layout.size)
            if layout is _SEGMENT or fields[1] != _SHT_NOBITS:
                end = max(end, fields[offset] + fields[size])
    if start + end > len(data):
        raise _damage_error(len(data))
    return end


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    return table[offset : end if end >= 0 else len(table)].decode("utf-8", "replace")


_REGISTERS: Final = b".num_vgpr"
"""How the one constant that is read ends; LLVM writes ten for each function."""


def _symbols(sections: tuple[Section, ...]) -> Iterator[Symbol]:
    for kind in (_SHT_DYNSYM, _SHT_SYMTAB):
        for section in sections:
            if section.kind != kind or section.link >= len(sections):
                continue
            names = sections[section.link].data
            table = section.data
            unpack, text_end = _SYMBOL.unpack_from, names.find
            for start in _symbol_offsets(table, _REGISTERS + b"\0" in names):
                name, info, _, index, value, size = unpack(table, start)
                end = text_end(b"\0", name)
                end = end if end >= 0 else len(names)
                if index == _SHN_ABS and not names.endswith(_REGISTERS, name, end):
                    continue
                text = names[name:end].decode("utf-8", "replace")
                section_index = index if 0 < index < len(sections) else None
                yield Symbol(text, value, size, section_index, index == _SHN_ABS, info & 0xF == 2)


def _symbol_offsets(table: bytes, absolute: bool) -> Iterator[int]:
    """The offsets of the entries of a symbol table without local symbols without a type; with
    `absolute` those of constants too. Hand-written kernels have hundreds of labels and names of
    registers each."""
    entry, last = _SYMBOL.size, len(table) - len(table) % _SYMBOL.size
    low, high = _SHN_ABS & 0xFF, _SHN_ABS >> 8
    columns = (table[first:last:entry] for first in (4, 6, 7))
    for number, (info, index, index_high) in enumerate(zip(*columns, strict=True)):
        if info or (absolute and index == low and index_high == high):
            yield number * entry


def _notes(
    data: Content, header: tuple, sections: tuple[Section, ...]
) -> Iterator[tuple[str, int, bytes]]:
    blocks = [section.data for section in sections if section.kind == _SHT_NOTE]
    if not blocks:
        blocks = list(_note_segments(data, header))
    for block in blocks:
        position = 0
        while position + _NOTE.size <= len(block):
            name_size, size, kind = _NOTE.unpack_from(block, position)
            name_at = position + _NOTE.size
            content_at = name_at + _align4(name_size)
            if content_at + size > len(block):
                raise _damage_error(len(data))
            owner = block[name_at : name_at + name_size].rstrip(b"\0").decode("latin-1")
            yield owner, kind, block[content_at : content_at + size]
            position = content_at + _align4(size)


def _note_segments(data: Content, header: tuple) -> Iterator[bytes]:
    """PT_NOTE segments, for code objects whose section table was stripped."""
    start, entry, count = header[5], header[9], header[10]
    if not count or entry != _SEGMENT.size or start + entry * count > len(data):
        return
    for index in range(count):
        fields = _SEGMENT.unpack_from(data, start + index * entry)
        if fields[0] == _PT_NOTE and fields[2] + fields[5] <= len(data):
            yield data[fields[2] : fields[2] + fields[5]]


def _align4(size: int) -> int:
    return -(-size // 4) * 4
