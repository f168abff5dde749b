"""`torch.distributed` on emulated GPUs: results, and errors of ranks that differ."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

import wavecast  # noqa: E402
from wavecast.errors import (  # noqa: E402
    ArgumentError,
    UsageError,
    WavecastError,
)

pytestmark = pytest.mark.torch
SLOW = pytest.mark.thorough
WORLD = 2
WHOLE: Any = dist.distributed_c10d._get_default_group


@pytest.fixture(params=[WORLD, pytest.param(4, marks=SLOW), pytest.param(8, marks=SLOW)])
def node(request: pytest.FixtureRequest) -> Iterator[Any]:
    with wavecast.device("gfx942", count=request.param) as hooks:
        yield hooks


def _ranks(node: Any, function: Callable[[int, int], Any]) -> list[Any]:
    """Call `function(rank, world)` on every rank of a process group."""

    def rank(number: int) -> Any:
        dist.init_process_group("wavecast")
        return function(number, dist.get_world_size())

    return node.ranks(rank)


def _of(rank: int, *shape: int, dtype: Any = None) -> Any:
    """A tensor of integers that differ by rank, on the rank's GPU."""
    count = torch.Size(shape).numel()
    values = torch.arange(count).add(rank * 10).remainder(7).view(shape)
    return values.to(dtype or torch.float32).to(f"cuda:{rank}")


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.float32, torch.int64),
        *(pytest.param(dtype, marks=SLOW) for dtype in (torch.bfloat16, torch.float64)),
    ],
)
def test_reductions(node: Any, dtype: Any) -> None:
    def rank(number: int, world: int) -> None:
        all_of = torch.stack([_of(r, 5, 3, dtype=dtype).cpu() for r in range(world)])
        for op, expected in (
            (dist.ReduceOp.SUM, all_of.sum(0)),
            (dist.ReduceOp.MAX, all_of.amax(0)),
            (dist.ReduceOp.MIN, all_of.amin(0)),
            (dist.ReduceOp.PRODUCT, all_of.prod(0)),
        ):
            x = _of(number, 5, 3, dtype=dtype)
            assert dist.all_reduce(x, op) is None
            assert torch.equal(x.cpu(), expected.to(dtype)), op
        if dtype.is_floating_point:
            x = _of(number, 5, 3, dtype=dtype).t()  # not contiguous
            dist.all_reduce(x, dist.ReduceOp.AVG)
            assert torch.allclose(x.t().cpu(), all_of.mean(0), rtol=1e-2)
        out = torch.empty(3, dtype=dtype, device="cuda")
        dist.reduce_scatter_single(out, _of(number, world, 3, dtype=dtype))
        parts = torch.stack([_of(r, world, 3, dtype=dtype).cpu() for r in range(world)])
        assert torch.equal(out.cpu(), parts.sum(0)[number].to(dtype))
        root = _of(number, 4, dtype=dtype)
        dist.reduce(root, 1)
        whole = torch.stack([_of(r, 4, dtype=dtype).cpu() for r in range(world)]).sum(0)
        expected = whole.to(dtype) if number == 1 else _of(number, 4, dtype=dtype).cpu()
        assert torch.equal(root.cpu(), expected)

    _ranks(node, rank)


def test_copies_between_ranks(node: Any) -> None:
    def rank(number: int, world: int) -> None:
        flags = torch.tensor([number == 1, True], device="cuda")
        dist.all_reduce(flags, dist.ReduceOp.MIN)
        assert flags.tolist() == [False, True]
        x = _of(number, 3, dtype=torch.complex128)
        whole = torch.empty(world, 3, dtype=x.dtype, device="cuda")
        dist.all_gather_single(whole, x)
        assert all(
            torch.equal(whole[r].cpu(), _of(r, 3, dtype=x.dtype).cpu()) for r in range(world)
        )
        uneven = [torch.empty(r + 1, device="cuda") for r in range(world)]
        dist.all_gather(uneven, _of(number, number + 1))
        assert all(torch.equal(one.cpu(), _of(r, r + 1).cpu()) for r, one in enumerate(uneven))
        shared = _of(number, 4, dtype=torch.uint8)
        dist.broadcast(shared, 1)
        assert torch.equal(shared.cpu(), _of(1, 4, dtype=torch.uint8).cpu())
        part = torch.empty(2, device="cuda")
        dist.scatter(part, [_of(r, 2).to("cuda") for r in range(world)] if number == 0 else None, 0)
        assert torch.equal(part.cpu(), _of(number, 2).cpu())
        found = [torch.empty(2, device="cuda") for _ in range(world)] if number == 0 else None
        dist.gather(_of(number, 2), found, 0)
        assert found is None or torch.equal(found[1].cpu(), _of(1, 2).cpu())
        objects: list[Any] = [None] * world
        dist.all_gather_object(objects, {"rank": number})
        assert objects == [{"rank": r} for r in range(world)]
        host = torch.full((2,), float(number + 1)).cpu()
        dist.all_reduce(host)
        assert (host.device.type, host.tolist()) == ("cpu", [world * (world + 1) / 2] * 2)
        empty = torch.empty(0, device="cuda")
        dist.all_reduce(empty)
        dist.barrier()

    _ranks(node, rank)


def test_parts_of_different_sizes(node: Any) -> None:
    """Rank r sends (r + peer) % 3 rows to each peer, some of them none."""

    def rank(number: int, world: int) -> None:
        rows = [(number + peer) % 3 for peer in range(world)]
        x = _of(number, sum(rows), 5)
        out = torch.empty(sum(rows), 5, device="cuda")
        dist.all_to_all_single(out, x, rows, rows)
        sent = [_of(p, sum((p + q) % 3 for q in range(world)), 5).cpu() for p in range(world)]
        expected = [
            one.split([(p + q) % 3 for q in range(world)])[number] for p, one in enumerate(sent)
        ]
        assert torch.equal(out.cpu(), torch.cat(expected))
        equal = torch.empty(2 * world, device="cuda")
        dist.all_to_all_single(equal, _of(number, 2 * world))
        expected = [_of(r, 2 * world).cpu()[2 * number : 2 * number + 2] for r in range(world)]
        assert torch.equal(equal.cpu(), torch.cat(expected))

    _ranks(node, rank)


def test_messages_in_both_directions(node: Any) -> None:
    def rank(number: int, world: int) -> None:
        after, before = (number + 1) % world, (number - 1) % world
        got = torch.empty(300, device="cuda")
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, _of(number, 300), after),
                dist.P2POp(dist.irecv, got, before),
            ]
        )
        for work in works:
            work.wait()
        assert torch.equal(got.cpu(), _of(before, 300).cpu())

    _ranks(node, rank)


def test_functional_collectives_and_their_gradients(node: Any) -> None:
    def rank(number: int, world: int) -> None:
        x = _of(number, 2 * world)
        total = functional.all_reduce(x, "sum", WHOLE())
        expected = torch.stack([_of(r, 2 * world).cpu() for r in range(world)])
        assert torch.equal((total + 0).cpu(), expected.sum(0))
        part = functional.reduce_scatter_single(x, "sum", 0, WHOLE())
        assert torch.equal((part + 0).cpu(), expected.sum(0).view(world, 2)[number])
        whole = functional.all_gather_single(part, 0, WHOLE())
        assert torch.equal((whole + 0).cpu(), expected.sum(0))
        one = _of(number, 4).requires_grad_()
        gathered = functional.all_gather_single_autograd(one, 0, WHOLE())
        (gathered * (number + 1)).sum().backward()
        assert one.grad.tolist() == [world * (world + 1) / 2] * 4

    _ranks(node, rank)


def test_products_over_ranks_are_those_of_functional_collectives(node: Any) -> None:
    ops: Any = torch.ops.wavecast

    def rank(number: int, world: int) -> None:
        torch.manual_seed(number)
        name = WHOLE().group_name
        x, weight = torch.randn(2 * world, 24), torch.randn(40, 24)
        found = []
        for fused in (True, False):
            a, b = (one.to("cuda").requires_grad_() for one in (x, weight))
            if fused:
                part = ops.matmul_reduce_scatter(a, b, name)
                whole = ops.all_gather_matmul(part, b.T.contiguous(), name)
            else:
                part = functional.reduce_scatter_single_autograd(a @ b.T, "sum", 0, WHOLE())
                whole = functional.all_gather_single_autograd(part, 0, WHOLE()) @ b
            (whole * (number + 1)).sum().backward()
            found.append([one.cpu() for one in (part.detach(), whole.detach(), a.grad, b.grad)])
        for mine, theirs in zip(*found, strict=True):
            assert torch.allclose(mine, theirs, 1e-4, 1e-3)
        total = ops.matmul_all_reduce(x.to("cuda"), weight.to("cuda"), name)
        plain = functional.all_reduce(x.to("cuda") @ weight.to("cuda").T, "sum", WHOLE())
        assert torch.allclose(total.cpu(), (plain + 0).cpu(), 1e-5, 1e-5)

    _ranks(node, rank)


@pytest.mark.parametrize("name", ["ring_attention", "all_gather_attention"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_over_ranks_is_that_of_functional_collectives(
    node: Any, name: str, causal: bool
) -> None:
    """Of 11 tokens a rank, which no block divides, and two heads of queries for one of keys."""
    operator: Any = getattr(torch.ops.wavecast, name)
    tokens = 11

    def plain(q: Any, k: Any, v: Any, number: int, world: int) -> Any:
        def every(x: Any) -> Any:
            own = x.transpose(0, 1).contiguous()
            return functional.all_gather_single_autograd(own, 0, WHOLE()).transpose(0, 1)

        keys, values = (every(x).repeat_interleave(2, 2) for x in (k, v))
        logits = torch.einsum("bshd,bthd->bhst", q, keys) / 4  # the root of 16
        if causal:
            rows = torch.arange(tokens)[:, None] + number * tokens
            hidden = torch.arange(world * tokens)[None] > rows
            logits = logits.masked_fill(hidden.to("cuda"), -torch.inf)
        return torch.einsum("bhst,bthd->bshd", logits.softmax(-1), values)

    def rank(number: int, world: int) -> None:
        torch.manual_seed(number)
        shapes = (1, tokens, 2, 16), (1, tokens, 1, 16), (1, tokens, 1, 16)
        host = [torch.randn(shape) for shape in shapes]
        weights = torch.randn(shapes[0])
        found = []
        for fused in (True, False):
            q, k, v = (x.to("cuda").requires_grad_() for x in host)
            if fused:
                out, lse = operator(q, k, v, WHOLE().group_name, causal)
                assert lse.shape == (1, 2, tokens)
            else:
                out = plain(q, k, v, number, world)
            (out * weights.to("cuda")).sum().backward()
            found.append([x.cpu() for x in (out.detach(), q.grad, k.grad, v.grad)])
        for mine, theirs in zip(*found, strict=True):
            assert torch.allclose(mine, theirs, 1e-4, 1e-5)

    _ranks(node, rank)


def test_shapes_of_attention_over_ranks(node: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def rank(number: int, world: int) -> None:
        del number, world
        ops: Any = torch.ops.wavecast
        half = {"dtype": torch.bfloat16}
        with FakeTensorMode():
            q, k, v = (torch.empty(2, 5, *heads, **half) for heads in ((4, 16), (2, 16), (2, 8)))
            for name in ("ring_attention", "all_gather_attention"):
                out, lse = getattr(ops, name)(q, k, v, WHOLE().group_name, True, 0.5)
                assert (out.shape, out.dtype) == ((2, 5, 4, 8), torch.bfloat16)
                assert (lse.shape, lse.dtype) == ((2, 4, 5), torch.float32)
                backward = getattr(ops, f"{name}_backward")
                grads = backward(out, q, k, v, out, lse, WHOLE().group_name)
                assert [x.shape for x in grads] == [q.shape, k.shape, v.shape]

    _ranks(node, rank)


def test_experts_over_ranks_are_those_of_functional_collectives(node: Any) -> None:
    """Tokens sorted by rank and expert, exchanged with parts of different sizes, and back; expert e
    multiplies by e + 1 and squares. Ranks have 3, 4, … tokens."""
    ops: Any = torch.ops.wavecast
    topk, columns, each = 2, 5, 2

    def plain(x: Any, weights: Any, choices: Any, world: int) -> Any:
        order = torch.argsort(choices.reshape(-1), stable=True)
        homes = choices.reshape(-1)[order]
        rows = torch.bincount(homes // each, minlength=world)
        counts = torch.bincount(homes, minlength=world * each).view(world, each)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        sent, received = rows.tolist(), theirs.sum(1).tolist()
        tokens = functional.all_to_all_single_autograd(x[order // topk], received, sent, WHOLE())
        own = torch.arange(each).repeat(world).repeat_interleave(theirs.cpu().reshape(-1))
        y = _expert(tokens, own + dist.get_rank() * each)
        back = functional.all_to_all_single_autograd(y, sent, received, WHOLE())
        weighted = back * weights.reshape(-1)[order].unsqueeze(1)
        return torch.zeros_like(x).index_add(0, order // topk, weighted)

    def _expert(tokens: Any, numbers: Any) -> Any:
        return (tokens * (numbers.to("cuda") + 1).unsqueeze(1)) ** 2

    def rank(number: int, world: int) -> None:
        torch.manual_seed(number)
        tokens, name = 3 + number, WHOLE().group_name
        choices = torch.stack([torch.randperm(world * each)[:topk] for _ in range(tokens)])
        choices = choices.to("cuda")
        host = torch.randn(tokens, columns), torch.rand(tokens, topk)
        factors = torch.randn(tokens, columns).to("cuda")
        found = []
        for fused in (True, False):
            x, weights = (one.to("cuda").requires_grad_() for one in host)
            if fused:
                sent, counts, *of = ops.expert_dispatch(x, choices, world * each, name)
                own = torch.arange(each).repeat_interleave(counts.cpu())
                out = ops.expert_combine(_expert(sent, own + number * each), weights, *of, name)
            else:
                out = plain(x, weights, choices, world)
            (out * factors).sum().backward()
            found.append([one.cpu() for one in (out.detach(), x.grad, weights.grad)])
        for mine, theirs in zip(*found, strict=True):
            assert torch.allclose(mine, theirs, 1e-4, 1e-4)

    _ranks(node, rank)


def test_shapes_of_experts_over_ranks(node: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    def rank(number: int, world: int) -> None:
        del number
        ops: Any = torch.ops.wavecast
        name = WHOLE().group_name
        with FakeTensorMode(shape_env=ShapeEnv()):
            x, choices = torch.empty(3, 5), torch.empty(3, 2, dtype=torch.int64)
            tokens, counts, *of = ops.expert_dispatch(x, choices, 4 * world, name)
            assert tokens.shape[1:] == (5,)
            assert counts.shape == (4,)
            out = ops.expert_combine(tokens, torch.empty(3, 2), *of, name)
            assert out.shape == (3, 5)

    _ranks(node, rank)


def test_shapes_of_products_over_ranks(node: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def rank(number: int, world: int) -> None:
        del number
        name = WHOLE().group_name
        if world == WORLD:
            with FakeTensorMode():
                x, weight = torch.empty(4 * world, 24), torch.empty(40, 24)
                ops: Any = torch.ops.wavecast
                assert ops.matmul_reduce_scatter(x, weight, name).shape == (4, 40)
                assert ops.all_gather_matmul(x, weight, name).shape == (4 * world * world, 40)

    _ranks(node, rank)


def test_groups_of_some_ranks() -> None:
    def rank(number: int, world: int) -> None:
        pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        x = _of(number, 6)
        dist.all_reduce(x, group=pairs[number % 2])
        expected = _of(number % 2, 6).cpu() + _of(number % 2 + 2, 6).cpu()
        assert torch.equal(x.cpu(), expected)
        mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("rows", "columns"))
        y = _of(number, 3)
        dist.all_reduce(y, group=mesh["rows"].get_group())
        assert torch.equal(y.cpu(), _of(number % 2, 3).cpu() + _of(number % 2 + 2, 3).cpu())
        alone = dist.new_group([3], use_local_synchronization=True) if number == 3 else None
        if alone is not None:
            dist.all_reduce(y, group=alone)
        assert world == 4

    with wavecast.device("gfx942", count=4) as node:
        _ranks(node, rank)


def test_variables_and_groups_are_those_of_the_rank(node: Any) -> None:
    def rank(number: int) -> tuple[str, str]:
        found = []

        def child() -> None:
            found.append(os.environ["RANK"])

        thread = threading.Thread(target=child)
        thread.start()
        thread.join()
        os.environ["LOCAL_RANK"] = f"changed by {number}"
        return found[0], os.environ["LOCAL_RANK"]

    expected = [(str(r), f"changed by {r}") for r in range(node.node.count)]
    assert node.ranks(rank) == expected
    assert "RANK" not in os.environ
    assert not dist.is_initialized()


def test_backends_of_other_names_and_a_second_start(node: Any) -> None:
    def rank(number: int) -> list[float]:
        found = []
        for backend in ("nccl", "cpu:gloo,cuda:nccl"):
            dist.init_process_group(backend, device_id=torch.device("cuda", number))
            x = torch.ones(1, device="cuda")
            dist.all_reduce(x)
            found.append(x.item())
            dist.destroy_process_group()
        return found

    assert node.ranks(rank) == [[node.node.count] * 2] * node.node.count


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (
            lambda rank: dist.all_reduce(torch.ones(3 + rank, device="cuda")),
            r"rank 0 calls all_reduce of 3 float32 .*, rank 1 calls all_reduce of 4 float32",
        ),
        (
            lambda rank: dist.all_reduce(
                torch.ones(3, dtype=torch.float16 if rank else torch.float32, device="cuda")
            ),
            "all_reduce of 3 float16",
        ),
        (
            lambda rank: dist.all_to_all_single(
                torch.ones(3, 2, device="cuda"), torch.ones(3, 2, device="cuda"), [1, 2], [1, 2]
            ),
            r"calls? all_to_all_single of 6 float32 .* 0 sends 2 rows to rank 1, which expects 1",
        ),
    ],
)
def test_ranks_that_call_other_things(calls: Any, message: str) -> None:
    device = wavecast.device("gfx942", count=WORLD)
    with device as node, pytest.raises(ArgumentError, match=message):
        _ranks(node, lambda rank, world: calls(rank))


def test_a_rank_that_dies_or_stays_away() -> None:
    def dies(number: int, world: int) -> None:
        if number == 1:
            raise ValueError("out of memory")
        x = torch.ones(world, device="cuda")
        dist.all_reduce(x)

    def leaves(number: int, world: int) -> None:
        if number == 0:
            dist.broadcast(torch.ones(world, device="cuda"), 0)

    with wavecast.device("gfx942", count=WORLD) as node, pytest.raises(ValueError, match="memory"):
        _ranks(node, dies)
    with wavecast.device("gfx942", count=WORLD) as node:
        expected = (
            r"deadlock: .*GPU 0 \(gather_kernel, broadcast of 2 float32 \(src=0\) at .*"
            r"GPU 1 runs nothing \(0 launches ended\): rank 1 has ended"
        )
        with pytest.raises(WavecastError, match=expected):
            _ranks(node, leaves)


def test_a_rank_that_compiles_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes, unless it waits there itself."""
    from wavecast.emulate import node as nodes
    from wavecast.emulate.launch import Emulator

    translate, patience, asking = Emulator.translate, nodes.patience, threading.local()
    expects: list[tuple[bool, bool]] = []

    def note(*args: Any) -> Any:
        if threading.current_thread().name != "rank 0":
            return translate(*args)
        asking.now = True  # of which the patience has ended
        with node.node.blocking():
            waits = node.node._expects_more()
        expects.append((node.node._expects_more(), waits))
        asking.now = False
        return translate(*args)

    def rank(number: int, world: int) -> None:
        if number:
            assert launched.wait(60)
        dist.broadcast(torch.ones(world, device="cuda"), 0, async_op=True)
        launched.set()

    launched = threading.Event()
    monkeypatch.setattr(
        nodes, "patience", lambda hosts: -1.0 if vars(asking).get("now") else patience(hosts)
    )
    monkeypatch.setattr(Emulator, "translate", note)
    node: Any
    with wavecast.device("gfx942", count=WORLD) as node:
        _ranks(node, rank)
    assert expects == [(True, False)]


def test_a_rank_that_computes_is_named_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def computes(number: int, world: int) -> None:
        if number == 0:
            dist.all_reduce(torch.ones(world, device="cuda"))
        while number:
            sum(range(100))

    line = computes.__code__.co_firstlineno + 4
    monkeypatch.setattr("wavecast.emulate.node.PATIENCE", 0.5)
    with wavecast.device("gfx942", count=WORLD) as node:
        message = rf"GPU 1 runs nothing .*: rank 1 is at test_process_group.py:({line - 1}|{line})"
        with pytest.raises(WavecastError, match=message):
            _ranks(node, computes)


def test_a_peer_that_has_launched_gets_the_error_of_a_call_that_differs() -> None:
    launched, errors = threading.Event(), []

    def differs(number: int, world: int) -> None:
        x = torch.ones(world + number, device="cuda")
        try:
            if number:
                launched.wait()
            work = dist.all_reduce(x, async_op=True)
            launched.set()
            work.wait()
        except ArgumentError as error:
            errors.append(str(error))
        if number:  # the other one does not wait for the end of this rank
            while len(errors) < world:
                time.sleep(0.01)

    with wavecast.device("gfx942", count=WORLD) as node, contextlib.suppress(ArgumentError):
        _ranks(node, differs)
    assert len(errors) == WORLD
    assert len({*errors}) == 1


@pytest.mark.parametrize("says", [lambda rank: rank == 0, lambda rank: rank == 1], ids=["0", "1"])
def test_equal_parts_may_be_said_on_some_ranks(says: Callable[[int], bool]) -> None:
    def exchange(number: int, world: int) -> list[float]:
        x = torch.arange(2.0 * world, device="cuda") + 10 * number
        out, sizes = torch.empty_like(x), [2] * world if says(number) else None
        dist.all_to_all_single(out, x, sizes, sizes)
        return out.tolist()

    def differs(number: int, world: int) -> None:
        x, sizes = torch.ones(2 * world, device="cuda"), [1, 2 * world - 1]
        dist.all_to_all_single(torch.ones_like(x), x, *([sizes, sizes] if says(number) else []))

    with wavecast.device("gfx942", count=WORLD) as node:
        assert _ranks(node, exchange) == [[0.0, 1.0, 10.0, 11.0], [2.0, 3.0, 12.0, 13.0]]
        with pytest.raises(ArgumentError, match="some ranks say no sizes"):
            _ranks(node, differs)


def test_a_rank_in_another_process_is_refused_where_launches_are_checked() -> None:
    received, sent = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        with pytest.raises(UsageError) as error:
            dist.init_process_group("nccl", rank=0, world_size=1)
        sent.send(str(error.value))

    with wavecast.device("gfx942", count=WORLD, check=True):
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
    assert "ranks are threads, and this is another process" in received.recv()


def test_what_is_refused() -> None:
    def rank(number: int) -> None:
        refused: Any = (
            ({"backend": "wavecast", "world_size": 3}, "rank . of 3; the node has 2 GPUs"),
            ({"backend": "ucc"}, "backend 'ucc' cannot be emulated"),
        )
        for given, message in refused:
            with pytest.raises(UsageError, match=message):
                dist.init_process_group(**given)
        dist.init_process_group()
        x = torch.ones(2, device="cuda")
        for call, message in (
            (lambda: dist.recv(x), "the sender must be named"),
            (lambda: dist.all_reduce(x, dist.ReduceOp.BXOR), "reduction BXOR of float32"),
            (lambda: dist.all_reduce(x.to(f"cuda:{1 - number}")), "x is on cuda"),
            (lambda: dist.all_gather_single(x, x), "the result has 2 elements, not 4"),
        ):
            with pytest.raises(UsageError, match=message):
                call()

    with wavecast.device("gfx942", count=WORLD) as hooks:
        node: Any = hooks
        node.ranks(rank)
    with wavecast.device("gfx942", count=WORLD), pytest.raises(UsageError, match="RANK is not set"):
        dist.init_process_group("nccl")
