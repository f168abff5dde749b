"""The data of a code object: what its loader puts in memory with the code.

Read from the linked ELF. Each symbol also gets a word for its address, which takes the place of the
global offset table: code compiled for symbols of other files reads addresses there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from wavecast.isa import elf
from wavecast.isa.program import Data

_SECTIONS = ("rodata", "data", "bss")
_ALIGNMENT = 256
"""Bytes; compilers ask for no more."""
_RELOCATION = struct.Struct("<QQq")
_ABS64, _RELATIVE64 = 3, 13
"""R_AMDGPU_ABS64 and R_AMDGPU_RELATIVE64. Source: LLVM "User Guide for AMDGPU Backend", "Relocation
Records"."""
_TABLE = ".got"
"""The section with addresses of symbols that another file may define."""


def data_of(binary: bytes) -> Data | None:
    """The data of a code object; None where addresses are to be put into it that mean nothing here
    (of functions, of symbols of other files) or where it is not linked. Raises InputError."""
    image = elf.read(binary)
    if not image.is_linked:
        return None
    content, offsets = bytearray(), {}
    for index, section in data_sections(image).items():
        content += bytes(-len(content) % _ALIGNMENT)
        offsets[index] = len(content) - section.address
        ends = (s.value + s.size for s in image.symbols.values() if s.section == index)
        size = max([section.address + section.size, *ends]) - section.address
        content += section.data.ljust(size, b"\0")
    symbols = {
        image.sections[index].name: offset + image.sections[index].address
        for index, offset in offsets.items()
    }
    symbols |= {
        name: offsets[symbol.section] + symbol.value
        for name, symbol in image.symbols.items()
        if symbol.section in offsets
    }
    addresses = []
    for address, target in _relocations(image):
        index = _section(image, address)
        if index not in offsets:  # the table itself
            continue
        to = None if target is None else _section(image, target)
        if target is None or to not in offsets:
            return None
        addresses.append((offsets[index] + address, offsets[to] + target))
    content += bytes(-len(content) % 8)
    words = {name: len(content) + 8 * number for number, name in enumerate(symbols)}
    addresses += [(words[name], symbols[name]) for name in symbols]
    return Data(bytes(content) + bytes(8 * len(words)), symbols, words, tuple(addresses))


def data_sections(image: elf.Elf) -> dict[int, elf.Section]:
    """The sections with data, by their index. Their names are symbols: code of linked objects names
    what has no symbol by its distance from the start of its section."""
    return {
        index: section
        for index, section in enumerate(image.sections)
        if section.name.removeprefix(".").partition(".")[0] in _SECTIONS
    }


def _relocations(image: elf.Elf) -> Iterator[tuple[int, int | None]]:
    """(address, value to store there) of every relocation; None for a value not known here."""
    for address, name, addend in _relocated_symbols(image):
        symbol = image.symbols.get(name) if name else None
        if name == "":
            yield address, addend
        elif symbol is not None and symbol.section is not None:
            yield address, symbol.value + addend
        else:
            yield address, None


def _relocated_symbols(image: elf.Elf) -> Iterator[tuple[int, str | None, int]]:
    """(address, symbol, what is added to its address) of every relocation: "" for none, None for a
    relocation that is not an address."""
    for section in image.sections:
        if not section.name.startswith(".rela"):
            continue
        whole = len(section.data) - len(section.data) % _RELOCATION.size
        for address, info, addend in _RELOCATION.iter_unpack(section.data[:whole]):
            kind, number = info & 0xFFFFFFFF, info >> 32
            if kind == _RELATIVE64:
                yield address, "", addend
            elif kind == _ABS64 and (name := elf.symbol_name(image, section.link, number)):
                yield address, name, addend
            else:
                yield address, None, addend


def address_table(image: elf.Elf) -> dict[int, str]:
    """The words of the global offset table, by their address: the symbol of data whose address a
    word has."""
    tables = [section for section in image.sections if section.name == _TABLE]
    if not tables:
        return {}
    data = data_sections(image)
    named = {s.value: name for name, s in image.symbols.items() if s.section in data}
    named |= {image.sections[index].address: image.sections[index].name for index in data}
    words = {}
    for address, name, addend in _relocated_symbols(image):
        if name is None or not any(t.address <= address < t.address + t.size for t in tables):
            continue
        symbol = image.symbols.get(name)
        if name and addend == 0 and symbol is not None and symbol.section in data:
            words[address] = name
        elif not name and addend in named:
            words[address] = named[addend]
    return words


def _section(image: elf.Elf, address: int) -> int | None:
    for index, section in enumerate(image.sections):
        if section.address and section.address <= address < section.address + section.size:
            return index
    return None
