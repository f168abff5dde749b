"""What orders the works of a HIP program: streams, events and the host's waits.

A work is a launch, a copy, a fill or a free. It happens behind the works before it in its stream,
behind the events that its stream waits for, and behind what the host has waited for when it submits
it. The null stream is behind all streams that are not created as non-blocking, and they behind it.
All threads of the host count as one.

Source: HIP programming guide, "Asynchronous concurrent execution" and "Stream synchronization
behavior".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wavecast.emulate.check.gpus.stream_order import NOTHING, Before
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.program import Program

NULL_STREAM = 0
FREE = "the free"


@dataclass(frozen=True, slots=True)
class StreamWork:
    """A work: its number among all (from 1), `name`, the `position` in its queue, what has ended
    `before`, and where the host submits it. `program` is a kernel's, `device` the GPU."""

    number: int
    name: str
    stream: str
    queue: int
    position: int
    before: Before
    location: SourceLocation | None = None
    program: Program | None = None
    device: int = 0

    def is_before(self, before: Before) -> bool:
        """Whether the work has ended before."""
        return before.ended.get(self.queue, 0) >= self.position

    @property
    def verb(self) -> str:
        """What a work does that is not a load or a store."""
        return "frees" if self.name == FREE else ""

    @property
    def where(self) -> str:
        """`stream 2 (line 14)`."""
        line = f" (line {self.location.line})" if self.location is not None else ""
        return f"{self.stream}{line}"

    @property
    def description(self) -> str:
        """`the copy in stream 2 (line 14)`."""
        return f"{self.name} in {self.where}"


@dataclass(slots=True)
class _Queue:
    device: int
    number: int
    name: str
    blocking: bool
    before: Before = NOTHING
    position: int = 0


@dataclass(slots=True)
class WorkOrder:
    """The streams of one program, by device and number; 0 is a device's null stream."""

    host: Before = NOTHING
    works: list[StreamWork] = field(default_factory=list)
    _queues: dict[tuple[int, int], _Queue] = field(default_factory=dict)
    _created: int = 0
    _devices: dict[int, int] = field(default_factory=dict)
    _events: dict[int, Before] = field(default_factory=dict)

    def create(self, device: int, stream: int, *, blocking: bool) -> None:
        """The program has created a stream."""
        self._created += 1
        self._devices[stream] = device
        name = f"stream {self._created}"
        self._queues[device, stream] = _Queue(device, len(self._queues), name, blocking)

    def submit(
        self,
        device: int,
        stream: int,
        name: str,
        location: SourceLocation | None,
        program: Program | None = None,
    ) -> StreamWork:
        """The next work of a stream."""
        queue = self._queue(device, stream)
        before = self._behind(queue).join(self.host)
        queue.position += 1
        work = StreamWork(
            len(self.works) + 1, name, queue.name, queue.number, queue.position, before, location,
            program, queue.device,
        )  # fmt: skip
        queue.before = Before({**before.ended, queue.number: queue.position})
        self.works.append(work)
        return work

    def record(self, device: int, event: int, stream: int) -> None:
        """An event is behind the works of a stream."""
        self._events[event] = self._behind(self._queue(device, stream))

    def wait(self, device: int, stream: int, event: int) -> None:
        """A stream continues behind an event."""
        queue = self._queue(device, stream)
        queue.before = queue.before.join(self._events.get(event, NOTHING))

    def host_waits_for_stream(self, device: int, stream: int) -> None:
        self.host = self.host.join(self._behind(self._queue(device, stream)))

    def host_waits_for_event(self, event: int) -> None:
        self.host = self.host.join(self._events.get(event, NOTHING))

    def host_waits_for_all(self) -> None:
        for queue in self._queues.values():
            self.host = self.host.join(queue.before)

    def work(self, number: int) -> StreamWork:
        """A work by its number."""
        return self.works[number - 1]

    def _queue(self, device: int, stream: int) -> _Queue:
        device = self._devices.get(stream, device)
        if (device, stream) not in self._queues:
            name = "the null stream" if stream == NULL_STREAM else "a stream"
            self._queues[device, stream] = _Queue(device, len(self._queues), name, True)
        return self._queues[device, stream]

    def _behind(self, queue: _Queue) -> Before:
        """What the next work of a queue is behind, without the host."""
        null = self._queue(queue.device, NULL_STREAM)
        if queue is null:
            total = NOTHING
            for other in self._queues.values():
                if other.device == queue.device and other.blocking:
                    total = total.join(other.before)
            return total
        return queue.before.join(null.before) if queue.blocking else queue.before


__all__ = ["FREE", "NULL_STREAM", "StreamWork", "WorkOrder"]
