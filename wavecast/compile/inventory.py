"""The kernels of a code file with what their descriptors state, without their instructions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from wavecast.arch.generic_targets import MEMBERS
from wavecast.compile import containers, kinds, map_file
from wavecast.compile.disassemble import functions
from wavecast.compile.member import Member
from wavecast.errors import InputError, UsageError, WavecastError
from wavecast.isa import elf
from wavecast.isa.collector import no_collections
from wavecast.isa.elf_metadata import descriptors_of, kernel_symbols
from wavecast.isa.program import KernelDescriptor
from wavecast.isa.targets import isa_target


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel of a file. `code_bytes` are those up to the next function, 0 for a kernel without a
    symbol; `archived` is the file of an archive that it is in. `descriptor` is None where the
    processor is not one whose descriptors are read."""

    kernel: str
    target: str
    code_bytes: int
    archived: str
    descriptor: KernelDescriptor | None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The kernels of a file in its order; `unread` has a line for each code object that cannot be
    read, `objects` counts the code objects of the asked target."""

    entries: tuple[KernelEntry, ...]
    objects: int
    unread: tuple[str, ...]


@no_collections()
def inventory(path: str | Path, targets: Collection[str] = (), kernels: str = "") -> Inventory:
    """The kernels of a code object, a bundle, a host program or an archive whose symbol the regular
    expression `kernels` occurs in. With `targets` only those of processors that share an
    instruction set with one of them.

    Raises InputError for a file that is damaged or has no AMD code object, UsageError for source
    and NVIDIA code.
    """
    data = map_file(path)
    kind = kinds.kind_of(data, Path(path))
    if kind is not kinds.FileKind.AMD_OBJECT:
        raise UsageError(
            f"{path} is {kind.value}: AMD code objects are listed",
            hint="a code object, a bundle, a program, a shared library or an archive",
        )
    isa_targets = frozenset(map(isa_target, targets))
    pattern = re.compile(kernels)
    entries: list[KernelEntry] = []
    unread: list[str] = []
    present: dict[str, None] = {}
    objects = 0
    try:
        for number, member in enumerate(containers.members(data), 1):
            try:
                processor, member_entries = _member(member, isa_targets, pattern)
            except WavecastError as error:
                unread.append(f"code object {number} {member.target}: {error.message}")
                continue
            present[processor] = None
            if member_entries is not None:
                objects += 1
                entries += member_entries
    except WavecastError as error:
        if not present and not unread:
            raise InputError(f"{path}: {error.message}", hint=error.hint) from error
        unread.append(error.message)
    if not objects and not unread:
        raise InputError(
            f"{path} has no code for {', '.join(targets)}"
            if present
            else f"{path}: no AMD code object in it",
            hint="it has " + ", ".join(present) if present else "",
        )
    return Inventory(tuple(entries), objects, tuple(unread))


def _member(
    member: Member, isa_targets: Set[str], pattern: re.Pattern[str]
) -> tuple[str, list[KernelEntry] | None]:
    """The processor of a code object and its kernels; None for another instruction set."""
    if member.target and not _matches(member.target, isa_targets):
        return member.target, None
    image = elf.read(member.data)
    processor = member.target or elf.processor(image)
    if not _matches(processor, isa_targets):
        return processor, None
    descriptors = dict(_kernel_descriptors(image, pattern))
    symbols = descriptors.keys()
    if pattern.pattern:
        symbols |= kernel_symbols(image)
    sizes = {name: stop - start for name, _, start, stop in functions(image, symbols)}
    entries = [
        KernelEntry(name, processor, sizes.get(name, 0), member.archived, descriptor)
        for name, descriptor in descriptors.items()
    ]
    return processor, entries


def _matches(processor: str, isa_targets: Set[str]) -> bool:
    return not isa_targets or any(
        _isa(member) in isa_targets for member in MEMBERS.get(processor, (processor,))
    )


def _isa(processor: str) -> str:
    """The instruction set of a processor, "" where it is not supported."""
    try:
        return isa_target(processor)
    except WavecastError:
        return ""


def _kernel_descriptors(
    image: elf.Elf, pattern: re.Pattern[str]
) -> Iterator[tuple[str, KernelDescriptor | None]]:
    try:
        descriptors: Mapping[str, KernelDescriptor | None] = descriptors_of(image, pattern.search)
    except UsageError:  # a processor that no device has
        descriptors = dict.fromkeys(filter(pattern.search, sorted(kernel_symbols(image))))
    yield from descriptors.items()
