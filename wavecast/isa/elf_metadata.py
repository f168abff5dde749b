"""Kernel descriptors of code objects: the metadata note and the 64-byte descriptor `KERNEL.kd`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wavecast.errors import InputError
from wavecast.isa import elf, kernel_code
from wavecast.isa.metadata import (
    KERNELS,
    Document,
    descriptor,
    kernel_documents,
    processor_of_triple,
)
from wavecast.isa.program import KernelDescriptor

NOTE_OWNER = "AMDGPU"
NOTE_METADATA = 32
"""NT_AMDGPU_METADATA: the msgpack note of code object versions 3 and later."""


def descriptors_from_elf(data: bytes) -> dict[str, KernelDescriptor]:
    """Every kernel of an AMD code object, by symbol. Raises as `descriptors_of`, and InputError
    for a damaged file."""
    return descriptors_of(elf.read(data))


def descriptors_of(
    image: elf.Elf, accepts: Callable[[str], object] | None = None
) -> dict[str, KernelDescriptor]:
    """The kernels of an AMD code object by symbol; with `accepts` those for whose symbol it is
    true.

    Raises InputError when the file is not an AMDGPU ELF, is damaged, or has neither metadata nor a
    kernel descriptor.
    """
    if image.machine != elf.MACHINE_AMDGPU:
        raise InputError(f"not an AMD GPU code object (ELF machine {image.machine})")
    document, code_symbols = metadata_of_elf(image), _descriptor_symbols(image)
    documents = kernel_documents(document)
    processor = processor_of_triple(str(document.get("amdhsa.target", "")))
    processor = processor or elf.processor(image)
    if not documents and not code_symbols:
        raise InputError("AMD code object with no kernel in it")
    kernels = {}
    for name in dict.fromkeys((*documents, *code_symbols)):
        if accepts is not None and not accepts(name):
            continue
        stated, exact = documents.get(name, {}), image.symbols.get(f"{name}.num_vgpr")
        vgprs = exact.value if exact is not None and exact.absolute else None
        directives: dict[str, int] = {}
        if name in code_symbols:
            content = image.content(code_symbols[name])
            directives = kernel_code.directives(content, processor, stated.get(".vgpr_count"))
        kernels[name] = descriptor(name, stated, directives, vgprs, processor)
    return kernels


def kernel_symbols(image: elf.Elf) -> frozenset[str]:
    """The symbols of all kernels of a code object. Raises InputError for damaged metadata."""
    documents = kernel_documents(metadata_of_elf(image))
    return frozenset(documents) | frozenset(_descriptor_symbols(image))


def _descriptor_symbols(image: elf.Elf) -> dict[str, elf.Symbol]:
    """The symbols of kernel descriptors, by the symbol of the kernel."""
    return {
        name: symbol
        for symbol in image.symbols.values()
        if symbol.size == kernel_code.SIZE
        and (name := symbol.name.removesuffix(".kd")) != symbol.name
    }


def metadata_of_elf(image: elf.Elf) -> Document:
    """The metadata document of a code object; empty when it has none. Linkers keep a note per
    linked object: all of them describe kernels. Raises InputError."""
    import msgspec

    merged_document: dict[str, Any] = {}
    for owner, kind, content in image.notes:
        if owner != NOTE_OWNER or kind != NOTE_METADATA:
            continue
        try:
            document = msgspec.msgpack.decode(content)
        except Exception as error:
            raise InputError("the code object's metadata note is damaged") from error
        if not isinstance(document, dict):
            continue
        first, more = merged_document.get(KERNELS, []), document.get(KERNELS, [])
        merged_document = {**document, **merged_document}
        if isinstance(first, list) and isinstance(more, list):
            merged_document[KERNELS] = first + more
    return merged_document


__all__ = ["descriptors_from_elf", "descriptors_of", "kernel_symbols", "metadata_of_elf"]
