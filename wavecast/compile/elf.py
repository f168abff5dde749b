"""AMD code objects, offload bundles and fat binaries to `CodeObject`s, one per kernel."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from wavecast.compile import bundle, disassemble
from wavecast.compile.assembly import code_objects, resolve_target
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.digest import key
from wavecast.compile.stages import ObjectStages
from wavecast.errors import InputError, WavecastError
from wavecast.isa import elf
from wavecast.isa.metadata import descriptors_from_elf
from wavecast.isa.targets import isa_target

_FORMAT = 5
"""Version of the text `disassemble` writes; part of the cache key."""

_MACHINE_NAMES = {
    elf.MACHINE_X86_64: "an x86-64 program or library",
    elf.MACHINE_AARCH64: "an AArch64 program or library",
    elf.MACHINE_CUDA: "an NVIDIA cubin",
}


def load(
    data: bytes, target: str = "", file: str | Path = "", *, cache: DiskCache | None = None
) -> list[CodeObject]:
    """Code objects of an hsaco, a bundle, or a host program with device code in it.

    A container with several targets gives all of them, or only the one `target` names. Raises
    InputError for a truncated, foreign or empty file or a target it does not hold, and
    MissingTool where nothing can decompress it.
    """
    where = str(file) or "the file"
    if target.startswith("sm_"):
        raise InputError(f"{where} is AMD code, not code for {target}", hint="say a gfx target")
    try:
        if bundle.is_bundle(data):
            return _load_members(bundle.members(data), target, where, cache)
        image = elf.read(data)
        if image.machine == elf.MACHINE_AMDGPU:
            return _load_code_object(data, image, target, where, cache)
        return _load_members(_fat_members(image), target, where, cache)
    except InputError as error:
        if where in error.message:
            raise
        raise type(error)(f"{where}: {error.message}", hint=error.hint) from error


def _fat_members(image: elf.Elf) -> list[bundle.Member]:
    name = _MACHINE_NAMES.get(image.machine, f"an ELF file for machine {image.machine}")
    if image.machine == elf.MACHINE_CUDA:
        raise InputError(f"{name}, not AMD code", hint="give an sm_ target such as --arch sm_90")
    if image.section(bundle.FAT_SECTION) is None:
        raise InputError(
            f"{name} with no GPU code in it",
            hint=f"AMD device code lies in a {bundle.FAT_SECTION} section, as hipcc writes it",
        )
    return bundle.fat_binary(image)


def _load_members(
    members: list[bundle.Member], target: str, where: str, cache: DiskCache | None
) -> list[CodeObject]:
    present = list(dict.fromkeys(member.target for member in members))
    if not members:
        raise InputError(f"{where}: no AMD code object in it")
    if target:
        asked = isa_target(target)
        members = [m for m in members if _same_isa(m.target, asked)]
        if not members:
            raise InputError(
                f"{where} has no code for {target}", hint="it has " + ", ".join(present)
            )
    found: list[CodeObject] = []
    problem: WavecastError | None = None
    for member in members:
        try:
            image = elf.read(member.data)
            found += _load_code_object(member.data, image, member.target, where, cache)
        except WavecastError as error:
            problem = error
    if not found and problem is not None:
        raise problem
    return found


def _same_isa(processor: str, asked: str) -> bool:
    try:
        return isa_target(processor) == asked
    except WavecastError:
        return False


def _load_code_object(
    data: bytes, image: elf.Elf, target: str, where: str, cache: DiskCache | None
) -> list[CodeObject]:
    processor = resolve_target(elf.processor(image), target, where)
    descriptors = descriptors_from_elf(data)
    if not disassemble.has_functions(image, descriptors):
        raise InputError("AMD code object without function symbols", hint="build it without -s")
    cache = cache if cache is not None else DiskCache()
    found = code_objects(
        descriptors,
        target=processor,
        origin="elf",
        stages={"hsaco": data},
        source=where if where != "the file" else "",
        source_text="",
        compiler=_producer(image),
    )

    def text_of(code: CodeObject) -> str:
        entry = key("disassembly", _FORMAT, processor, code.digest)
        text = cache.get(entry)
        if not isinstance(text, str):
            text = disassemble.disassemble(data, image, processor, descriptors, code.kernel)
            cache.put(entry, text)
        return text

    return [replace(code, stages=ObjectStages(data, partial(text_of, code))) for code in found]


def _producer(image: elf.Elf) -> str:
    """The first line of `.comment`, where compilers sign: `AMD clang version 19.0.0git …`."""
    section = image.section(".comment")
    if section is None:
        return ""
    names = [name.decode("utf-8", "replace") for name in section.data.split(b"\0") if name]
    return next((name for name in names if not name.startswith("Linker")), "")
