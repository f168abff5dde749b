"""What every profiler's output becomes: what ran on which device, when, and what launched it.

Times are integers in nanoseconds from an origin of the file. A profile can have millions of
kernels, so kernels and operators are columns; names and shapes, which repeat, are stored once.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from wavecast.perfmodel.ops.base import Op

Value = TypeVar("Value")

NONE: Final = -1
"""In a column of indices: there is none."""
_LATEST: Final = 1 << 61
"""Nanoseconds: sums of a start and a duration, and their differences, are 64-bit integers."""
_UNREADABLE: Final = (TypeError, ValueError, OverflowError)
"""What columns raise for a value that is not an integer of 64 bits."""


class Unfinished(ValueError):
    """A record without a start and a later end: of an activity that was not seen whole."""


@dataclass(frozen=True, slots=True)
class ProfiledDevice:
    """A GPU as the file describes it. `units`: compute units or SMs; 0 and "" mean unknown."""

    name: str = ""
    target: str = ""
    units: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """What launches of one kernel share. Sizes are in work-items or threads; 0 means unknown.

    `blocks` counts workgroups per axis, `lds_bytes` includes dynamic shared memory.
    """

    name: str
    blocks: tuple[int, int, int] = (0, 0, 0)
    threads: tuple[int, int, int] = (0, 0, 0)
    registers: int = 0
    accumulators: int = 0
    scalar_registers: int = 0
    lds_bytes: int = 0
    scratch_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ProfiledOp:
    """What calls of one operator share: its name and its arguments, as JSON of the profiler.

    `sizes`, `dtypes`, `strides`, `values` have an element per argument; empty where the profile was
    taken without shapes.
    """

    name: str
    sizes: str = ""
    dtypes: str = ""
    strides: str = ""
    values: str = ""


@dataclass(frozen=True, slots=True)
class TracedInstruction:
    """An instruction and what all traced waves together spent at it, in cycles.

    `latency` is what it takes to issue, `stall` the part of it in which a pipe could not take it,
    `idle` the time since the instruction before it, as for a dependency. `source` is a file and a
    line, empty if not known.
    """

    text: str
    source: str
    executions: int
    latency: int
    stall: int
    idle: int

    @property
    def spent(self) -> int:
        """Cycles of all executions, with the time since the instruction before."""
        return self.latency + self.idle

    @property
    def cycles(self) -> float:
        """Cycles of one execution, with the time since the instruction before."""
        return self.spent / self.executions if self.executions else 0.0


@dataclass(frozen=True, slots=True)
class ThreadTrace:
    """A launch of `kernel` as a thread trace has it: `waves` traced waves that take `wave_cycles`
    each on average, at `clock` GHz (None: not in the trace)."""

    kernel: str
    instructions: tuple[TracedInstruction, ...]
    waves: int
    wave_cycles: float
    clock: float | None = None


@dataclass(frozen=True, slots=True)
class CollectiveMessage:
    """What a launch of a collective communicates: `operation` (`allreduce`), the bytes of its input
    and output on one rank, and the ranks of its group (0: not in the file)."""

    operation: str
    input_bytes: int
    output_bytes: int
    ranks: int = 0


class Names(Generic[Value]):
    """Numbers for values that repeat."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._numbers: dict[Value, int] = {}

    def number(self, value: Value) -> int:
        """The number of `value`, the same for equal values."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number

    def __getitem__(self, number: int) -> Value:
        return self.values[number]

    def __len__(self) -> int:
        return len(self.values)


def _column() -> array[int]:
    return array("q")


def _select_rows(column: array[int], mask: NDArray[np.bool_]) -> array[int]:
    return array("q", np.asarray(column, dtype=np.int64)[mask].tobytes())


@dataclass(slots=True)
class Activities:
    """What devices did: a value per activity in every column, in the order of the file.

    `info` numbers the kernels of `Profile.kernels` or the copies of `Profile.copies`; `correlation`
    is the number that the launching host call has too, `op` an index into `Profile.ops`.
    """

    info: array[int] = field(default_factory=_column)
    device: array[int] = field(default_factory=_column)
    stream: array[int] = field(default_factory=_column)
    start: array[int] = field(default_factory=_column)
    duration: array[int] = field(default_factory=_column)
    correlation: array[int] = field(default_factory=_column)
    op: array[int] = field(default_factory=_column)

    def add(
        self,
        info: int,
        device: int,
        stream: int,
        start: int,
        duration: int,
        correlation: int = NONE,
    ) -> None:
        """Append an activity; its operator is not known yet. Raises Unfinished for an end before
        the start, ValueError for values that no run has; then nothing is appended."""
        try:
            if not (-_LATEST < start < _LATEST and -_LATEST < duration < _LATEST):
                raise ValueError(f"start {start}, duration {duration}")
            if duration < 0:
                raise Unfinished(f"start {start}, duration {duration}")
            self.device.append(device)
            self.stream.append(stream)
            self.start.append(start)
            self.duration.append(duration)
            self.correlation.append(correlation)
        except Unfinished:
            raise
        except _UNREADABLE as error:
            self._remove_after(len(self.op))
            raise ValueError(str(error)) from None
        self.info.append(info)
        self.op.append(NONE)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Only the activities for which `mask` is true."""
        for name in ("info", "device", "stream", "start", "duration", "correlation", "op"):
            setattr(self, name, _select_rows(getattr(self, name), mask))

    def _remove_after(self, rows: int) -> None:
        for column in (self.device, self.stream, self.start, self.duration, self.correlation):
            del column[rows:]

    def __len__(self) -> int:
        return len(self.info)


@dataclass(slots=True)
class Copies(Activities):
    """Copies and fills with the bytes of each; NONE where the file does not have them."""

    size: array[int] = field(default_factory=_column)

    def add(
        self,
        info: int,
        device: int,
        stream: int,
        start: int,
        duration: int,
        correlation: int = NONE,
        size: int = NONE,
    ) -> None:
        """Append a copy. Raises ValueError as for other activities."""
        Activities.add(self, info, device, stream, start, duration, correlation)
        self.size.append(size if 0 <= size < _LATEST else NONE)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Only the copies for which `mask` is true."""
        Activities.keep(self, mask)
        self.size = _select_rows(self.size, mask)


@dataclass(slots=True)
class HostCalls:
    """What threads of the host did, in columns: operators (`info` numbers `Profile.op_infos`),
    calls of the runtime and the driver (`info` numbers `Profile.call_names`), or annotations of the
    program (`info` numbers `Profile.annotation_names`)."""

    info: array[int] = field(default_factory=_column)
    thread: array[int] = field(default_factory=_column)
    start: array[int] = field(default_factory=_column)
    duration: array[int] = field(default_factory=_column)
    correlation: array[int] = field(default_factory=_column)
    parent: array[int] = field(default_factory=_column)
    module: array[int] = field(default_factory=_column)

    def add(
        self, info: int, thread: int, start: int, duration: int, correlation: int = NONE
    ) -> None:
        """Append a call; its parent and its module are not known yet. Raises ValueError, and
        appends nothing, for values that no run has."""
        try:
            if not (-_LATEST < start < _LATEST and 0 <= duration < _LATEST):
                raise ValueError(f"start {start}, duration {duration}")
            self.thread.append(thread)
            self.start.append(start)
            self.duration.append(duration)
            self.correlation.append(correlation)
        except _UNREADABLE as error:
            self._remove_after(len(self.info))
            raise ValueError(str(error)) from None
        self.info.append(info)
        self.parent.append(NONE)
        self.module.append(NONE)

    def _remove_after(self, rows: int) -> None:
        for column in (self.thread, self.start, self.duration, self.correlation):
            del column[rows:]

    def __len__(self) -> int:
        return len(self.info)


@dataclass(slots=True)
class MemorySamples:
    """Bytes of a device that PyTorch's allocator has given to tensors (`allocated`) and has from
    the driver (`reserved`), after each allocation and release; `thread` is that of the host."""

    thread: array[int] = field(default_factory=_column)
    time: array[int] = field(default_factory=_column)
    allocated: array[int] = field(default_factory=_column)
    reserved: array[int] = field(default_factory=_column)

    def add(self, thread: int, time: int, allocated: int, reserved: int) -> None:
        """Append a sample. Raises ValueError, and appends nothing, for values that no run has."""
        if not (-_LATEST < time < _LATEST and max(allocated, reserved) < _LATEST):
            raise ValueError(f"time {time}, {allocated} bytes")
        self.thread.append(thread)
        self.time.append(time)
        self.allocated.append(allocated)
        self.reserved.append(reserved)

    def __len__(self) -> int:
        return len(self.time)


@dataclass(slots=True)
class Profile:
    """A run on some devices.

    `messages` has what collectives communicate by number of the launch, `annotations` the ranges
    that the program named (`record_function`), `memory` the memory of devices by the numbers that
    PyTorch gives them, `traces` thread traces by number of the kernel,
    `operations` what operators compute that PyTorch does not have, by number of `op_infos`.
    `notes` say what the file lacks, `damaged` counts the records that cannot be read and are left
    out, `unfinished` those of activities without a start and a later end. After the time of a
    device in `unknown_from`, why it is idle is not known. Without `timeline`, the file has sums:
    times of launches are means, and their starts and order are made up.
    """

    tool: str
    devices: dict[int, ProfiledDevice] = field(default_factory=dict)
    kernels: Names[ProfiledKernel] = field(default_factory=Names)
    launches: Activities = field(default_factory=Activities)
    copy_names: Names[str] = field(default_factory=Names)
    copies: Copies = field(default_factory=Copies)
    messages: dict[int, CollectiveMessage] = field(default_factory=dict)
    op_infos: Names[ProfiledOp] = field(default_factory=Names)
    ops: HostCalls = field(default_factory=HostCalls)
    call_names: Names[str] = field(default_factory=Names)
    calls: HostCalls = field(default_factory=HostCalls)
    modules: Names[str] = field(default_factory=Names)
    module_calls: HostCalls = field(default_factory=HostCalls)
    annotation_names: Names[str] = field(default_factory=Names)
    annotations: HostCalls = field(default_factory=HostCalls)
    memory: dict[int, MemorySamples] = field(default_factory=dict)
    counters: dict[int, dict[str, float]] = field(default_factory=dict)
    traces: dict[int, ThreadTrace] = field(default_factory=dict)
    operations: dict[int, tuple[Op, ...]] = field(default_factory=dict)
    rank: int = 0
    timeline: bool = True
    notes: list[str] = field(default_factory=list)
    damaged: int = 0
    unfinished: int = 0
    unknown_from: dict[int, int] = field(default_factory=dict)

    def leave_out(self, error: ValueError) -> None:
        """Count a record that a table did not take."""
        if isinstance(error, Unfinished):
            self.unfinished += 1
        else:
            self.damaged += 1

    def keep_launches(self, mask: NDArray[np.bool_]) -> None:
        """Only the launches for which `mask` is true, with their messages and counters."""
        number = np.cumsum(mask) - 1
        self.launches.keep(mask)
        self.messages = {int(number[n]): message for n, message in self.messages.items() if mask[n]}
        self.counters = {int(number[n]): counts for n, counts in self.counters.items() if mask[n]}


__all__ = [
    "NONE",
    "Activities",
    "CollectiveMessage",
    "Copies",
    "HostCalls",
    "MemorySamples",
    "Names",
    "Profile",
    "ProfiledDevice",
    "ProfiledKernel",
    "ProfiledOp",
    "ThreadTrace",
    "TracedInstruction",
    "Unfinished",
]
