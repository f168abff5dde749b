"""Slices of a Perfetto trace: packets, and what each sequence of packets has told before.

A packet belongs to the sequence of its writer, which numbers texts that repeat, gives defaults and
defines clocks. Clocks with small numbers count nanoseconds for all; those from 64 on are of a
sequence: a snapshot relates them to the others, and they can count since the packet before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final

from wavecast.files import LARGEST
from wavecast.profiles.json_stream import CHUNK, read_some
from wavecast.profiles.readers import perfetto_schema as schema

_FRAME: Final = 0x0A
"""The tag of a packet: field 1, with its length."""
_OWN_CLOCKS: Final = range(64, 128)
_BOOT: Final = 6
"""The clock of packets that name none."""
_SHIFT: Final = 7
_VARINT, _TEXT = 0, 2
_BYTES: Final = {1: 8, 5: 4}
"""Bytes of values by wire type."""
_LONGEST_VARINT: Final = 10


@dataclass(frozen=True, slots=True)
class PerfettoSlice:
    """An activity: nanoseconds, the track and its name, and annotations by name. `blocks` and
    `threads` are of kernels that the schema describes, else None."""

    name: str
    category: str
    track: int
    track_name: str
    start: int
    duration: int
    values: Mapping[str, int | float | str]
    device: int | None = None
    blocks: tuple[int, int, int] | None = None
    threads: tuple[int, int, int] | None = None


@dataclass(slots=True)
class _OwnClock:
    """A clock of a sequence: it has counted `units` of `unit` nanoseconds at `moment`."""

    incremental: bool
    unit: int
    units: int
    moment: int


@dataclass(slots=True)
class _Sequence:
    """What a sequence has told: numbered texts, defaults, clocks, and slices that are open."""

    texts: dict[tuple[str, int], str] = field(default_factory=dict)
    compute: set[int] = field(default_factory=set)
    known: bool = False
    track: int = 0
    clock: int = 0
    clocks: dict[int, _OwnClock] = field(default_factory=dict)
    open: dict[int, list[tuple[int, int, str, str, Any]]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget texts and defaults."""
        self.texts.clear()
        self.compute.clear()
        self.known, self.track, self.clock = True, 0, 0


class PacketReader:
    """Reads a trace packet by packet: `slices` gives what is complete. Afterwards `truncated` says
    that the file ends early, `damaged` counts packets that do not decode, `incomplete` slices
    without an end or without what their sequence told, `unrelated` events of clocks that no
    snapshot relates to the others, `dropped` packets before which the writer lost some."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._sequences: dict[int, _Sequence] = {}
        self._tracks: dict[int, str] = {}
        self._offsets: dict[int, int] = {}
        self.truncated = False
        self.damaged = self.incomplete = self.unrelated = self.dropped = 0

    def slices(self) -> Iterator[PerfettoSlice]:
        """All slices, in the order of their ends in the file."""
        for text in self._packets():
            yield from self._decode(text)
        for sequence in self._sequences.values():
            self.incomplete += sum(map(len, sequence.open.values()))

    def _packets(self) -> Iterator[bytes]:
        pending = b""
        while True:
            more, whole = read_some(self._stream, CHUNK)
            self.truncated |= not whole
            pending += more
            read = 0
            for packet, end in frames(pending):
                if end is None:
                    break
                read = end
                yield packet
            pending = pending[read:]
            if not more or (pending and pending[0] != _FRAME) or len(pending) > LARGEST:
                self.truncated |= bool(pending)
                return

    def _decode(self, text: bytes) -> Iterator[PerfettoSlice]:
        try:
            packet = schema.messages().TracePacket.FromString(text)
        except Exception as error:  # DecodeError is of a library that may be absent
            if type(error).__name__ != "DecodeError":
                raise
            self.damaged += 1
            return
        if packet.compressed_packets:
            yield from self._decompress(packet.compressed_packets)
            return
        yield from self._packet(packet)

    def _decompress(self, packed: bytes) -> Iterator[PerfettoSlice]:
        unpacker = zlib.decompressobj()
        try:
            text = unpacker.decompress(packed, LARGEST)
        except zlib.error:
            self.damaged += 1
            return
        for frame, end in frames(text):
            if end is None:
                self.damaged += 1
                return
            yield from self._decode(frame)

    def _packet(self, packet: Any) -> Iterator[PerfettoSlice]:
        sequence = self._sequences.setdefault(packet.trusted_packet_sequence_id, _Sequence())
        if packet.incremental_state_cleared or packet.sequence_flags & schema.CLEARED:
            sequence.clear()
        self.dropped += bool(packet.previous_packet_dropped)
        self._update_sequence(sequence, packet)
        if packet.HasField("clock_snapshot"):
            self._snapshot(sequence, packet.clock_snapshot.clocks)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            self._tracks[track.uuid] = _text(track.name or track.static_name)
        has_event = packet.HasField("track_event")
        if not has_event and not packet.HasField("gpu_render_stage_event"):
            return
        now = self._time(sequence, packet)
        if packet.sequence_flags & schema.NEEDS_STATE and not sequence.known:
            self.incomplete += 1
        elif now is None:
            self.unrelated += 1
        elif has_event:
            yield from self._event(sequence, packet.track_event, now)
        else:
            yield from self._stage(sequence, packet.gpu_render_stage_event, now)

    def _update_sequence(self, sequence: _Sequence, packet: Any) -> None:
        """Texts and defaults of a packet."""
        if packet.HasField("interned_data"):
            for descriptor, entries in packet.interned_data.ListFields():
                for entry in entries:
                    sequence.texts[descriptor.name, entry.iid] = _text(entry.name)
                    if getattr(entry, "category", None) == schema.COMPUTE:
                        sequence.compute.add(entry.iid)
        if packet.HasField("trace_packet_defaults"):
            defaults = packet.trace_packet_defaults
            sequence.clock = defaults.timestamp_clock_id
            sequence.track = defaults.track_event_defaults.track_uuid

    def _snapshot(self, sequence: _Sequence, clocks: Any) -> None:
        """Clocks at one moment. One that is known relates the others to it."""
        shared = [reading for reading in clocks if reading.clock_id not in _OWN_CLOCKS]
        if shared and not self._offsets:
            self._offsets[shared[0].clock_id] = 0
        anchor = next((reading for reading in shared if reading.clock_id in self._offsets), None)
        if anchor is None:
            return
        moment = anchor.timestamp + self._offsets[anchor.clock_id]
        for reading in shared:
            self._offsets.setdefault(reading.clock_id, moment - reading.timestamp)
        for reading in clocks:
            if reading.clock_id in _OWN_CLOCKS:
                unit = reading.unit_multiplier_ns or 1
                clock = _OwnClock(reading.is_incremental, unit, reading.timestamp, moment)
                sequence.clocks[reading.clock_id] = clock

    def _time(self, sequence: _Sequence, packet: Any) -> int | None:
        """Nanoseconds of the first clock in the file; None if no snapshot relates the packet's
        clock to it."""
        number = packet.timestamp_clock_id or sequence.clock or _BOOT
        if number not in _OWN_CLOCKS:
            if not self._offsets:
                self._offsets[number] = 0
            offset = self._offsets.get(number)
            return None if offset is None else packet.timestamp + offset
        clock = sequence.clocks.get(number)
        if clock is None:
            return None
        if clock.incremental:
            clock.moment += packet.timestamp * clock.unit
            return clock.moment
        return clock.moment + (packet.timestamp - clock.units) * clock.unit

    def _event(self, sequence: _Sequence, event: Any, now: int) -> Iterator[PerfettoSlice]:
        """A beginning is kept until its end on the same track."""
        track = event.track_uuid or sequence.track
        if event.type == schema.BEGIN:
            name = _text(event.name) or sequence.texts.get(("event_names", event.name_iid), "")
            categories = [_text(label) for label in event.categories]
            categories += [
                sequence.texts.get(("event_categories", category_iid), "")
                for category_iid in event.category_iids
            ]
            values = _values(sequence, event)
            beginning = (now, track, name, categories[0] if categories else "", values)
            sequence.open.setdefault(track, []).append(beginning)
        elif event.type == schema.END:
            stack = sequence.open.get(track)
            if not stack:
                self.incomplete += 1
                return
            start, track, name, category, values = stack.pop()
            track_name = self._tracks.get(track, "")
            yield PerfettoSlice(name, category, track, track_name, start, now - start, values)

    def _stage(self, sequence: _Sequence, event: Any, now: int) -> Iterator[PerfettoSlice]:
        """An activity of a GPU that the schema describes; those of graphics are left out."""
        if not (event.HasField("launch") or event.stage_iid in sequence.compute):
            return
        texts = sequence.texts
        name = (
            _text(event.name)
            or texts.get(("event_names", event.name_iid), "")
            or texts.get(("gpu_specifications", event.stage_iid), "")
        )
        queue = texts.get(("gpu_specifications", event.hw_queue_iid), "")
        yield PerfettoSlice(
            name, "gpu_kernel", event.hw_queue_iid, queue, now, event.duration, {}, event.gpu_id,
            _axes(event.launch.grid_size), _axes(event.launch.workgroup_size),
        )  # fmt: skip


def frames(text: bytes) -> Iterator[tuple[bytes, int | None]]:
    """(packet, position after it) of every packet in `text`; None as the position of what is not a
    whole packet, which is the last."""
    at = 0
    while at < len(text):
        size = _size(text, at + 1)
        if text[at] != _FRAME or size is None or size[1] + size[0] > len(text):
            yield text[at:], None
            return
        length, start = size
        at = start + length
        yield text[start:at], at


def fields(message: bytes) -> Iterator[tuple[int, int]]:
    """(number, wire type) of the fields of a message, until what is none."""
    at = 0
    while at < len(message):
        tag = _size(message, at)
        if tag is None:
            return
        number, kind = tag[0] >> 3, tag[0] & 7
        value = _size(message, tag[1]) if kind in (_VARINT, _TEXT) else (0, tag[1])
        if value is None or (kind not in _BYTES and kind not in (_VARINT, _TEXT)):
            return
        yield number, kind
        at = value[1] + (value[0] if kind == _TEXT else _BYTES.get(kind, 0))


def _size(text: bytes, at: int) -> tuple[int, int] | None:
    """(a base-128 varint, position after it); None where `text` ends in it."""
    value = 0
    for digit, byte in enumerate(text[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (_SHIFT * digit)
        if byte < 0x80:
            return value, at + digit + 1
    return None


def _values(sequence: _Sequence, event: Any) -> dict[str, int | float | str]:
    """Annotations with a plain value, by name."""
    values: dict[str, int | float | str] = {}
    for annotation in event.debug_annotations:
        name = _text(annotation.name) or sequence.texts.get(
            ("debug_annotation_names", annotation.name_iid), ""
        )
        text = _text(annotation.string_value) or sequence.texts.get(
            ("debug_annotation_string_values", annotation.string_value_iid), ""
        )
        values[name] = (
            text or annotation.double_value or annotation.uint_value or annotation.int_value
        )
    return values


def _axes(size: Any) -> tuple[int, int, int]:
    return (size.x, size.y or 1, size.z or 1) if size.x else (0, 0, 0)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


__all__ = ["PacketReader", "PerfettoSlice", "fields", "frames"]
