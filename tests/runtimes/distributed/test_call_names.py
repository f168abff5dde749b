"""Messages call the operators of `torch.distributed` as the program does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")
dist = pytest.importorskip("torch.distributed")

import torch.distributed._functional_collectives as functional  # noqa: E402

import wavecast  # noqa: E402
from wavecast.emulate.errors import Deadlock  # noqa: E402
from wavecast.kernels.distributed import functions as distributed  # noqa: E402
from wavecast.launch.group_calls import CallBoard, CallsDiffer  # noqa: E402

pytestmark = pytest.mark.torch
HERE = Path(__file__).name


def ones(*shape: int) -> Any:
    return torch.ones(shape, device="cuda")


def _parts(rank: int, call: Callable[..., Any]) -> Any:
    return call([ones(1), ones(2)], ones(1 + rank))


def _exchange(rank: int) -> None:
    peer = 1 - rank
    send, receive = (dist.P2POp(call, ones(4), peer) for call in (dist.isend, dist.irecv))
    for work in dist.batch_isend_irecv([send, receive]):
        work.wait()


def _message(rank: int, send: Callable[..., Any], receive: Callable[..., Any]) -> Any:
    work = receive(ones(4), 0) if rank else send(ones(4), 1)
    return work.wait() if hasattr(work, "wait") else work


MAX = dist.ReduceOp.MAX
OPERATORS: tuple[tuple[Callable[[int], Any], str | tuple[str, str]], ...] = (
    (lambda _: dist.all_reduce(ones(4), MAX), "all_reduce of 4 float32 (op=MAX)"),
    (lambda _: dist.all_reduce(ones(4), async_op=True).wait(), "all_reduce of 4 float32"),
    (lambda _: dist.all_reduce_coalesced([ones(2), ones(3)]),
     "all_reduce_coalesced of 2, 3 float32"),
    (lambda _: dist.all_reduce(ones(0)), "all_reduce of 0 float32"),
    (lambda _: dist.reduce(ones(4), 1), "reduce of 4 float32 (dst=1)"),
    (lambda _: dist.broadcast(ones(4), 1), "broadcast of 4 float32 (src=1)"),
    (lambda _: dist.all_gather_into_tensor(ones(8), ones(4)),
     "all_gather_into_tensor of 4 float32"),
    (lambda rank: _parts(rank, dist.all_gather),
     ("all_gather of 1 float32", "all_gather of 2 float32")),
    (lambda rank: dist.gather(ones(4), None if rank else [ones(4), ones(4)]),
     "gather of 4 float32 (dst=0)"),
    (lambda rank: dist.scatter(ones(4), None if rank else [ones(4), ones(4)]),
     "scatter of 4 float32 (src=0)"),
    (lambda _: dist.reduce_scatter_tensor(ones(4), ones(8)), "reduce_scatter_tensor of 8 float32"),
    (lambda rank: dist.reduce_scatter(ones(1 + rank), [ones(1), ones(2)]),
     "reduce_scatter of 1, 2 float32"),
    (lambda _: dist.all_to_all_single(ones(4), ones(4)), "all_to_all_single of 4 float32"),
    (lambda _: dist.all_to_all_single(ones(4), ones(4), [2, 2], [2, 2]),
     "all_to_all_single of 4 float32 (with split sizes)"),
    (lambda _: dist.all_to_all([ones(2), ones(2)], [ones(2), ones(2)]),
     "all_to_all of 2, 2 float32"),
    (lambda _: dist.barrier(), "barrier"),
    (lambda rank: _message(rank, dist.send, dist.recv),
     ("send of 4 float32 to rank 1", "recv of 4 float32 from rank 0")),
    (lambda rank: _message(rank, dist.isend, dist.irecv),
     ("isend of 4 float32 to rank 1", "irecv of 4 float32 from rank 0")),
    (lambda rank: dist.all_gather_object([None, None], rank), "all_gather_object of 1 int64"),
    (lambda rank: dist.gather_object(rank, None if rank else [None, None]),
     "gather_object of 1 int64"),
    (lambda _: dist.broadcast_object_list([None], 0), "broadcast_object_list of 1 int64 (src=0)"),
    (lambda rank: dist.scatter_object_list([None], None if rank else [1, 2]),
     "scatter_object_list of 1 int64 (src=0)"),
    (lambda rank: dist.recv_object_list([None], 0) if rank else dist.send_object_list([1], 1),
     ("send_object_list of 1 int64 to rank 1", "recv_object_list of 1 int64 from rank 0")),
    (lambda _: functional.all_reduce(ones(4), "sum", dist.group.WORLD).sum(),
     "all_reduce of 4 float32"),
    (lambda _: functional.all_gather_tensor(ones(4), 0, dist.group.WORLD).sum(),
     "all_gather_tensor of 4 float32"),
    (lambda _: functional.reduce_scatter_tensor(ones(4), "sum", 0, dist.group.WORLD).sum(),
     "reduce_scatter_tensor of 4 float32"),
)  # fmt: skip
"""An operator as both ranks call it, and how messages begin to tell of it, by rank where the ranks
differ."""
EXCHANGED = "batch_isend_irecv of 4 float32"


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """The calls of every rank of the program, as messages have them."""
    texts: dict[int, list[str]] = {0: [], 1: []}
    post = CallBoard.post

    def note(board: CallBoard, rank: int, number: int, agreement: str, text: str) -> None:
        texts[dist.get_rank()].append(text)
        post(board, rank, number, agreement, text)

    monkeypatch.setattr(CallBoard, "post", note)
    return texts


@pytest.mark.filterwarnings("ignore::FutureWarning")  # all_reduce_coalesced
def test_operators_have_their_names_and_lines(posted: dict[int, list[str]]) -> None:
    def step(rank: int) -> list[str]:
        dist.init_process_group("nccl")
        firsts = []
        for call, _ in OPERATORS:
            posted[rank].clear()
            call(rank)
            firsts.append(posted[rank][0])
        return firsts

    with wavecast.device("gfx942", count=2) as node:
        told = node.ranks(step)
    for rank in range(2):
        for text, (_, expected) in zip(told[rank], OPERATORS, strict=True):
            name = expected if isinstance(expected, str) else expected[rank]
            assert text.startswith(f"{name} at {HERE}:"), (name, text)


def test_messages_both_ways_are_named_by_their_batch(posted: dict[int, list[str]]) -> None:
    def step(rank: int) -> list[str]:
        dist.init_process_group("nccl")
        _exchange(rank)
        return [re.split(r" at | \(", text)[0] for text in posted[rank]]

    with wavecast.device("gfx942", count=2) as node:
        told = node.ranks(step)
    assert {*told[0]} == {f"{EXCHANGED} to rank 1", f"{EXCHANGED} from rank 1"}


def test_groups_that_ranks_create_in_other_orders_are_named() -> None:
    def step(rank: int) -> None:
        dist.init_process_group("nccl")
        for ranks in ([0, 1], [rank]):
            dist.new_group(ranks)

    expected = rf"group 2: rank 0 calls new_group \(ranks=0\) at {HERE}:\d+, rank 1 calls new_group"
    with wavecast.device("gfx942", count=2) as node, pytest.raises(CallsDiffer, match=expected):
        node.ranks(step)


def test_a_monitored_barrier_is_that_of_gloo() -> None:
    def step(rank: int) -> None:
        dist.init_process_group("gloo")
        dist.monitored_barrier()
        if rank:
            dist.monitored_barrier()

    with wavecast.device("gfx942", count=2) as node, pytest.raises(Deadlock) as raised:
        node.ranks(step)
    assert f"monitored_barrier at {HERE}:" in str(raised.value)

    def refused(rank: int) -> None:
        del rank
        dist.init_process_group("nccl")
        dist.monitored_barrier()

    with wavecast.device("gfx942", count=2) as node, pytest.raises(ValueError, match="GLOO"):
        node.ranks(refused)


def test_groups_of_their_members_only() -> None:
    def step(rank: int) -> float:
        dist.init_process_group("nccl")
        dist.new_group([rank], use_local_synchronization=True)
        pair = dist.new_group([0, 1])
        x = ones(1)
        dist.all_reduce(x, group=pair)
        return x.item()

    with wavecast.device("gfx942", count=2) as node:
        assert node.ranks(step) == [2.0, 2.0]


def test_a_group_other_than_of_all_is_named() -> None:
    def step(rank: int) -> None:
        dist.init_process_group("nccl")
        groups = [dist.new_group([0, 1]) for _ in range(2)]
        dist.all_reduce(ones(4), group=groups[rank])

    with wavecast.device("gfx942", count=2) as node, pytest.raises(Deadlock) as raised:
        node.ranks(step)
    assert f"all_reduce of 4 float32 in group 1 at {HERE}:" in str(raised.value)
    assert f"all_reduce of 4 float32 in group 2 at {HERE}:" in str(raised.value)


def _squares(*shape: int) -> list[Any]:
    return [ones(*shape)] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda rank, ops, _: ops.matmul_reduce_scatter(ones(4 + 2 * rank, 8), ones(8, 8), "0"),
            "rank 0 calls matmul_reduce_scatter of 32 float32 at {}, "
            "rank 1 calls matmul_reduce_scatter of 48 float32 at {}",
        ),
        (
            lambda rank, _, group: (
                distributed.ring_attention if rank else distributed.all_gather_attention
            )(*_squares(1, 4, 2, 16), group),
            "rank 0 calls all_gather_attention (all_gather of 128 float32) at {}, "
            "rank 1 calls ring_attention (shift of 256 float32 (by=1)) at {}",
        ),
    ],
    ids=["operator", "function"],
)
def test_products_and_attention_have_their_names_once(
    call: Callable[..., Any], message: str
) -> None:
    node: Any
    with wavecast.device("gfx942", count=2) as node:
        groups = distributed.groups(2)

        def step(rank: int) -> None:
            dist.init_process_group("nccl")
            call(rank, torch.ops.wavecast, groups[rank])

        with pytest.raises(CallsDiffer) as raised:
            node.ranks(step)
    lines = re.sub(rf"{HERE}:\d+", "{}", raised.value.message)
    assert lines == f"collective 1: {message}"
