"""Schedules of all-reduces as XML for MSCCL (github.com/microsoft/msccl, msccl-tools)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from wavecast.errors import UsageError

if TYPE_CHECKING:
    from wavecast.systems.collectives.exchange import ExchangeSchedule
    from wavecast.systems.collectives.schedule import MessageSchedule

MOST_RANKS: Final = 256
_PROTOCOLS: Final = {"flags": "LL", "slices": "Simple"}


@dataclass(slots=True)
class _Step:
    kind: str
    first: int = 0
    count: int = 0
    after: tuple[int, int] = (-1, -1)
    awaited: bool = False


@dataclass(slots=True)
class _Gpu:
    """Thread blocks by (peer, whether it sends), and which step used a chunk last."""

    blocks: dict[tuple[int, bool], list[_Step]] = field(default_factory=dict)
    numbers: dict[tuple[int, bool], int] = field(default_factory=dict)
    written: dict[int, tuple[int, int]] = field(default_factory=dict)
    read: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, peer: int, kind: str, first: int, count: int) -> None:
        """A step that sends or receives chunks, after those of other blocks that it depends on."""
        key = peer, kind == "s"
        number = self.numbers.setdefault(key, len(self.numbers))
        steps = self.blocks.setdefault(key, [])
        before: set[tuple[int, int]] = set()
        for chunk in range(first, first + count):
            if chunk in self.written:
                before.add(self.written[chunk])
            if kind != "s":
                before.update(self.read[chunk])
        latest: dict[int, int] = {}
        for block, step in before:
            if block != number:
                latest[block] = max(step, latest.get(block, 0))
        waits = sorted(latest.items())
        steps += [_Step("nop", after=wait) for wait in waits[:-1]]
        steps.append(_Step(kind, first, count, waits[-1] if waits else (-1, -1)))
        for wait in waits:
            self._block(wait[0])[wait[1]].awaited = True
        this = number, len(steps) - 1
        for chunk in range(first, first + count):
            if kind == "s":
                self.read[chunk].append(this)
            else:
                self.written[chunk] = this
                self.read[chunk] = []

    def _block(self, number: int) -> list[_Step]:
        return next(
            self.blocks[key] for key, block_number in self.numbers.items() if block_number == number
        )


def msccl_xml(schedule: MessageSchedule | ExchangeSchedule, protocol: str) -> str:
    """An in-place all-reduce as an algorithm of MSCCL. Raises UsageError for other functions and
    for more than 256 GPUs."""
    from wavecast.systems.collectives.schedule import MessageSchedule, messages

    if (
        not isinstance(schedule, MessageSchedule)
        or schedule.function != "all_reduce"
        or schedule.ranks > MOST_RANKS
    ):
        raise UsageError(
            f"no MSCCL algorithm of {schedule.function} on {schedule.ranks} GPUs: "
            f"it is written for all_reduce on up to {MOST_RANKS}"
        )
    gpus = [_Gpu() for _ in range(schedule.ranks)]
    rounds = defaultdict(list)
    for message in messages(schedule):
        rounds[message.round].append(message)
    for number in sorted(rounds):
        for message in rounds[number]:
            for first, count in _runs(message.chunks):
                gpus[message.source].add(message.target, "s", first, count)
        for message in rounds[number]:
            for first, count in _runs(message.chunks):
                kind = "rrc" if message.reduce else "r"
                gpus[message.target].add(message.source, kind, first, count)
    return "\n".join(_lines(schedule, protocol, gpus)) + "\n"


def _lines(schedule: MessageSchedule, protocol: str, gpus: list[_Gpu]) -> Iterator[str]:
    ranks = schedule.ranks
    yield (
        f"<algo name={quoteattr(schedule.name)} proto={quoteattr(_PROTOCOLS[protocol])} "
        f'nchannels="1" nchunksperloop="{ranks}" ngpus="{ranks}" coll="allreduce" inplace="1" '
        'outofplace="0" minBytes="0" maxBytes="0">'
    )
    for rank, gpu in enumerate(gpus):
        yield f'  <gpu id="{rank}" i_chunks="{ranks}" o_chunks="0" s_chunks="0">'
        for (peer, sends), steps in gpu.blocks.items():
            ends = (peer, -1) if sends else (-1, peer)
            number = gpu.numbers[peer, sends]
            yield f'    <tb id="{number}" send="{ends[0]}" recv="{ends[1]}" chan="0">'
            for index, step in enumerate(steps):
                first = step.first if step.count else -1
                yield (
                    f'      <step s="{index}" type="{step.kind}" srcbuf="i" srcoff="{first}" '
                    f'dstbuf="i" dstoff="{first}" cnt="{step.count}" depid="{step.after[0]}" '
                    f'deps="{step.after[1]}" hasdep="{int(step.awaited)}"/>'
                )
            yield "    </tb>"
        yield "  </gpu>"
    yield "</algo>"


def _runs(chunks: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """First chunk and length of each run of neighbours."""
    first, ordered = 0, sorted(chunks)
    for index in range(1, len(ordered) + 1):
        if index == len(ordered) or ordered[index] != ordered[index - 1] + 1:
            yield ordered[first], index - first
            first = index


__all__ = ["MOST_RANKS", "msccl_xml"]
