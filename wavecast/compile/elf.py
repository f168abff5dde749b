"""AMD code objects, offload bundles and fat binaries to `CodeObject`s, one per kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from wavecast.arch.generic_targets import processor_of
from wavecast.compile import containers, disassemble
from wavecast.compile.assembly import code_objects, resolve_target
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.digest import key
from wavecast.compile.dwarf import line_table
from wavecast.compile.member import Member
from wavecast.compile.stages import ObjectStages
from wavecast.errors import InputError, WavecastError
from wavecast.isa import elf
from wavecast.isa.elf import Content
from wavecast.isa.elf_metadata import descriptors_of, kernel_symbols
from wavecast.isa.targets import isa_target

_FORMAT = 20
"""Version of the text `disassemble` writes; part of the cache key."""


def load(
    data: Content,
    target: str = "",
    file: str | Path = "",
    *,
    kernels: str = "",
    cache: DiskCache | None = None,
) -> list[CodeObject]:
    """Code objects of an hsaco, a bundle, a host program with device code, or an archive of them.

    A container with several targets gives all of them, or only the one `target` names. `kernels`
    is a regular expression: only kernels whose symbol it occurs in are read, possibly none. Equal
    kernels of several code objects are one. Raises InputError for a truncated, foreign or empty
    file or a target it does not have.
    """
    where = str(file) or "the file"
    if target.startswith("sm_"):
        raise InputError(f"{where} is AMD code, not code for {target}", hint="say a gfx target")
    try:
        return _load_members(containers.members(data), target, where, kernels, cache)
    except InputError as error:
        if where in error.message:
            raise
        raise type(error)(f"{where}: {error.message}", hint=error.hint) from error


def targets(data: Content) -> list[str]:
    """The processors that a file has code for. Raises as `load`."""
    return list(dict.fromkeys(_processor(member) for member in containers.members(data)))


def _processor(member: Member) -> str:
    return member.target or elf.processor(elf.read(member.data))


def _load_members(
    members: Iterable[Member], target: str, where: str, kernels: str, cache: DiskCache | None
) -> list[CodeObject]:
    present: dict[str, None] = {}
    isa = isa_target(target) if target else ""
    codes: list[CodeObject] = []
    problem: WavecastError | None = None
    matched = read = False
    for member in members:
        try:
            processor = _processor(member)
            present[processor] = None
            if isa and not _same_isa(processor_of(processor, target), isa):
                continue
            matched = True
            chosen = processor_of(processor, target)
            codes += _load_code_object(member.data, chosen, where, kernels, cache)
            read = True
        except WavecastError as error:
            problem = error
    if problem is not None and not read:
        raise problem
    codes = list({code.digest: code for code in codes}.values())
    if not present:
        raise InputError(f"{where}: no AMD code object in it")
    if not matched:
        raise InputError(f"{where} has no code for {target}", hint="it has " + ", ".join(present))
    return codes


def _same_isa(processor: str, isa: str) -> bool:
    try:
        return isa_target(processor) == isa
    except WavecastError:
        return False


def _load_code_object(
    data: bytes, target: str, where: str, kernels: str, cache: DiskCache | None
) -> list[CodeObject]:
    image = elf.read(data)
    processor = resolve_target(elf.processor(image), target, where)
    symbols = kernel_symbols(image)
    descriptors = descriptors_of(image, re.compile(kernels).search)
    if not descriptors:
        return []
    if not disassemble.has_functions(image, symbols):
        raise InputError("AMD code object without function symbols", hint="build it without -s")
    cache = cache if cache is not None else DiskCache()
    codes = code_objects(
        descriptors,
        target=processor,
        origin="elf",
        stages={"hsaco": data},
        source=where if where != "the file" else "",
        source_text="",
        compiler=_producer(image),
    )

    lines = lru_cache(partial(line_table, data, image))

    def text_of(code: CodeObject) -> str:
        entry = key("disassembly", _FORMAT, processor, code.digest)
        text = cache.get(entry)
        if not isinstance(text, str):
            descriptor = descriptors[code.kernel]
            text = disassemble.disassemble(
                image, lines(), processor, symbols, code.kernel, descriptor
            )
            cache.put(entry, text)
        return text

    return [replace(code, stages=ObjectStages(data, partial(text_of, code))) for code in codes]


def _producer(image: elf.Elf) -> str:
    """The first line of `.comment`, where compilers sign: `AMD clang version 19.0.0git …`."""
    section = image.section(".comment")
    if section is None:
        return ""
    names = [name.decode("utf-8", "replace") for name in section.data.split(b"\0") if name]
    return next((name for name in names if not name.startswith("Linker")), "")
