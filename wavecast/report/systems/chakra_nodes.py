"""What every rank does as nodes of a Chakra execution trace: of slices in time, and of the stages
of a training step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wavecast.errors import Unpredictable
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.systems.chakra.schema import COLLECTIVES
from wavecast.systems.slices import HOST, TimelineSlice

if TYPE_CHECKING:
    from wavecast.systems.training.ranks import StageAction

_EXCHANGES: Final = {"dispatch": "ALL_TO_ALL", "combine": "ALL_TO_ALL"}
"""Exchanges of tokens by the collective of Chakra that moves as many bytes."""
_MOVES: Final = {"send": "COMM_SEND_NODE", "receive": "COMM_RECV_NODE"}
_ROUNDING: Final = 1 + 1e-9

Value = bool | int | float | str
Group = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChakraNode:
    """A node of `kind` (a key of `NODE_TYPES`) after others by number, from `start` to `end` in
    seconds, with attributes; `members` are the ranks of a collective."""

    name: str
    kind: str
    after: tuple[int, ...]
    start: float
    end: float
    about: Mapping[str, Value] = field(default_factory=dict)
    members: Group = ()


def of_slices(slices: Sequence[TimelineSlice], rank: int, ranks: int) -> Iterator[ChakraNode]:
    """The slices of a rank: kernels in the order of their stream, each after the last work of the
    host that had ended. Raises Unpredictable for a collective whose groups do not divide `ranks`.
    """
    ends: list[float] = []
    host: list[int] = []
    last: tuple[int, ...] = ()
    for number, timeline_slice in enumerate(slices):
        if timeline_slice.track == HOST:
            after = tuple(host[-1:])
            ends.append(timeline_slice.end)
            host.append(number)
        else:
            host_count = bisect_right(ends, timeline_slice.start * _ROUNDING)
            after = tuple(host[:host_count][-1:]) + last
            last = (number,)
        yield _slice_node(timeline_slice, after, rank, ranks)


def _slice_node(
    timeline_slice: TimelineSlice, after: tuple[int, ...], rank: int, ranks: int
) -> ChakraNode:
    about: dict[str, Value] = {
        "is_cpu_op": timeline_slice.track == HOST,
        "seconds": float(timeline_slice.seconds),
    }
    kind, members = "COMP_NODE", ()
    if timeline_slice.where:
        about["where"] = timeline_slice.where
    if timeline_slice.priced is not None:
        op = timeline_slice.priced.node.op
        about |= {
            "seconds_low": float(timeline_slice.priced.low),
            "seconds_high": float(timeline_slice.priced.high),
            "operation": str(op),
            "kernel": timeline_slice.priced.kernel,
        }
        if isinstance(op, Collective):
            if ranks % op.gpus:
                raise Unpredictable(f"{op}: {ranks} ranks are not groups of {op.gpus}")
            kind, members = "COMM_COLL_NODE", group(rank, op.gpus, 1, 0)
            about |= _collective(op.function, op.bytes, op.gpus, op.topk, op.library)
        else:
            work = op.work()
            flops = sum((work.flops or {}).values())
            about |= {"num_ops": int(flops), "tensor_size": int(work.bytes or 0)}
    return ChakraNode(
        timeline_slice.name, kind, after, timeline_slice.start, timeline_slice.end, about, members
    )


def of_stage(actions: Sequence[StageAction], rank: int, each: int) -> Iterator[ChakraNode]:
    """The actions of a rank of a stage of `each` GPUs. Their starts are not known: they follow from
    what arrives."""
    first = rank // each * each
    for action in actions:
        about: dict[str, Value] = {"is_cpu_op": False}
        kind, members = "COMP_NODE", ()
        if action.moves:
            kind = _MOVES[action.moves]
            there = action.peer * each + rank - first
            ends = (rank, there) if action.moves == "send" else (there, rank)
            about |= {
                "comm_src": ends[0],
                "comm_dst": ends[1],
                "comm_size": action.size,
                "comm_tag": action.tag,
            }
        elif action.message is not None:
            kind = "COMM_COLL_NODE"
            members = group(rank, action.message.ranks, action.message.stride, first)
            message = action.message
            about |= _collective(message.function, message.size, message.ranks)
        else:
            about["seconds"] = float(action.seconds)
        yield ChakraNode(action.name, kind, action.after, 0.0, action.seconds, about, members)


def group(rank: int, ranks: int, stride: int, first: int) -> Group:
    """The ranks of the group of `rank`, `stride` apart; groups are counted from `first`."""
    index = rank - first
    base = first + index // (ranks * stride) * ranks * stride + index % stride
    return tuple(base + stride * number for number in range(ranks))


def _collective(
    function: str, size: float, ranks: int, topk: int = 0, library: str = ""
) -> dict[str, Value]:
    """The attributes of a collective of `size` bytes as `Collective` counts them. Those of Chakra
    are what a rank puts in; of an exchange of tokens a copy per expert."""
    name = _EXCHANGES.get(function, function.upper())
    put_in = size * topk if topk else size / ranks if function == "all_gather" else size
    about: dict[str, Value] = {"comm_type": COLLECTIVES[name], "comm_size": round(put_in)}
    if topk:
        about |= {"function": function, "topk": topk}
    return about | ({"library": library} if library else {})


__all__ = ["ChakraNode", "Group", "group", "of_slices", "of_stage"]
