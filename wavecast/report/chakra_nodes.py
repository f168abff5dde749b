"""What every rank does as nodes of a Chakra execution trace: of slices in time, and of the stages
of a training step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wavecast.errors import Unpredictable
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.report.chakra_schema import COLLECTIVES
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
    for number, one in enumerate(slices):
        if one.track == HOST:
            after = tuple(host[-1:])
            ends.append(one.end)
            host.append(number)
        else:
            ended = bisect_right(ends, one.start * _ROUNDING)
            after = tuple(host[:ended][-1:]) + last
            last = (number,)
        yield _slice_node(one, after, rank, ranks)


def _slice_node(one: TimelineSlice, after: tuple[int, ...], rank: int, ranks: int) -> ChakraNode:
    about: dict[str, Value] = {"is_cpu_op": one.track == HOST, "seconds": float(one.seconds)}
    kind, members = "COMP_NODE", ()
    if one.where:
        about["where"] = one.where
    if one.priced is not None:
        op = one.priced.node.op
        about |= {
            "seconds_low": float(one.priced.low),
            "seconds_high": float(one.priced.high),
            "operation": str(op),
            "kernel": one.priced.kernel,
        }
        if isinstance(op, Collective):
            if ranks % op.gpus:
                raise Unpredictable(f"{op}: {ranks} ranks are not groups of {op.gpus}")
            kind, members = "COMM_COLL_NODE", group(rank, op.gpus, 1, 0)
            about |= _collective(op.function, op.bytes)
        else:
            work = op.work()
            flops = sum((work.flops or {}).values())
            about |= {"num_ops": int(flops), "tensor_size": int(work.bytes or 0)}
    return ChakraNode(one.name, kind, after, one.start, one.end, about, members)


def of_stage(actions: Sequence[StageAction], rank: int, each: int) -> Iterator[ChakraNode]:
    """The actions of a rank of a stage of `each` GPUs. Their starts are not known: they follow from
    what arrives."""
    first = rank // each * each
    for one in actions:
        about: dict[str, Value] = {"is_cpu_op": False}
        kind, members = "COMP_NODE", ()
        if one.moves:
            kind = _MOVES[one.moves]
            there = one.peer * each + rank - first
            ends = (rank, there) if one.moves == "send" else (there, rank)
            about |= {
                "comm_src": ends[0],
                "comm_dst": ends[1],
                "comm_size": one.size,
                "comm_tag": one.tag,
            }
        elif one.message is not None:
            kind = "COMM_COLL_NODE"
            members = group(rank, one.message.ranks, one.message.stride, first)
            about |= _collective(one.message.function, one.message.size)
        else:
            about["seconds"] = float(one.seconds)
        yield ChakraNode(one.name, kind, one.after, 0.0, one.seconds, about, members)


def group(rank: int, ranks: int, stride: int, first: int) -> Group:
    """The ranks of the group of `rank`, `stride` apart; groups are counted from `first`."""
    own = rank - first
    base = first + own // (ranks * stride) * ranks * stride + own % stride
    return tuple(base + stride * number for number in range(ranks))


def _collective(function: str, size: float) -> dict[str, Value]:
    name = _EXCHANGES.get(function, function.upper())
    return {"comm_type": COLLECTIVES[name], "comm_size": round(size)}


__all__ = ["ChakraNode", "Group", "group", "of_slices", "of_stage"]
