"""PyTorch's profiler (Kineto): `export_chrome_trace`, with or without gzip; ROCm and CUDA.

Times are microseconds from `baseTimeNanoseconds`. HIP calls have the category `cuda_runtime` too.
On ROCm a device number is that of the agent, and grid and block are present from ROCm 7 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import IO, Any, Final

import msgspec

from wavecast.profiles.json_stream import ArrayReader
from wavecast.profiles.nesting import nest
from wavecast.profiles.profile import (
    NONE,
    CollectiveMessage,
    MemorySamples,
    Profile,
    ProfiledDevice,
    ProfiledKernel,
    ProfiledOp,
)
from wavecast.profiles.readers.kineto_events import (
    NO_ARGUMENTS,
    Event,
    axes,
    collective_message,
    integer,
    non_negative,
    properties,
)
from wavecast.profiles.readers.sizes import blocks
from wavecast.wording import count

KEY: Final = "traceEvents"
_SCHEMA: Final = 1
"""The only version of Kineto's schema so far."""
_CALLS: Final = frozenset({"cuda_runtime", "cuda_driver", "runtime", "driver"})
_KERNELS: Final = frozenset({"kernel"})
_COPIES: Final = frozenset({"gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_OPS: Final = frozenset({"cpu_op", "operator"})
_MEMORY: Final = "[memory]"
"""An allocation or a release, with what is allocated after it (`profile_memory=True`)."""
_CPU: Final = 0
"""Number of the CPU in `c10::DeviceType`."""
_NAMED_STREAMS: Final = 1 << 20
"""The first number of streams that have names instead of numbers."""
_MODULE: Final = "nn.Module: "
_IN_WORK_ITEMS: Final = "hipExtModuleLaunchKernel"
_RECORDED: Final = "record_param_comms"
"""The operator around a collective that has its message, in files whose kernels do not have it."""


def recognise(head: bytes) -> bool:
    """A Chrome trace, by its first bytes: metadata that precedes the events can be long. The array
    of events can be all of it."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        return b'"ph"' in start
    return any(word in head for word in (b'"traceEvents"', b'"deviceProperties"'))


def read(stream: IO[bytes]) -> Profile:
    """The profile in `stream`, JSON that is already decompressed.

    Raises InputError for a file without events.
    """
    reader = ArrayReader(stream, KEY)
    decoder = msgspec.json.Decoder(list[Event])
    collect = _Collector()
    for batch in reader.batches(decoder.decode):
        collect.add_all(batch)
    profile = collect.profile
    profile.damaged += reader.damaged
    _header(profile, reader.rest)
    if reader.truncated:
        profile.notes.append("the file ends early; what follows is of the part that is there")
    if collect.without_times:
        profile.notes.append(f"{count(collect.without_times, 'event')} without a time, left out")
    nest(profile)
    collect.finish()
    _count_workgroups(profile)
    return profile


def _count_workgroups(profile: Profile) -> None:
    """Grids of launches through `hipExtModuleLaunchKernel` are in work-items."""
    extended = {
        correlation
        for info, correlation in zip(profile.calls.info, profile.calls.correlation, strict=True)
        if profile.call_names[info] == _IN_WORK_ITEMS
    }
    launches = profile.launches
    for number, correlation in enumerate(launches.correlation):
        if correlation in extended:
            info = profile.kernels[launches.info[number]]
            kernel = replace(info, blocks=blocks(info.blocks, info.threads))
            launches.info[number] = profile.kernels.number(kernel)


class _Collector:
    """Puts events into the columns of a profile."""

    def __init__(self) -> None:
        self.profile = Profile("PyTorch profiler")
        self.without_times = 0
        self._threads: dict[tuple[object, object], int] = {}
        self._streams: dict[object, int] = {}
        self._ops: dict[tuple[str, tuple[bytes, ...]], int] = {}
        self._kernels: dict[tuple[object, ...], int] = {}
        self._recorded: dict[int, CollectiveMessage] = {}
        self._handlers: dict[str | None, Callable[[Event], None] | None] = {None: None}

    def add_all(self, events: Iterable[Event]) -> None:
        """Those of categories that are known; those that cannot be read are counted."""
        handlers = self._handlers
        for event in events:
            if event.ph != "X":
                if event.ph == "i" and event.name == _MEMORY:
                    self._memory(event)
                continue
            category = event.cat
            if category not in handlers:
                handlers[category] = self._handler((category or "").lower())
            handler = handlers[category]
            if handler is None:
                continue
            try:
                handler(event)
            except ValueError as error:
                self.profile.leave_out(error)

    def _handler(self, category: str) -> Callable[[Event], None] | None:
        if category in _KERNELS:
            return self._kernel
        if category in _COPIES:
            return self._copy
        if category in _OPS:
            return self._op
        if category in _CALLS:
            return self._call
        if category == "user_annotation":
            return self._annotation
        return self._module if category == "python_function" else None

    def _times(self, event: Event) -> tuple[int, int] | None:
        if event.ts is None or event.dur is None or event.dur < 0:
            self.without_times += 1
            return None
        return round(event.ts * 1000), round(event.dur * 1000)

    def _copy(self, event: Event) -> None:
        where = self._where(event)
        if where is not None:
            profile = self.profile
            size = non_negative((event.args or NO_ARGUMENTS).bytes)
            profile.copies.add(profile.copy_names.number(event.name), *where, size)

    def _where(self, event: Event) -> tuple[int, int, int, int, int] | None:
        """Device, stream, start, duration and correlation of an activity of a device."""
        times = self._times(event)
        if times is None:
            return None
        arguments = event.args or NO_ARGUMENTS
        device = integer(arguments.device if arguments.device is not None else event.pid)
        stream = self._stream(arguments.stream if arguments.stream is not None else event.tid)
        return device, stream, *times, arguments.correlation or NONE

    def _kernel(self, event: Event) -> None:
        arguments = event.args or NO_ARGUMENTS
        grid, block = tuple(arguments.grid or ()), tuple(arguments.block or ())
        key_of_kernel = (event.name, grid, block, arguments.registers, arguments.shared)
        number = self._kernels.get(key_of_kernel)
        if number is None:
            info = ProfiledKernel(
                event.name,
                blocks=axes(grid),
                threads=axes(block),
                registers=int(arguments.registers or 0),
                lds_bytes=int(arguments.shared or 0),
            )
            number = self._kernels[key_of_kernel] = self.profile.kernels.number(info)
        where = self._where(event)
        if where is None:
            return
        launches = self.profile.launches
        launches.add(number, *where)
        message = collective_message(arguments)
        if message is not None:
            self.profile.messages[len(launches) - 1] = message

    def _memory(self, event: Event) -> None:
        arguments = event.args or NO_ARGUMENTS
        device, allocated = non_negative(arguments.device_id), non_negative(arguments.allocated)
        if (
            event.ts is None
            or allocated == NONE
            or non_negative(arguments.device_type) in (NONE, _CPU)
        ):
            return
        memory = self.profile.memory.setdefault(device, MemorySamples())
        reserved = max(allocated, non_negative(arguments.reserved))
        try:
            memory.add(self._thread(event), round(event.ts * 1000), allocated, reserved)
        except ValueError:
            self.profile.damaged += 1

    def _annotation(self, event: Event) -> None:
        times = self._times(event)
        if times is not None:
            profile = self.profile
            number = profile.annotation_names.number(event.name)
            profile.annotations.add(number, self._thread(event), *times)

    def finish(self) -> None:
        """Give collectives the messages of the operators that launched them."""
        launches, messages = self.profile.launches, self.profile.messages
        if self._recorded:
            for number, op in enumerate(launches.op):
                if op in self._recorded:
                    messages.setdefault(number, self._recorded[op])

    def _op(self, event: Event) -> None:
        times = self._times(event)
        if times is None:
            return
        arguments = event.args or NO_ARGUMENTS
        raw = (
            bytes(arguments.sizes),
            bytes(arguments.dtypes),
            bytes(arguments.strides),
            bytes(arguments.values),
        )
        key = (event.name, raw)
        number = self._ops.get(key)
        if number is None:
            texts = (text.decode("utf-8", "replace") for text in raw)
            number = self._ops[key] = self.profile.op_infos.number(ProfiledOp(event.name, *texts))
        ops = self.profile.ops
        ops.add(number, self._thread(event), *times)
        if event.name == _RECORDED:
            message = collective_message(arguments)
            if message is not None:
                self._recorded[len(ops) - 1] = message

    def _call(self, event: Event) -> None:
        times = self._times(event)
        if times is None:
            return
        arguments, profile = event.args or NO_ARGUMENTS, self.profile
        correlation = arguments.correlation or NONE
        number = profile.call_names.number(event.name)
        profile.calls.add(number, self._thread(event), *times, correlation)

    def _module(self, event: Event) -> None:
        if not event.name.startswith(_MODULE):
            return
        times = self._times(event)
        if times is None:
            return
        number = self.profile.modules.number(event.name.removeprefix(_MODULE))
        self.profile.module_calls.add(number, self._thread(event), *times)

    def _stream(self, key: object) -> int:
        """The number of a stream; streams with names follow the numbered ones."""
        number = self._streams.get(key)
        if number is None:
            number = integer(key)
            if number < 0:
                number = _NAMED_STREAMS + len(self._streams)
            self._streams[key] = number
        return number

    def _thread(self, event: Event) -> int:
        return self._threads.setdefault((event.pid, event.tid), len(self._threads))


def _header(profile: Profile, rest: Mapping[str, Any]) -> None:
    """Devices and rank. On ROCm, kernels name agents, which follow those of the host in order."""
    devices = sorted({d for d in (*profile.launches.device, *profile.copies.device) if d >= 0})
    device_properties = properties(rest.get("deviceProperties"))
    by_number = {p.id: p for p in device_properties}
    hip = "hip_runtime_version" in rest or "roctracer_version" in rest or _hip(profile)
    same = len({(p.name, p.units, p.memory_bytes) for p in device_properties}) == 1
    for device in devices:
        entry = by_number.get(device)
        if (entry is None or hip) and device_properties and same:
            entry = device_properties[0]
        profile.devices[device] = entry.device(hip) if entry else ProfiledDevice()
    distributed = rest.get("distributedInfo")
    if isinstance(distributed, dict) and isinstance(distributed.get("rank"), int):
        profile.rank = distributed["rank"]
    version = rest.get("schemaVersion")
    if version not in (None, _SCHEMA):
        profile.notes.append(
            f"schemaVersion is {version!r}, Wavecast knows {_SCHEMA}: what has other names there "
            "is missing here"
        )
    if len(profile.ops) and not any(info.sizes for info in profile.op_infos.values):
        profile.notes.append("operators have no shapes (record_shapes=True records them)")


def _hip(profile: Profile) -> bool:
    return any(name.startswith("hip") for name in profile.call_names.values)


__all__ = ["KEY", "read", "recognise"]
