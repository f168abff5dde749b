"""What a profile has next to kernels, as terminal text and JSON: copies and collectives with their
bandwidth, ranges that the program named, kernels that could be fused, queues of launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from wavecast.bench.profiles.annotations import annotated_time
from wavecast.bench.profiles.kernel_names import functor, short
from wavecast.bench.profiles.launching import queue_lengths
from wavecast.bench.profiles.memory import memory_use
from wavecast.bench.profiles.sequences import kernel_sequences
from wavecast.bench.profiles.traffic import collective_traffic, copy_traffic
from wavecast.documents.profile import (
    AnnotatedTimeJson,
    CollectiveTrafficJson,
    CopyTrafficJson,
    KernelSequenceJson,
    MemoryUseJson,
    QueueLengthJson,
)
from wavecast.report import units
from wavecast.report.profiles_tables import ROWS, columns
from wavecast.report.terminal_text import safe

if TYPE_CHECKING:
    from wavecast.bench.profiles.launching import QueueLength
    from wavecast.bench.profiles.profile import Profile
    from wavecast.bench.profiles.sequences import KernelSequence

_NANO: Final = 1e-9
_SEQUENCES: Final = 5
"""Sequences in the text, unless all rows are asked for."""


def sections(profile: Profile, rows: int) -> Iterator[RenderableType]:
    """The tables of what the file has."""
    heads = ("time", "copies", "bytes", "bandwidth")
    found = copy_traffic(profile)
    yield from _section(
        "copies and fills",
        (heads, "copy"),
        [
            (
                units.seconds(one.nanoseconds * _NANO),
                f"{one.count:,}",
                units.size(one.size) if one.sized else units.UNKNOWN,
                units.si(one.bandwidth, "B/s"),
                safe(one.name),
            )
            for one in found
        ],
        rows,
    )
    heads = ("time", "launches", "message", "algorithm", "bus", "best bus")
    yield from _section(
        "bandwidth of collectives, waits for other ranks included",
        (heads, "collective"),
        [
            (
                units.seconds(one.nanoseconds * _NANO),
                f"{one.count:,}",
                units.size(one.size),
                units.si(one.algorithm_bandwidth, "B/s"),
                units.si(one.bus_bandwidth, "B/s"),
                units.si(one.best_bus_bandwidth, "B/s"),
                safe(one.message.operation)
                + (f", {one.message.ranks} ranks" if one.message.ranks else ""),
            )
            for one in collective_traffic(profile)
        ],
        rows,
    )
    heads = ("device", "host", "ranges", "launches")
    yield from _section(
        "annotations of the program",
        (heads, "range"),
        [
            (
                units.seconds(one.device * _NANO),
                units.seconds(one.host * _NANO),
                f"{one.count:,}",
                f"{one.launches:,}",
                safe(" / ".join(one.path)),
            )
            for one in annotated_time(profile)
        ],
        rows,
    )
    heads = ("time", "gaps", "occurrences", "kernels")
    yield from _section(
        "sequences of memory-bound kernels, which could be fused",
        (heads, "kernels"),
        [
            (
                units.seconds(one.nanoseconds * _NANO),
                units.seconds(one.gaps * _NANO),
                f"{one.count:,}",
                f"{len(one.kernels)}",
                safe(sequence_text(profile, one)),
            )
            for one in kernel_sequences(profile)
        ],
        min(rows, _SEQUENCES) if rows < ROWS["full"] else rows,
    )


def _section(
    title: str, heads: tuple[Sequence[str], str], cells: Sequence[Sequence[str]], rows: int
) -> Iterator[RenderableType]:
    if not cells:
        return
    table = columns(*((head, "right") for head in heads[0]), (heads[1], "left"))
    for row in cells[:rows]:
        table.add_row(*row)
    if len(cells) > rows:
        more = Text(f"{len(cells) - rows:,} more", style="dim")
        table.add_row(*("" for _ in heads[0]), more)
    yield Text(f"\n  {title}", "bold")
    yield Padding(table, (0, 0, 0, 2))


def sequence_text(profile: Profile, found: KernelSequence) -> str:
    """Short names of the kernels; a name that repeats is written once with its number."""
    names = [_brief(profile.kernels[number].name) for number in found.kernels]
    parts: list[list[str]] = []
    for name in names:
        if parts and parts[-1][0] == name:
            parts[-1].append(name)
        else:
            parts.append([name])
    return " → ".join(part[0] + (f" x {len(part)}" if len(part) > 1 else "") for part in parts)


def _brief(name: str) -> str:
    return functor(name) or short(name).removeprefix("at::native::")


def queue_text(found: Sequence[QueueLength]) -> str:
    """The queue of the stream with the most launches; empty without one."""
    if not found:
        return ""
    queue = max(found, key=lambda one: one.launches)
    return (
        f"stream {queue.stream}: {queue.mean:.1f} launches are queued on average, at most "
        f"{queue.longest:,}; none for {queue.empty:.0%} of the time"
    )


def queue_entries(profile: Profile, device: int) -> list[QueueLengthJson]:
    """Queues of a device for JSON."""
    return [QueueLengthJson.of(one) for one in queue_lengths(profile, device)]


def memory_text(found: MemoryUseJson) -> str:
    """What tensors have at most, where, and at the ends."""
    where = ", ".join(filter(None, (found.operator, found.module)))
    return (
        f"memory of PyTorch's device {found.device}: tensors have at most {units.size(found.peak)}"
        + (f" (in {safe(where)})" if where else "")
        + f", {units.size(found.first)} at first and {units.size(found.last)} at last; "
        f"{units.size(found.reserved)} reserved; {found.allocations:,} allocations of "
        f"{units.size(found.allocated)}"
    )


def memory_entries(profile: Profile) -> list[MemoryUseJson]:
    """Memory of devices for JSON."""
    return [MemoryUseJson.of(one, time=one.time * _NANO) for one in memory_use(profile)]


def copy_entries(profile: Profile) -> list[CopyTrafficJson]:
    """Copies for JSON."""
    return [
        CopyTrafficJson.of(one, seconds=one.nanoseconds * _NANO, bytes=one.size)
        for one in copy_traffic(profile)
    ]


def collective_entries(profile: Profile) -> list[CollectiveTrafficJson]:
    """Collectives for JSON."""
    return [
        CollectiveTrafficJson.of(
            one,
            operation=one.message.operation,
            ranks=one.message.ranks,
            input_bytes=one.message.input_bytes,
            output_bytes=one.message.output_bytes,
            seconds=one.nanoseconds * _NANO,
        )
        for one in collective_traffic(profile)
    ]


def annotation_entries(profile: Profile) -> list[AnnotatedTimeJson]:
    """Annotations for JSON."""
    return [
        AnnotatedTimeJson.of(
            one,
            path=list(one.path),
            host=one.host * _NANO,
            shortest=one.shortest * _NANO,
            longest=one.longest * _NANO,
            device=one.device * _NANO,
        )
        for one in annotated_time(profile)
    ]


def sequence_entries(profile: Profile) -> list[KernelSequenceJson]:
    """Sequences for JSON."""
    return [
        KernelSequenceJson(
            kernels=list(one.kernels),
            text=sequence_text(profile, one),
            count=one.count,
            seconds=one.nanoseconds * _NANO,
            gaps=one.gaps * _NANO,
        )
        for one in kernel_sequences(profile)
    ]


__all__ = [
    "annotation_entries",
    "collective_entries",
    "copy_entries",
    "memory_entries",
    "memory_text",
    "queue_entries",
    "queue_text",
    "sections",
    "sequence_entries",
    "sequence_text",
]
