"""What a profile has next to kernels, as terminal text: copies and collectives with their
bandwidth, ranges that the program named, kernels that could be fused, queues of launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from wavecast.report.kit import units
from wavecast.report.kit.terminal import safe
from wavecast.report.profiles.tables import ROWS, columns

if TYPE_CHECKING:
    from wavecast.profiles.activity import ProfileActivity
    from wavecast.profiles.launching import QueueLength
    from wavecast.profiles.memory import TensorMemory

_SEQUENCES: Final = 5
"""Sequences in the text, unless all rows are asked for."""


def sections(activity: ProfileActivity, rows: int) -> Iterator[RenderableType]:
    """The tables of what the file has."""
    heads = ("time", "copies", "bytes", "bandwidth")
    yield from _section(
        "copies and fills",
        (heads, "copy"),
        [
            (
                units.seconds(copy.seconds),
                f"{copy.count:,}",
                units.size(copy.bytes) if copy.bytes else units.UNKNOWN,
                units.si(copy.bandwidth, "B/s"),
                safe(copy.name),
            )
            for copy in activity.copies
        ],
        rows,
    )
    heads = ("time", "launches", "message", "algorithm", "bus", "best bus")
    yield from _section(
        "bandwidth of collectives, waits for other ranks included",
        (heads, "collective"),
        [
            (
                units.seconds(collective.seconds),
                f"{collective.count:,}",
                units.size(collective.size),
                units.si(collective.algorithm_bandwidth, "B/s"),
                units.si(collective.bus_bandwidth, "B/s"),
                units.si(collective.best_bus_bandwidth, "B/s"),
                safe(collective.operation)
                + (f", {collective.ranks} ranks" if collective.ranks else ""),
            )
            for collective in activity.collectives
        ],
        rows,
    )
    heads = ("device", "host", "ranges", "launches")
    yield from _section(
        "annotations of the program",
        (heads, "range"),
        [
            (
                units.seconds(annotation.device),
                units.seconds(annotation.host),
                f"{annotation.count:,}",
                f"{annotation.launches:,}",
                safe(" / ".join(annotation.path)),
            )
            for annotation in activity.annotations
        ],
        rows,
    )
    heads = ("time", "gaps", "occurrences", "kernels")
    yield from _section(
        "sequences of memory-bound kernels, which could be fused",
        (heads, "kernels"),
        [
            (
                units.seconds(sequence.seconds),
                units.seconds(sequence.gaps),
                f"{sequence.count:,}",
                f"{len(sequence.kernels)}",
                safe(sequence.text),
            )
            for sequence in activity.sequences
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


def queue_text(queues: Sequence[QueueLength]) -> str:
    """The queue of the stream with the most launches; empty without one."""
    if not queues:
        return ""
    queue = max(queues, key=lambda candidate: candidate.launches)
    return (
        f"stream {queue.stream}: {queue.mean:.1f} launches are queued on average, at most "
        f"{queue.longest:,}; none for {queue.empty:.0%} of the time"
    )


def memory_text(usage: TensorMemory) -> str:
    """What tensors have at most, where, and at the ends."""
    where = ", ".join(filter(None, (usage.operator, usage.module)))
    return (
        f"memory of PyTorch's device {usage.device}: tensors have at most {units.size(usage.peak)}"
        + (f" (in {safe(where)})" if where else "")
        + f", {units.size(usage.first)} at first and {units.size(usage.last)} at last; "
        f"{units.size(usage.reserved)} reserved; {usage.allocations:,} allocations of "
        f"{units.size(usage.allocated)}"
    )


__all__ = ["memory_text", "queue_text", "sections"]
