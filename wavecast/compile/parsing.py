"""From a code object to the program and descriptor of its kernel."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from wavecast import isa
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.data import data_of
from wavecast.errors import InputError
from wavecast.isa.assembly_metadata import descriptors_from_assembly
from wavecast.isa.elf_metadata import descriptors_from_elf
from wavecast.isa.linking import names_data
from wavecast.isa.program import Kernel, KernelDescriptor


def parse_kernel(code: CodeObject, *, link: bool = False) -> Kernel:
    """The program and descriptor of an AMD code object; with `link` the program continues
    with the functions the kernel can reach, and has the data it names.

    The descriptor comes from the assembly's directives, or from the ELF where the assembly is
    a disassembly. Raises InputError when neither has one.
    """
    module = isa.parse(
        code.assembly,
        code.target,
        file=code.source,
        kernel=code.kernel,
        link=link,
        moved_files=code.moved_files,
        is_source=code.origin == "assembly",
    )
    kernel = module.kernels.get(code.kernel)
    if kernel is None:
        kernel = Kernel(code.kernel, module.functions[code.kernel], parse_descriptor(code))
    program, binary = kernel.program, code.stages.get("hsaco")
    if link and isinstance(binary, bytes) and names_data(program.instructions, program.entries):
        return replace(kernel, program=replace(program, data=data_of(binary)))
    return kernel


@lru_cache(maxsize=8)
def _descriptors(elf: bytes) -> dict[str, KernelDescriptor]:
    """Those of a code object: a library has thousands, which are asked for one by one."""
    return descriptors_from_elf(elf)


def parse_descriptor(code: CodeObject) -> KernelDescriptor:
    """The descriptor alone, without reading instructions. Raises InputError as `parse_kernel`."""
    elf = code.stages.get("hsaco")
    descriptor = None
    if code.origin != "elf":  # whose text is a disassembly, without directives
        descriptor = descriptors_from_assembly(code.assembly, code.target).get(code.kernel)
    if descriptor is None and isinstance(elf, bytes):
        descriptor = _descriptors(elf).get(code.kernel)
    if descriptor is not None:
        return descriptor
    raise InputError(
        f"{code.source or code.kernel}: kernel {code.kernel!r} has no kernel descriptor",
        hint="keep its .amdhsa_kernel directives, or give the code object itself",
    )
