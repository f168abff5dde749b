"""The code that a HIP program registers or loads: its kernels, and the data they share."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from wavecast.compile import bundle, elf, hip
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.data import data_of
from wavecast.compile.parsing import parse_descriptor
from wavecast.emulate.hostmemory import PAGE
from wavecast.errors import InputError
from wavecast.isa import elf as elf_file
from wavecast.isa.program import KernelArgument, KernelDescriptor
from wavecast.runtimes.hip_host.arena import ArenaPart
from wavecast.runtimes.hip_host.argument_names import argument_names

if TYPE_CHECKING:
    from wavecast.emulate.compiled import NativeKernel


@dataclass
class ModuleKernel:
    """A kernel of a module, with what packing its arguments and checking its launches need."""

    code: CodeObject

    @cached_property
    def descriptor(self) -> KernelDescriptor:
        return parse_descriptor(self.code)

    @property
    def arguments(self) -> tuple[KernelArgument, ...]:
        """The arguments that the program passes."""
        return tuple(a for a in self.descriptor.arguments if not a.kind.startswith("hidden_"))

    @property
    def segment_bytes(self) -> int:
        """Bytes of the argument segment up to the end of the last of them."""
        return max((a.offset + a.size for a in self.arguments), default=0)


@dataclass(frozen=True)
class Variable:
    """A global variable of device code, in the arena."""

    name: str
    address: int
    size: int


class LoadedModule:
    """A code object in the arena: all its kernels use the same data.

    Raises InputError for a damaged one.
    """

    def __init__(self, codes: Sequence[CodeObject], binary: bytes, arena: ArenaPart) -> None:
        self.kernels = [ModuleKernel(code) for code in codes]
        self.data = np.zeros(0, np.uint8)
        self.variables: list[Variable] = []
        placed = data_of(binary)
        if placed is None:
            return
        if placed.content:
            address = arena.reserve(len(placed.content), PAGE)
            self.data = arena.bytes_at(address, len(placed.content))
            self.data[:] = np.frombuffer(placed.content, np.uint8)
            for offset, to in placed.addresses:
                self.data[offset : offset + 8].view(np.uint64)[0] = address + to
            sizes = {name: symbol.size for name, symbol in elf_file.read(binary).symbols.items()}
            self.variables = [
                Variable(name, address + offset, sizes[name])
                for name, offset in placed.symbols.items()
                if name in sizes and not name.endswith(".kd")
            ]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The addresses of the data."""
        first = self.data.ctypes.data
        return [(first, first + self.data.size)] if self.data.size else []

    def has(self, variable: str) -> bool:
        """Whether the code has a variable of this name."""
        return any(symbol.name == variable for symbol in self.variables)

    def share_data(self, native: NativeKernel) -> None:
        """Make a translated kernel use the module's data."""
        if native.data.size:
            native.data = self.data

    def description(self) -> bytes:
        """Kernels and variables as the runtime reads them (`kernels.c`, `load`)."""
        parts = [struct.pack("<I", len(self.kernels))]
        for kernel in self.kernels:
            descriptor, arguments = kernel.descriptor, kernel.arguments
            parts += [
                _encode_name(kernel.code.kernel),
                struct.pack(
                    "<6I",
                    kernel.segment_bytes,
                    descriptor.max_workgroup_size,
                    descriptor.lds_bytes,
                    descriptor.vgprs,
                    descriptor.scratch_bytes,
                    len(arguments),
                ),
                *(struct.pack("<II", argument.offset, argument.size) for argument in arguments),
            ]
        parts.append(struct.pack("<I", len(self.variables)))
        for variable in self.variables:
            parts += [
                _encode_name(variable.name),
                struct.pack("<QQ", variable.address, variable.size),
            ]
        return b"".join(parts)


def load(image: bytes, target: str, arena: ArenaPart) -> LoadedModule:
    """The code of an image for a target; code that was compiled here with its assembly and source.

    Raises InputError for a damaged image, or one without code for the target.
    """
    binary = _member(image, target)
    codes = hip.compiled_program(binary)
    if not codes or codes[0].target != target:
        codes = elf.load(binary, target, "the program")
    return LoadedModule([*map(argument_names.with_names, codes)], binary, arena)


def _member(image: bytes, target: str) -> bytes:
    if not bundle.is_bundle(image):
        return image
    members = list(bundle.members(image))
    for member in members:
        if member.target.split(":")[0] == target:
            return member.data
    there = ", ".join(dict.fromkeys(member.target for member in members)) or "no GPU"
    raise InputError(f"the program has code for {there}, not for {target}", hint="give --arch")


def _encode_name(name: str) -> bytes:
    data = name.encode()
    return struct.pack("<I", len(data)) + data


__all__ = ["LoadedModule", "ModuleKernel", "Variable", "load"]
