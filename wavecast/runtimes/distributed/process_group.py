"""A process group whose collectives are kernels on emulated GPUs.

A collective runs on a stream of the group, after the calling thread's current stream, as NCCL's do.
Messages between two ranks have a stream and buffers per direction, so that a send and a receive do
not wait for each other.
"""

# PyTorch passes tensors by position, and streams are those of `gpus_api`.
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from wavecast.errors import ArgumentError, UsageError
from wavecast.kernels.registry import collectives
from wavecast.launch.group_calls import CallsDiffer, Parts, calling
from wavecast.runtimes.distributed.calls import GroupCall, group_call
from wavecast.runtimes.distributed.shared import (
    CallCounter,
    CallingMember,
    GroupMember,
    SharedGroups,
    op_name,
    operation,
    shots_of,
    to_reducible,
)
from wavecast.runtimes.distributed.work import QueueWork
from wavecast.runtimes.torch_cpu.gpus import HOST, Gpus, assign, owner

NAME: Final = "wavecast"
Results = TypeVar("Results", Tensor, tuple[Tensor, ...])
_Compute = Callable[[Tensor], Any]


rank_parts: Callable[[], dict[str, Any]] = dict
"""The parts that the calling rank has of groups, by name; set while GPUs are emulated."""


@dataclass(eq=False, slots=True)
class _RankPart:
    """What a rank has of a group of `ranks`, of which it is number `own`: its streams by name, and
    what it has agreed on."""

    gpus: Gpus
    shared: SharedGroups
    ranks: tuple[int, ...]
    own: int
    streams: dict[str, Any] = field(default_factory=dict)
    agreements: CallCounter | None = None


class EmulatedGroup(dist.ProcessGroup):
    """Rank `rank` of the group `name`; `ranks` are the global numbers of its ranks, each of which
    uses the GPU of that number.

    Ranks that are threads share modules, so a rank may use the object of another: one that a module
    has stored, or has as the default of an argument. Objects of one name are equal, and each acts
    for the rank that calls.

    Methods are those of PyTorch's process groups and return a `QueueWork`. They raise
    ArgumentError for tensors that do not fit, also to those of other ranks, and UsageError for what
    is not supported.
    """

    backend = ""
    """What the program calls the backend."""
    supports_splitting = supports_coalescing = supports_time_estimate = False

    def __init__(
        self, gpus: Gpus, shared: SharedGroups, name: str, ranks: Sequence[int], rank: int
    ) -> None:
        super().__init__(rank, len(ranks))  # pyright: ignore[reportCallIssue]
        self._name = name
        self._first_part = _RankPart(gpus, shared, tuple(ranks), rank)
        rank_parts()[name] = self._first_part

    @property
    def _part(self) -> _RankPart:
        return rank_parts().get(self._name, self._first_part)

    @property
    def _gpus(self) -> Gpus:
        return self._part.gpus

    @property
    def _shared(self) -> SharedGroups:
        return self._part.shared

    @property
    def _ranks(self) -> tuple[int, ...]:
        return self._part.ranks

    @property
    def _own(self) -> int:
        return self._part.own

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmulatedGroup) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def rank(self) -> int:
        return self._own

    def getBackendName(self) -> str:
        return NAME

    @property
    def group_name(self) -> str:  # type: ignore[override]
        """The name that PyTorch's operators find the group by."""
        return self._name

    def _get_backend_name(self) -> str:
        return NAME

    def _get_backend(self, device: Any) -> EmulatedGroup:
        del device
        return self

    def size(self) -> int:
        return len(self._ranks)

    def __repr__(self) -> str:
        return f"EmulatedGroup({self._name!r}, rank {self._own} of {len(self._ranks)})"

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> QueueWork:
        """Every tensor reduced over the ranks, in place."""

        def run(group: GroupMember | None) -> None:
            for tensor in tensors:
                self._all_reduce(group, tensor, tensor, opts)

        call = group_call("all_reduce", tensors, _op_of(opts))
        return self._enqueue(call, run, tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: list[Tensor], opts: Any) -> QueueWork:
        """The same on the root only; other ranks keep theirs."""

        def run(group: GroupMember | None) -> None:
            for tensor in tensors:
                root = opts.rootRank == self._own
                out = tensor if root else torch.empty_like(tensor)
                self._all_reduce(group, out, tensor, opts)

        call = group_call("reduce", tensors, _op_of(opts), self._root("dst", opts))
        return self._enqueue(call, run, tensors)

    def broadcast(self, tensors: list[Tensor], opts: Any) -> QueueWork:
        """The tensors of the root on all ranks."""

        def run(group: GroupMember | None) -> None:
            for tensor in tensors:
                self._broadcast(group, tensor, opts.rootRank)

        call = group_call("broadcast", tensors, self._root("src", opts))
        return self._enqueue(call, run, tensors)

    def all_gather_single(self, out: Tensor, x: Tensor, opts: Any = None) -> QueueWork:
        """The tensors of all ranks, one after another."""
        del opts
        call = group_call("all_gather_into_tensor", [x], kind="all_gather")
        return self._enqueue(call, lambda group: self._all_gather(group, out, x), [out])

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> QueueWork:
        """The same for several tensors."""
        del opts

        def run(group: GroupMember | None) -> None:
            for out, x in zip(outs, inputs, strict=True):
                self._all_gather(group, out, x)

        call = group_call("all_gather_into_tensor", inputs, kind="all_gather")
        return self._enqueue(call, run, outs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather(
        self, outs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None
    ) -> QueueWork:
        """The tensors of all ranks in a list each; they may differ in size."""
        del opts
        call = group_call("all_gather", inputs, kind="all_gather", sizes=_parts_sizes(outs))
        return self._all_gather_lists(call, outs, inputs)

    def _all_gather_lists(
        self, call: GroupCall, outs: list[list[Tensor]], inputs: list[Tensor]
    ) -> QueueWork:
        def run(group: GroupMember | None) -> None:
            for parts, x in zip(outs, inputs, strict=True):
                self._gather_list(group, parts, x)

        return self._enqueue(call, run, [tensor for parts in outs for tensor in parts])

    def allgather_coalesced(
        self, outs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None
    ) -> QueueWork:
        """The same, with results by rank."""
        return self.allgather([list(parts) for parts in zip(*outs, strict=True)], inputs, opts)

    def gather(self, outs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> QueueWork:
        """The tensors of all ranks on the root."""
        call = group_call("gather", inputs, self._root("dst", opts))
        if opts.rootRank != self._own:
            outs = [[torch.empty_like(x) for _ in self._ranks] for x in inputs]
        return self._all_gather_lists(call, outs, inputs)

    def scatter(self, outs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> QueueWork:
        """Part `rank` of the root's tensors."""

        def run(group: GroupMember | None) -> None:
            for number, out in enumerate(outs):
                shape = (len(self._ranks), *out.shape)
                whole = torch.empty(shape, dtype=out.dtype, device=f"cuda:{self._gpu}")
                if opts.rootRank == self._own:
                    for row, part in zip(whole, inputs[number], strict=True):
                        row.copy_(part.detach())
                self._broadcast(group, whole, opts.rootRank)
                out.detach().copy_(whole[self._own])

        call = group_call("scatter", outs, self._root("src", opts))
        return self._enqueue(call, run, outs)

    def reduce_scatter_single(self, out: Tensor, x: Tensor, opts: Any) -> QueueWork:
        """Part `rank` of the tensors reduced over the ranks."""
        call = group_call(
            "reduce_scatter_tensor", [x], _op_of(opts), kind="reduce_scatter", sizes=[out.numel()]
        )
        return self._enqueue(call, lambda group: self._reduce_scatter(group, out, x, opts), [out])

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outs: list[Tensor], inputs: list[Tensor], opts: Any
    ) -> QueueWork:
        """The same for several tensors."""

        def run(group: GroupMember | None) -> None:
            for out, x in zip(outs, inputs, strict=True):
                self._reduce_scatter(group, out, x, opts)

        sizes = [out.numel() for out in outs]
        call = group_call(
            "reduce_scatter_tensor", inputs, _op_of(opts), kind="reduce_scatter", sizes=sizes
        )
        return self._enqueue(call, run, outs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(
        self, outs: list[Tensor], inputs: list[list[Tensor]], opts: Any
    ) -> QueueWork:
        """The same with the parts in a list; they may differ in size."""

        def run(group: GroupMember | None) -> None:
            for out, parts in zip(outs, inputs, strict=True):
                self._reduce_scatter_list(group, out, parts, opts)

        sizes = _parts_sizes(inputs)
        every = [part for parts in inputs for part in parts]
        call = group_call("reduce_scatter", every, _op_of(opts), kind="reduce_scatter", sizes=sizes)
        return self._enqueue(call, run, outs)

    def all_to_all_single(
        self, out: Tensor, x: Tensor, out_rows: list[int], rows: list[int], opts: Any = None
    ) -> QueueWork:
        """Part r of the tensor to rank r; parts are equal, or have the numbers of rows given. Ranks
        need not say it the same way."""
        del opts
        detail = "with split sizes" if out_rows or rows else ""
        call = group_call("all_to_all_single", [x], sizes=(), detail=detail)
        return self._enqueue(
            call,
            lambda group: self._all_to_all(group, out, x, list(out_rows or ()), list(rows or ())),
            [out],
        )

    alltoall_base = all_to_all_single

    def alltoall(self, outs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> QueueWork:
        """Tensor r to rank r; they may differ in size."""
        del opts

        def run(group: GroupMember | None) -> None:
            counts = [tensor.numel() for tensor in outs]
            flat = torch.empty(sum(counts), dtype=outs[0].dtype, device=f"cuda:{self._gpu}")
            x = torch.cat([self._on_gpu(tensor).reshape(-1) for tensor in inputs])
            self._all_to_all(group, flat, x, counts, [tensor.numel() for tensor in inputs])
            for out, part in zip(outs, flat.split(counts), strict=True):
                out.detach().copy_(part.view(out.shape))

        return self._enqueue(group_call("all_to_all", inputs, sizes=()), run, outs)

    def barrier(self, opts: Any = None) -> QueueWork:
        """Wait until all ranks have called it."""
        del opts
        work = self._barrier("barrier")
        work.wait()
        return work

    def _barrier(self, name: str) -> QueueWork:
        token = torch.ones(1, device="cuda")
        return self._enqueue(
            group_call(name, kind=name),
            lambda group: self._all_reduce(group, token, token, None),
            [],
        )

    def monitored_barrier(self, *_: Any) -> None:
        """The same, for programs that ask for Gloo: ranks that do not come are a deadlock, which
        needs no timeout."""
        self._barrier("monitored_barrier").wait()

    def send(self, tensors: list[Tensor], to: int, tag: int = 0) -> QueueWork:
        """Send tensors to a rank; those sent to one rank arrive in order, whatever their tag."""
        del tag
        call = group_call("send", tensors, kind="message", peer=f" to rank {self._ranks[to]}")
        return self._message(call, tensors, self._own, to)

    def recv(self, tensors: list[Tensor], source: int, tag: int = 0) -> QueueWork:
        """Receive tensors of a rank."""
        del tag
        sender = f" from rank {self._ranks[source]}"
        call = group_call("recv", tensors, kind="message", peer=sender)
        return self._message(call, tensors, source, self._own)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> QueueWork:
        """Raises UsageError."""
        del tensors, tag
        raise UsageError("recv: the sender must be named", hint="give src=")

    def agree(self, call: GroupCall) -> None:
        """All ranks of the group make a call that launches nothing. Raises CallsDiffer for another
        than a peer has made."""
        part = self._part
        if part.agreements is None:
            board = self._shared.board(f"{self._name}: agreements", self._ranks, "group")
            part.agreements = CallCounter(part.own, board)
        part.agreements.post(call)

    def fused(self, name: str, call: Callable[[GroupMember], Results]) -> Results:
        """What `call`, of the operator `name`, gives for this rank of the group, a tensor or
        several, behind the current stream and waited for. Raises UsageError in a group of one
        rank."""
        results: list[Results] = []
        tensors: list[Tensor] = []

        self._check_ranks()

        def run(group: GroupMember | None) -> None:
            assert group is not None
            results.append(call(group))
            tensors.extend([results[0]] if isinstance(results[0], Tensor) else results[0])

        self._enqueue(group_call(name), run, tensors).wait()
        return results[0]

    @property
    def layout(self) -> Any:
        """What operators over ranks check tensors of this rank against, a `RankLayout`. Raises
        UsageError in a group of one rank."""
        self._check_ranks()
        own = collectives()
        return own.RankLayout(self._own, self.size(), self._gpu, own.HALF)

    def _check_ranks(self) -> None:
        if self.size() < 2:
            raise UsageError("operators over ranks need two ranks or more")

    @property
    def _gpu(self) -> int:
        return self._ranks[self._own]

    def _message(self, call: GroupCall, tensors: list[Tensor], source: int, to: int) -> QueueWork:
        if source == to:
            raise UsageError(f"{call}: the peer is the rank itself")
        gpus = self._ranks[source], self._ranks[to]
        name = f"{self._name}: {source} to {to}"

        def run(group: GroupMember | None) -> None:
            for tensor in tensors:
                self._broadcast(group, tensor, 0)

        return self._enqueue(call, run, tensors, name, gpus)

    def _root(self, name: str, opts: Any) -> str:
        return f"{name}={self._ranks[opts.rootRank]}"

    def _enqueue(
        self,
        call: GroupCall,
        run: Callable[[GroupMember | None], None],
        results: Sequence[Tensor],
        name: str = "",
        gpus: Sequence[int] = (),
    ) -> QueueWork:
        return self._gpus.untraced(self._enqueue_call)(call, run, results, name, gpus)

    def _enqueue_call(
        self,
        call: GroupCall,
        run: Callable[[GroupMember | None], None],
        results: Sequence[Tensor],
        name: str,
        gpus: Sequence[int],
    ) -> QueueWork:
        """Call `run` with this rank's part of the group, None in a group of one, on the stream of
        `name`. Raises ArgumentError, with the calls of all ranks, where `call` or its tensors do
        not fit those of another."""
        gpus = gpus or self._ranks
        call = call.in_group(self._name)
        with self._gpus.mode.enter(), torch.no_grad(), self._gpus.using(self._gpu):
            before = torch.cuda.current_stream()
            streams = self._part.streams
            stream = streams.get(name)
            if stream is None:
                stream = streams[name] = torch.cuda.Stream(self._gpu)
            stream.wait_stream(before)
            member = None
            if len(gpus) > 1:
                member = self._shared.of(
                    name or self._name, gpus, "message" if name else "collective"
                )[gpus.index(self._gpu)]
            with torch.cuda.stream(stream), calling(str(call)), self._compared(member, call):
                run(None if member is None else member.group)
            return QueueWork(self._gpus.node, stream.queue.marker(), results)

    @contextlib.contextmanager
    def _compared(self, member: CallingMember | None, call: GroupCall) -> Iterator[None]:
        """A block that makes a call, where that fits the calls of peers. Launches of this rank and
        of peers that would wait for ever end with the same error."""
        if member is None:
            yield
            return
        try:
            member.calls.post(call)
            yield
        except ArgumentError as error:
            differ = error
            if not isinstance(error, CallsDiffer):
                differ = CallsDiffer(f"{member.calls.last}: {error.message}")
            for rank in member.calls.refuse():
                self._gpus.node.stop(rank, differ)
            raise differ from error
        try:
            member.calls.check_peers()
        except CallsDiffer as error:
            self._gpus.node.stop(self._gpu, error)
            raise

    def _on_gpu(self, x: Tensor) -> Tensor:
        """A tensor as kernels take it: on a GPU, contiguous."""
        x = self._adopt(x.detach())
        return (x.to(f"cuda:{self._gpu}") if owner(x) == HOST else x).contiguous()

    def _adopt(self, tensor: Tensor) -> Tensor:
        """A tensor, which belongs to this rank's GPU if it says nothing: operators of PyTorch's
        C++ side make the results of functional collectives."""
        if owner(tensor) is None:
            assign(tensor, self._gpu)
        return tensor

    def _write_tensor(self, out: Tensor, compute: _Compute) -> None:
        """Let `compute` write the elements of a tensor, flat."""
        out = self._adopt(out.detach())
        if out.is_contiguous() and owner(out) != HOST:
            compute(out.view(-1))
            return
        flat = torch.empty(out.numel(), dtype=out.dtype, device=f"cuda:{self._gpu}")
        compute(flat)
        out.copy_(flat.view(out.shape))

    def _all_reduce(self, group: GroupMember | None, out: Tensor, x: Tensor, opts: Any) -> None:
        x = self._on_gpu(x).view(-1)
        if not x.numel():
            return
        op = operation(opts, x)
        if group is None:
            self._write_tensor(out, lambda flat: flat.copy_(x))
            return
        count = x.numel() * x.element_size()
        shots = shots_of(count, group.world)
        self._write_tensor(
            out,
            lambda flat: collectives().all_reduce(
                to_reducible(x), group, shots, op, to_reducible(flat)
            ),
        )

    def _broadcast(self, group: GroupMember | None, tensor: Tensor, root: int) -> None:
        if group is not None and tensor.numel():
            x = self._on_gpu(tensor).view(-1)
            if group.rank == root:  # which only reads its tensor
                collectives().broadcast(x, group, root, x)
                return
            self._write_tensor(tensor, lambda flat: collectives().broadcast(x, group, root, flat))

    def _all_gather(self, group: GroupMember | None, out: Tensor, x: Tensor) -> None:
        size = len(self._ranks) * x.numel()
        if out.numel() != size:
            raise ArgumentError(f"all_gather: the result has {out.numel()} elements, not {size}")
        flat = self._on_gpu(x).view(-1)
        if not size:
            return
        if group is None:
            self._write_tensor(out, lambda into: into.copy_(flat))
        else:
            self._write_tensor(out, lambda into: collectives().all_gather(flat, group, into))

    def _gather_list(self, group: GroupMember | None, parts: list[Tensor], x: Tensor) -> None:
        if len({part.numel() for part in parts}) > 1:
            for root, part in enumerate(parts):
                if root == self._own:
                    part.detach().copy_(x.detach().reshape(part.shape))
                self._broadcast(group, part, root)
            return
        shape = (len(parts), *x.shape)
        whole = torch.empty(shape, dtype=x.dtype, device=f"cuda:{self._gpu}")
        self._all_gather(group, whole, x)
        for part, row in zip(parts, whole, strict=True):
            part.detach().copy_(row.view(part.shape))

    def _reduce_scatter(self, group: GroupMember | None, out: Tensor, x: Tensor, opts: Any) -> None:
        size = len(self._ranks) * out.numel()
        if x.numel() != size:
            raise ArgumentError(f"reduce_scatter: x has {x.numel()} elements, expected {size}")
        if not size:
            return
        flat, op = self._on_gpu(x).view(-1), operation(opts, x)
        if group is None:
            self._write_tensor(out, lambda into: into.copy_(flat))
            return
        self._write_tensor(
            out,
            lambda into: collectives().reduce_scatter(
                to_reducible(flat), group, op, to_reducible(into)
            ),
        )

    def _reduce_scatter_list(
        self, group: GroupMember | None, out: Tensor, parts: list[Tensor], opts: Any
    ) -> None:
        flat = [self._on_gpu(part).view(-1) for part in parts]
        if len({part.numel() for part in parts}) == 1:
            self._reduce_scatter(group, out, torch.cat(flat), opts)
            return
        for rank, part in enumerate(flat):
            self._all_reduce(
                group, out if rank == self._own else torch.empty_like(part), part, opts
            )

    def _all_to_all(
        self,
        group: GroupMember | None,
        out: Tensor,
        x: Tensor,
        out_rows: list[int],
        rows: list[int],
    ) -> None:
        x = self._on_gpu(x)
        if group is None:
            self._write_tensor(out, lambda flat: flat.copy_(x.view(-1)))
            return
        shape = out.shape
        if x.shape[1:] != shape[1:]:  # which equal parts may have
            if out_rows or rows:
                raise ArgumentError(f"all_to_all: rows of x {list(x.shape)}, out {list(shape)}")
            x, shape = x.view(-1), torch.Size([out.numel()])
        parts = _parts_of(rows, out_rows)
        rows = rows or self._equal_parts(x.shape[0])
        out_rows = out_rows or self._equal_parts(shape[0])
        if group.sends_equal_parts(parts):
            if out.numel() != x.numel():
                raise ArgumentError(
                    f"all_to_all: the result has {out.numel()} elements, x {x.numel()}"
                )
            self._write_tensor(
                out, lambda flat: collectives().all_to_all(x.view(-1), group, flat.view(-1))
            )
            return
        self._write_tensor(
            out,
            lambda flat: collectives().all_to_all_uneven(
                x, group, rows, out_rows, flat.view(shape)
            ),
        )

    def _equal_parts(self, rows: int) -> list[int]:
        ranks = len(self._ranks)
        if rows % ranks:
            raise ArgumentError(f"all_to_all: {rows} rows are not equal parts of {ranks} ranks")
        return [rows // ranks] * ranks


def _parts_of(rows: Sequence[int], out_rows: Sequence[int]) -> Parts:
    """What a rank says of the parts that it sends and receives."""
    if not rows and not out_rows:
        return Parts.EQUAL
    return Parts.EQUAL_SIZES if len({*rows, *out_rows}) == 1 else Parts.SIZES


def _op_of(opts: Any) -> str:
    """The reduction that options ask for, "" for the usual one."""
    name = op_name(opts)
    return "" if name == "SUM" else f"op={name}"


def _parts_sizes(lists: Sequence[Sequence[Tensor]]) -> list[int]:
    """The sizes of the parts in lists, of a list whose parts have one size just that."""
    sizes = [[part.numel() for part in parts] for parts in lists]
    return [size for row in sizes for size in (row[:1] if len({*row}) == 1 else row)]


__all__ = ["NAME", "EmulatedGroup"]
