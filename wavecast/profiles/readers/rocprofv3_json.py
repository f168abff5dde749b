"""rocprofv3's JSON (`--output-format json`): root `rocprofiler-sdk-tool`, a process per element.

Names of kernels are in `kernel_symbols`, names of GPUs in `agents`; times are nanoseconds, grids
are in work-items.
"""

from __future__ import annotations

from typing import IO, Final

import msgspec

from wavecast.errors import InputError
from wavecast.profiles.json_stream import read_whole
from wavecast.profiles.profile import NONE, Profile, ProfiledDevice, ProfiledKernel
from wavecast.profiles.readers.sizes import blocks
from wavecast.profiles.readers.times import activity_duration
from wavecast.wording import count

ROOT: Final = "rocprofiler-sdk-tool"
_GPU: Final = 2


class _Handle(msgspec.Struct, frozen=True):
    handle: int = 0


class _Correlation(msgspec.Struct, frozen=True):
    internal: int = 0


class _Size(msgspec.Struct, frozen=True):
    x: int = 1
    y: int = 1
    z: int = 1

    @property
    def axes(self) -> tuple[int, int, int]:
        """As a tuple."""
        return (self.x, self.y, self.z)


class _MemoryBank(msgspec.Struct, frozen=True):
    size_in_bytes: int = 0


class _Agent(msgspec.Struct, frozen=True):
    id: _Handle = _Handle()
    type: int = 0
    name: str = ""
    product_name: str = ""
    cu_count: int = 0
    mem_banks: list[_MemoryBank] = msgspec.field(default_factory=list)


class _Symbol(msgspec.Struct, frozen=True):
    kernel_id: int = 0
    kernel_name: str = ""
    demangled_kernel_name: str = ""
    sgpr_count: int = 0
    arch_vgpr_count: int = 0
    accum_vgpr_count: int = 0


class _DispatchInfo(msgspec.Struct, frozen=True):
    kernel_id: int
    agent_id: _Handle = _Handle()
    queue_id: _Handle = _Handle()
    private_segment_size: int = 0
    group_segment_size: int = 0
    workgroup_size: _Size = _Size()
    grid_size: _Size = _Size()


class _Dispatch(msgspec.Struct, frozen=True):
    start_timestamp: int
    end_timestamp: int
    dispatch_info: _DispatchInfo
    correlation_id: _Correlation = _Correlation()
    stream_id: _Handle = _Handle()


class _Copy(msgspec.Struct, frozen=True):
    start_timestamp: int
    end_timestamp: int
    operation: int = 0
    bytes: int = NONE
    dst_agent_id: _Handle = _Handle()
    correlation_id: _Correlation = _Correlation()
    stream_id: _Handle = _Handle()


class _Buffers(msgspec.Struct, frozen=True):
    kernel_dispatch: list[_Dispatch] = msgspec.field(default_factory=list)
    memory_copy: list[_Copy] = msgspec.field(default_factory=list)


class _Process(msgspec.Struct, frozen=True):
    agents: list[_Agent] = msgspec.field(default_factory=list)
    kernel_symbols: list[_Symbol] = msgspec.field(default_factory=list)
    buffer_records: _Buffers = msgspec.field(default_factory=_Buffers)


class _File(msgspec.Struct, frozen=True):
    processes: list[_Process] = msgspec.field(name=ROOT, default_factory=list)


def recognise(head: bytes) -> bool:
    """By the name of the root."""
    return f'"{ROOT}"'.encode() in head


def read(stream: IO[bytes]) -> Profile:
    """Dispatches and copies of all processes. Raises InputError for JSON that is damaged."""
    try:
        document = msgspec.json.decode(read_whole(stream), type=_File)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"not the JSON of rocprofv3: {error}") from None
    profile = Profile("rocprofv3")
    for process in document.processes:
        _process(profile, process)
    return profile


def _process(profile: Profile, process: _Process) -> None:
    gpus = [agent for agent in process.agents if agent.type == _GPU]
    devices = {agent.id.handle: number for number, agent in enumerate(gpus)}
    symbols = {symbol.kernel_id: symbol for symbol in process.kernel_symbols}
    unnamed = 0
    for record in process.buffer_records.kernel_dispatch:
        launch = record.dispatch_info
        symbol = symbols.get(launch.kernel_id)
        if symbol is None:
            unnamed += 1
            symbol = _Symbol(demangled_kernel_name=f"kernel {launch.kernel_id}")
        name = symbol.demangled_kernel_name or symbol.kernel_name
        threads = launch.workgroup_size.axes
        info = ProfiledKernel(
            name.removesuffix(".kd"),
            blocks=blocks(launch.grid_size.axes, threads),
            threads=threads,
            registers=symbol.arch_vgpr_count,
            accumulators=symbol.accum_vgpr_count,
            scalar_registers=symbol.sgpr_count,
            lds_bytes=launch.group_segment_size,
            scratch_bytes=launch.private_segment_size,
        )
        try:
            profile.launches.add(
                profile.kernels.number(info),
                devices.get(launch.agent_id.handle, launch.agent_id.handle),
                record.stream_id.handle or launch.queue_id.handle,
                record.start_timestamp,
                activity_duration(record.start_timestamp, record.end_timestamp),
                record.correlation_id.internal or NONE,
            )
        except ValueError as error:
            profile.leave_out(error)
    for copy in process.buffer_records.memory_copy:
        try:
            profile.copies.add(
                profile.copy_names.number(f"copy {copy.operation}"),
                devices.get(copy.dst_agent_id.handle, copy.dst_agent_id.handle),
                copy.stream_id.handle,
                copy.start_timestamp,
                activity_duration(copy.start_timestamp, copy.end_timestamp),
                copy.correlation_id.internal or NONE,
                copy.bytes,
            )
        except ValueError as error:
            profile.leave_out(error)
    for number in {*profile.launches.device, *profile.copies.device}:
        if 0 <= number < len(gpus):
            agent = gpus[number]
            profile.devices[number] = ProfiledDevice(
                name=agent.product_name,
                target=agent.name,
                units=agent.cu_count,
                memory_bytes=sum(bank.size_in_bytes for bank in agent.mem_banks),
            )
    if unnamed:
        number = count(unnamed, "dispatch", "dispatches")
        profile.notes.append(f"{number} without a symbol that names the kernel")


__all__ = ["ROOT", "read", "recognise"]
