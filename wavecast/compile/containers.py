"""The device code objects of a file: code objects, bundles, host programs and archives of them.

Nothing is copied before a member's bytes are asked for, so that one kernel of a mapped library
costs its own code object. Only compressed bundles are unpacked when the iteration comes to them.
Layout of archives: GNU binutils "ar", System V and BSD names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from wavecast.compile import bundle
from wavecast.compile.member import Member, slice_of
from wavecast.errors import InputError, WavecastError
from wavecast.isa import elf
from wavecast.isa.elf import Content

FAT_SECTION: Final = ".hip_fatbin"
ARCHIVE: Final = b"!<arch>\n"
THIN_ARCHIVE: Final = b"!<thin>\n"

_MACHINE_NAMES: Final = {
    elf.MACHINE_X86_64: "an x86-64 program or library",
    elf.MACHINE_AARCH64: "an AArch64 program or library",
    elf.MACHINE_CUDA: "an NVIDIA cubin",
}
_EMBEDDED: Final = elf.MAGIC + b"\x02\x01\x01\x40"
"""How an AMD code object begins: 64-bit, little-endian, version 1, ELFOSABI_AMDGPU_HSA."""
_HEAD: Final = 60
_NAME: Final = slice(0, 16)
_SIZE: Final = slice(48, 58)
_END_OF_HEAD: Final = slice(58, 60)


def is_container(data: Content) -> bool:
    """Whether `members` reads a file that begins like this."""
    return elf.is_elf(data) or bundle.is_bundle(data) or data[: len(ARCHIVE)] == ARCHIVE


def members(data: Content) -> Iterator[Member]:
    """The AMD code objects of a file, in its order. Raises InputError for a file that is damaged or
    cannot have any."""
    if data[: len(ARCHIVE)] == ARCHIVE:
        yield from _of_archive(data)
    else:
        yield from _of_object(data)


def _of_object(data: Content) -> Iterator[Member]:
    if bundle.is_bundle(data):
        yield from bundle.members(data)
        return
    image = elf.read(data)
    if image.machine == elf.MACHINE_AMDGPU:
        yield Member("", len(data), slice_of(data, 0, len(data)))
        return
    name = _MACHINE_NAMES.get(image.machine, f"an ELF file for machine {image.machine}")
    if image.machine == elf.MACHINE_CUDA:
        raise InputError(f"{name}, not AMD code", hint="give an sm_ target such as --arch sm_90")
    fat = [section for section in image.sections if section.name == FAT_SECTION and section.size]
    for section in fat:
        yield from bundle.members(data, section.offset, section.offset + section.size)
    has_code = bool(fat)
    if not fat:
        for member in _embedded_members(data):
            has_code = True
            yield member
    if not has_code:
        raise InputError(
            f"{name} with no GPU code in it",
            hint=f"AMD device code lies in a {FAT_SECTION} section, as hipcc writes it",
        )


def _embedded_members(data: Content) -> Iterator[Member]:
    """Code objects and bundles among the data of a host program: runtimes of other compilers load
    them from arrays."""
    position, following = 1, {_EMBEDDED: 0, bundle.MAGIC: 0}
    while True:
        for magic, offset in following.items():
            if offset < position:
                offset = data.find(magic, position)
                following[magic] = offset if offset >= 0 else len(data)
        position = min(following.values())
        if position == len(data):
            return
        if position == following[_EMBEDDED]:
            size = _whole(data, position)
            if size:
                yield Member("", size, slice_of(data, position, size))
            position += max(size, len(_EMBEDDED))
        else:
            try:
                batch, position = bundle.entries(data, position, len(data))
            except InputError:  # a text that begins like a bundle
                batch, position = [], position + len(bundle.MAGIC)
            yield from batch


def _whole(data: Content, start: int) -> int:
    """Bytes of the code object at `start`; 0 where the bytes only begin like one."""
    try:
        size = elf.extent(data, start)
        machine = elf.machine(data[start : start + size])
    except InputError:
        return 0
    return size if machine == elf.MACHINE_AMDGPU else 0


def _of_archive(data: Content) -> Iterator[Member]:
    long_names, has_code = b"", False
    problem: WavecastError | None = None
    for name, start, size in _archive_members(data):
        if name == "//":
            long_names = data[start : start + size]
            continue
        if name in ("/", "/SYM64/", "__.SYMDEF"):
            continue
        member_name = _long_name(name, long_names)
        content = data[start : start + size]
        if not elf.is_elf(content) and not bundle.is_bundle(content):
            continue
        try:
            for member in _of_object(content):
                has_code = True
                yield replace(member, archived=member_name)
        except WavecastError as error:
            problem = error
    if not has_code:
        why = f": {problem.message}" if problem is not None else ""
        raise InputError(f"a static library with no GPU code in it{why}")


def _archive_members(data: Content) -> Iterator[tuple[str, int, int]]:
    """(name, first byte, bytes) of every file of an archive. Raises InputError for a damaged
    one."""
    position = len(ARCHIVE)
    while position + _HEAD <= len(data):
        head = data[position : position + _HEAD]
        size_text = head[_SIZE].strip()
        if head[_END_OF_HEAD] != b"`\n" or not size_text.isdigit():
            raise InputError("archive is damaged", hint="copy or build it again")
        name, start, size = head[_NAME].decode("latin-1").strip(), position + _HEAD, int(size_text)
        if start + size > len(data):
            raise InputError("archive is truncated", hint="copy or build it again")
        position = start + size + size % 2
        if name.startswith("#1/") and name[3:].isdigit():  # BSD: the name precedes the content
            length = min(int(name[3:]), size)
            name = data[start : start + length].rstrip(b"\0").decode("latin-1")
            start, size = start + length, size - length
        yield name, start, size


def _long_name(name: str, table: bytes) -> str:
    """A file's name; `/17` is the one at byte 17 of the archive's table of names."""
    if name[:1] == "/" and name[1:].isdigit():
        first = int(name[1:])
        return table[first:].split(b"\n", 1)[0].decode("latin-1").rstrip("/")
    return name.rstrip("/")
