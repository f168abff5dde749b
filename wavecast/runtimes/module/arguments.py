"""Python values as the kernel argument segment that a kernel's metadata describes."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.compile.codeobject import Argument, Parameter, integers_of
from wavecast.dtypes import DTYPES, lookup
from wavecast.emulate.errors import Unsupported
from wavecast.errors import LaunchError
from wavecast.isa.program import KernelArgument
from wavecast.runtimes.module.memory import Memory, describe
from wavecast.runtimes.module.types import (
    element_dtype,
    fits,
    itemsize,
    scalar_dtype,
    vector_type,
)
from wavecast.wording import count

_FLOATS: Final = {name: "<" + lookup(name).struct for name in ("float16", "float32", "float64")}
_INTEGERS: Final = {
    dtype.name: "<" + dtype.struct for dtype in DTYPES.values() if dtype.is_integer and dtype.struct
}
_FLOAT_OF_SIZE: Final = {4: "<f", 8: "<d"}
_ADDRESS_BYTES: Final = 8
_RAW = (bytes, bytearray, memoryview, ctypes.Structure, ctypes.Union, ctypes.Array)


@dataclass(frozen=True, slots=True)
class ArgumentSlot:
    """One argument of a kernel: its `layout` in the segment, and its name and type if the source is
    known."""

    number: int
    layout: KernelArgument
    parameter: Parameter

    @property
    def name(self) -> str:
        """The name, which is unique: `argument 2` without one in the code."""
        return self.parameter.name or f"argument {self.number}"

    @property
    def label(self) -> str:
        """`argument 2 (x: float*)`, as errors name it; numbers count from 1."""
        name, type_ = self.parameter.name, self.parameter.type
        label = f"{name}: {type_}" if name and type_ else name or type_
        return f"argument {self.number}" + (f" ({label})" if label.strip("*") else "")


def slots_of(
    descriptors: Sequence[KernelArgument], parameters: Sequence[Parameter]
) -> tuple[ArgumentSlot, ...]:
    """The visible arguments in order. Triton's code has some that its source does not have."""
    visible = [
        descriptor for descriptor in descriptors if not descriptor.kind.startswith("hidden_")
    ]
    by_offset = {parameter.offset: parameter for parameter in parameters}
    return tuple(
        ArgumentSlot(
            number,
            descriptor,
            by_offset.get(descriptor.offset)
            or Parameter("", "", descriptor.offset, descriptor.size),
        )
        for number, descriptor in enumerate(visible, 1)
    )


def pack(
    slots: Sequence[ArgumentSlot], segment: int, values: Sequence[Any], memory: Memory
) -> tuple[bytes, tuple[Argument, ...]]:
    """The argument segment of `segment` bytes, and the arguments one by one.

    The memory of arrays is added to `memory`. Raises LaunchError for a wrong number of values or
    one that does not fit its argument.
    """
    if len(values) != len(slots):
        names = ", ".join(slot.parameter.name or "?" for slot in slots)
        raise LaunchError(
            f"{memory.kernel} takes {len(slots)} arguments, {len(values)} were given",
            hint=f"it takes ({names})" if names.strip("?, ") else "",
        )
    size = max([segment, *(slot.layout.offset + slot.layout.size for slot in slots)])
    try:
        data = bytearray(size)
    except (MemoryError, OverflowError):
        raise LaunchError(f"{memory.kernel}: no memory for {size:,} bytes of arguments") from None
    arguments = []
    for slot, value in zip(slots, values, strict=True):
        packed, argument = _argument(slot, value, memory)
        if len(packed) != slot.layout.size:
            size = count(slot.layout.size, "byte")
            raise LaunchError(f"{memory.kernel}: {slot.label} has {size}, not {len(packed)}")
        data[slot.layout.offset : slot.layout.offset + slot.layout.size] = packed
        arguments.append(argument)
    return bytes(data), tuple(arguments)


def raw_bytes(value: Any) -> bytes | None:
    """The bytes of a value that is given as bytes (a ctypes structure, a numpy record); else
    None."""
    if isinstance(value, _RAW):
        return bytes(value)
    return value.tobytes() if isinstance(value, np.void) else None


def _argument(slot: ArgumentSlot, value: Any, memory: Memory) -> tuple[bytes, Argument]:
    name = slot.name
    match slot.layout.kind:
        case "global_buffer":
            return _pointer(slot, value, memory)
        case "by_value" if _is_address(slot, value):
            return _pointer(slot, value, memory)
        case "by_value":
            raw = raw_bytes(value)
            return _by_value(slot, value, memory.kernel), Argument(
                name, "scalar", slot.parameter.type,
                value=value if raw is None else integers_of(raw),
            )  # fmt: skip
        case kind:
            raise Unsupported(f"{memory.kernel}: {slot.label} is of kind {kind}")


def _is_address(slot: ArgumentSlot, value: Any) -> bool:
    """Whether an argument of 64 bits without a type takes the address of an array: kernels of
    Tensile declare pointers as numbers."""
    is_array = isinstance(value, np.ndarray) or hasattr(value, "data_ptr")
    return is_array and not slot.parameter.type and slot.layout.size == _ADDRESS_BYTES


def _pointer(slot: ArgumentSlot, value: Any, memory: Memory) -> tuple[bytes, Argument]:
    kind, name = slot.parameter.type, slot.name
    if value is None or _is_integer(value):
        address = int(value or 0)
        if not 0 <= address < 1 << 64:
            raise LaunchError(f"{memory.kernel}: {slot.label}: {address} is not an address")
        return struct.pack("<Q", address), Argument(name, "pointer", value=address)
    region = memory.add(value, slot.label)
    element = element_dtype(kind)
    if element and not fits(region.dtype, element):
        raise LaunchError(
            f"{memory.kernel}: {slot.label} points at {element}, not at {region.dtype}"
        )
    return struct.pack("<Q", region.address), region.argument(name)


def _by_value(slot: ArgumentSlot, value: Any, kernel: str) -> bytes:
    size = slot.layout.size
    raw = raw_bytes(value)
    if raw is not None:
        if len(raw) != size:
            expected_size = count(size, "byte")
            raise LaunchError(
                f"{kernel}: {slot.label} has {expected_size}, the value has {len(raw)}"
            )
        return raw
    if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return _vector(slot, value, kernel)
    dtype = scalar_dtype(slot.parameter.type)
    if itemsize(dtype) != size:
        dtype = ""
    if not dtype and slot.parameter.type and isinstance(value, int) and size in (2, 4, 8):
        raise LaunchError(
            f"{kernel}: {slot.label} may be an integer or a float: its type is not known here",
            hint=f"give a number of {size} bytes with its type: numpy.float32(…), i32:…",
        )
    try:
        packed = _number(dtype, size, value)
    except (struct.error, OverflowError) as error:
        kind = slot.parameter.type or count(size, "byte")
        raise LaunchError(f"{kernel}: {slot.label}: {kind} cannot hold {value!r}") from error
    if packed is None:
        what = dtype or f"a value of {count(size, 'byte')}"
        raise LaunchError(
            f"{kernel}: {slot.label} takes {what}, not {describe(value)}",
            hint=_advice(dtype, size),
        )
    return packed


def _vector(slot: ArgumentSlot, value: Sequence[Any] | np.ndarray, kernel: str) -> bytes:
    """The elements of a vector (`uint2`, `float4`, `dim3`), padded to the size of its slot."""
    dtype, count = vector_type(slot.parameter.type)
    if not count:
        what = slot.parameter.type or f"a value of {slot.layout.size} bytes"
        raise LaunchError(
            f"{kernel}: {slot.label} takes {what}, not a vector of {len(value)} elements",
            hint="give bytes or a ctypes structure",
        )
    if len(value) != count:
        raise LaunchError(
            f"{kernel}: {slot.label} has {count} elements, the value has {len(value)}"
        )
    size = itemsize(dtype)
    try:
        parts = [_number(dtype, size, element) for element in value]
    except (struct.error, OverflowError) as error:
        raise LaunchError(f"{kernel}: {slot.label}: {dtype} cannot hold {value!r}") from error
    if None in parts:
        raise LaunchError(f"{kernel}: {slot.label} takes elements of {dtype}, not {value!r}")
    return b"".join(part for part in parts if part).ljust(slot.layout.size, b"\0")


def _number(dtype: str, size: int, value: Any) -> bytes | None:
    """A number as `dtype`, or as what it is where the type is not known; None when it is none."""
    if isinstance(value, np.generic) and not dtype:
        return value.tobytes() if value.itemsize == size else None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float):
        if dtype == "bfloat16":
            return _bfloat16(value)
        layout = _FLOATS.get(dtype) if dtype else _FLOAT_OF_SIZE.get(size)
        return struct.pack(layout, value) if layout else None
    if not isinstance(value, int) or size not in (1, 2, 4, 8):
        return None
    if dtype in _FLOATS or dtype == "bfloat16":
        return _number(dtype, size, float(value))
    if dtype == "bool":
        return bytes([bool(value)])
    if dtype:
        return struct.pack(_INTEGERS[dtype], value) if dtype in _INTEGERS else None
    return value.to_bytes(size, "little", signed=value < 0)


def _bfloat16(value: float) -> bytes:
    """Rounded to the nearest, ties to even; a NaN stays one."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        return struct.pack("<H", bits >> 16 | 0x40)
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def _advice(dtype: str, size: int) -> str:
    if dtype in _INTEGERS or dtype == "bool":
        return "give an integer"
    if dtype in _FLOATS or dtype == "bfloat16":
        return "give a number"
    if not dtype and size in (1, 2, 4, 8):
        return "give a number, a numpy scalar of that size, or bytes"
    return f"give {count(size, 'byte')} or a ctypes structure"


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
