"""The tensors of a launch: which memory belongs to each argument, and what an address is called."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wavecast.compile.codeobject import Argument, Launch, Parameter
from wavecast.dtypes import is_dtype, lookup
from wavecast.isa.program import KernelDescriptor
from wavecast.wording import count

CANARY: Final = 0x7FF5_7FE3_7FA9_7FDB
"""The pattern of memory that was allocated and never written: its 16-bit quarters are NaN as f16
and as bf16, and so is every larger float cut from it."""

AddressInterval = tuple[int, int]
"""The first host address of some memory, and the one after its last."""


@dataclass(frozen=True, slots=True)
class LaunchTensor:
    """Memory that a pointer argument gives access to: host addresses `first` to before `end`.

    `pointer` is the argument's value, the address of element 0. The elements of a view are its
    memory, not the rest of its storage; without a shape it is the whole range the pointer lies in.
    `element` is the size of one element in bytes, 0 where the dtype is unknown; `slot` the offset
    of the pointer in the argument segment, -1 for memory that no argument points to.
    """

    name: str
    pointer: int
    first: int
    end: int
    dtype: str = ""
    element: int = 0
    slot: int = -1

    def index(self, address: int) -> str:
        """`input[4096]`: an address as an element, negative ones included."""
        offset = address - self.pointer
        if not self.element:
            return f"byte {offset:#x} of {self.name}"
        return f"{self.name}[{offset // self.element}]"

    def distance(self, address: int) -> int:
        """Bytes from the tensor to an address, negative in it."""
        return self.first - address if address < self.first else address - self.end

    @property
    def extent(self) -> str:
        """`4096 elements`, or bytes where the dtype is unknown."""
        size = self.end - self.first
        if self.element:
            return count(size // self.element, "element")
        return count(size, "byte")


def tensors_of(
    launch: Launch, descriptor: KernelDescriptor, ranges: Sequence[AddressInterval]
) -> list[LaunchTensor]:
    """The memory of every pointer argument, in order; a structure may hold several pointers.

    `ranges` are the addresses the launch may touch. Pointers to other memory are left out.
    """
    from wavecast.analyze.values.pointers import Pointers

    code = launch.code
    arguments = _arguments_by_offset(launch)
    parameters = {parameter.offset: parameter for parameter in code.parameters}
    tensors = []
    for name, offset, size in Pointers(code, descriptor, members=True).slots:
        parameter = parameters.get(offset)
        argument = arguments.get(offset)
        for start, pointer in _pointers(launch.kernarg[offset : offset + size]):
            interval = next((r for r in ranges if r[0] <= pointer < r[1]), None)
            if interval is not None:
                tensor = _tensor(name, pointer, interval, argument, parameter)
                tensors.append(replace(tensor, slot=offset + start))
    return tensors


def bytes_at(first: int, end: int) -> np.ndarray:
    """The bytes at host addresses, as they are now (uint8[end - first])."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * (end - first)).from_address(first))


def element_at(tensors: Sequence[LaunchTensor], address: int) -> str:
    """`input[4096]` of the tensor an address lies in, or the address."""
    owners = [tensor for tensor in tensors if tensor.first <= address < tensor.end]
    if not owners:
        return f"the address {address:#x}"
    return min(owners, key=lambda tensor: tensor.end - tensor.first).index(address)


def outside(tensors: Sequence[LaunchTensor], mine: Sequence[LaunchTensor], address: int) -> str:
    """What is wrong with an access at an address outside the tensors that it may touch: `mine`,
    none where it is not known which."""
    if not mine:
        where = element_at(tensors, address)
        return f"touches {where}, outside the memory that it may use; mask the access"
    nearest = min(mine, key=lambda tensor: tensor.distance(address))
    text = f"touches {nearest.index(address)}, outside {nearest.name} ({nearest.extent})"
    if len(mine) > 1:
        others = ", ".join(dict.fromkeys(tensor.name for tensor in mine if tensor is not nearest))
        text += f" and outside {others}"
    owner = element_at([tensor for tensor in tensors if tensor not in mine], address)
    if "[" in owner:
        text += f": it lands in {owner}"
    return f"{text}; mask the access, or pass the tensor it belongs to"


def _arguments_by_offset(launch: Launch) -> Mapping[int, Argument]:
    """The arguments by their offset in the argument segment."""
    parameters = [p for p in launch.code.named_parameters if p.offset is not None]
    if len(parameters) == len(launch.arguments):
        pairs = zip(parameters, launch.arguments, strict=True)
        return {parameter.offset or 0: argument for parameter, argument in pairs}
    by_name = {argument.name: argument for argument in launch.arguments}
    return {p.offset or 0: by_name[p.name] for p in parameters if p.name in by_name}


def _pointers(data: bytes) -> Iterator[tuple[int, int]]:
    for start in range(0, len(data) - 7, 8):
        yield start, int.from_bytes(data[start : start + 8], "little")


def _tensor(
    name: str,
    pointer: int,
    interval: AddressInterval,
    argument: Argument | None,
    parameter: Parameter | None,
) -> LaunchTensor:
    first, end = interval
    dtype = argument.dtype if argument is not None and argument.dtype else _pointee(parameter)
    bits = lookup(dtype).bits if is_dtype(dtype) else 0
    element = bits // 8 if bits % 8 == 0 else 0
    viewed = argument is not None and argument.kind == "tensor" and element
    if viewed and argument is not None and len(argument.shape) == len(argument.strides):
        steps = [(n - 1) * step for n, step in zip(argument.shape, argument.strides, strict=True)]
        if 0 in argument.shape:
            first = end = pointer
        else:
            first = max(first, pointer + element * sum(min(0, step) for step in steps))
            last = pointer + element * sum(max(0, step) for step in steps)
            end = min(end, last + element)
    return LaunchTensor(name, pointer, first, end, dtype, element)


def _pointee(parameter: Parameter | None) -> str:
    """The dtype a pointer type points at (`*fp32` of Triton, `float*` of HIP), "" for others."""
    if parameter is None or "*" not in parameter.type:
        return ""
    name = parameter.type.replace("*", "").replace("const ", "").strip()
    return lookup(name).name if is_dtype(name) else ""


__all__ = [
    "CANARY",
    "AddressInterval",
    "LaunchTensor",
    "bytes_at",
    "element_at",
    "outside",
    "tensors_of",
]
