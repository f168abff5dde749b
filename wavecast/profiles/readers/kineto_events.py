"""Events of PyTorch's profiler as msgspec decodes them, and the values in their arguments."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wavecast.dtypes import lookup
from wavecast.errors import UnknownName
from wavecast.profiles.profile import NONE, CollectiveMessage, ProfiledDevice


class Arguments(msgspec.Struct, frozen=True):
    """Those that are used. What only some events have is decoded when it is needed."""

    device: int | str | None = None
    stream: int | str | None = None
    correlation: int | None = None
    grid: list[int] | None = None
    block: list[int] | None = None
    registers: float | None = msgspec.field(default=None, name="registers per thread")
    shared: float | None = msgspec.field(default=None, name="shared memory")
    sizes: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    dtypes: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    strides: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Strides")
    values: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Concrete Inputs")
    bytes: msgspec.Raw = msgspec.Raw(b"")
    collective: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Collective name")
    inputs: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="In msg nelems")
    outputs: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Out msg nelems")
    element: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="dtype")
    ranks: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Group size")
    allocated: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Total Allocated")
    reserved: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Total Reserved")
    device_id: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Device Id")
    device_type: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Device Type")


class Event(msgspec.Struct, frozen=True):
    """Times are microseconds."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float | None = None
    dur: float | None = None
    args: Arguments | None = None


class DeviceProperties(msgspec.Struct, frozen=True):
    """What PyTorch says of a GPU."""

    id: int | None = None
    name: str | None = None
    units: int | None = msgspec.field(default=None, name="numSms")
    memory_bytes: int | None = msgspec.field(default=None, name="totalGlobalMem")
    major: int | None = msgspec.field(default=None, name="computeMajor")
    minor: int | None = msgspec.field(default=None, name="computeMinor")

    def device(self, hip: bool) -> ProfiledDevice:
        """With the compute capability as target, unless it is a GPU of AMD."""
        target = "" if hip or self.major is None else f"sm_{self.major}{self.minor}"
        return ProfiledDevice(self.name or "", target, self.units or 0, self.memory_bytes or 0)


NO_ARGUMENTS: Final = Arguments()


def integer(value: object) -> int:
    """A device or stream number; -1 for text that is none."""
    if isinstance(value, int):
        return value
    try:
        return int(str(value), 0)
    except ValueError:
        return -1


def collective_message(arguments: Arguments) -> CollectiveMessage | None:
    """What a collective communicates; None where the event does not have all of it."""
    operation, element = _text(arguments.collective), _text(arguments.element)
    sizes = non_negative(arguments.inputs), non_negative(arguments.outputs)
    if not operation or min(sizes) < 0:
        return None
    try:
        dtype = lookup(element)
    except UnknownName:
        return None
    ranks = max(0, non_negative(arguments.ranks))
    return CollectiveMessage(
        operation.lower(), *(size * dtype.bits // 8 for size in sizes), ranks=ranks
    )


def _text(value: msgspec.Raw) -> str:
    """Empty for what is not text."""
    content = _decode_value(value)
    return content if isinstance(content, str) else ""


def non_negative(value: msgspec.Raw) -> int:
    """NONE for what is not a number of elements, bytes or ranks."""
    number = _decode_value(value)
    return number if isinstance(number, int) and number >= 0 else NONE


def _decode_value(value: msgspec.Raw) -> object:
    if not value:
        return None
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return None


def axes(value: tuple[int, ...]) -> tuple[int, int, int]:
    """Sizes of three axes; zeros for what has none or more."""
    if not 1 <= len(value) <= 3:
        return (0, 0, 0)
    x, y, z = (*value, 1, 1)[:3]
    return (x, y, z)


def properties(entries: Any) -> list[DeviceProperties]:
    """Those that can be read."""
    device_properties = []
    for entry in entries if isinstance(entries, list) else ():
        try:
            device_properties.append(msgspec.convert(entry, DeviceProperties))
        except msgspec.ValidationError:
            continue
    return device_properties


__all__ = [
    "NO_ARGUMENTS",
    "Arguments",
    "DeviceProperties",
    "Event",
    "axes",
    "collective_message",
    "integer",
    "non_negative",
    "properties",
]
