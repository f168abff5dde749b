"""What several emulated GPUs cost the host in processor time, and what checks across GPUs add.

python benchmarks/several_gpus.py [--gpus 8] [--mebibytes 1] [--rounds 7] [--operators]
                                  [--target gfx942]

all-reduce   `wavecast.ops.distributed.all_reduce` of fp32 on all GPUs, median of warm calls
checked      the same with checks across GPUs, and its ratio to the plain one
host sum     the same sums by PyTorch on the host, for comparison
step         forward, backward and AdamW of a two-layer transformer (attention and MLP) with tensor
             parallelism over all GPUs, plain and checked
operators    with `--operators` instead: products, attention over a ring and expert dispatch with
             combine, of small sizes, plain and checked
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)

import wavecast
from wavecast import ops
from wavecast.ops import distributed

_HIDDEN, _TOKENS, _HEAD = 256, 64, 32


class Layer(nn.Module):
    """Causal attention and an MLP with norms and residuals; ranks divide the heads."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.norm = nn.LayerNorm(_HIDDEN), nn.LayerNorm(_HIDDEN)
        self.query, self.key, self.value, self.out = (
            nn.Linear(_HIDDEN, _HIDDEN, bias=False) for _ in range(4)
        )
        self.up = nn.Linear(_HIDDEN, 4 * _HIDDEN, bias=False)
        self.down = nn.Linear(4 * _HIDDEN, _HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.before(x)
        q, k, v = (one(y).unflatten(-1, (-1, _HEAD)) for one in (self.query, self.key, self.value))
        heads, _ = ops.attention(q[None], k[None], v[None], causal=True)
        x = x + self.out(heads[0].flatten(1))
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


def main() -> None:
    parser = argparse.ArgumentParser(description="What several emulated GPUs cost the host.")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--mebibytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--target", default="gfx942")
    parser.add_argument("--operators", action="store_true", help="products, attention, experts")
    given = parser.parse_args()
    if given.operators:
        _operators(given.target, given.gpus, given.rounds)
        return
    elements = int(given.mebibytes * (1 << 20)) // 4
    torch.manual_seed(0)
    inputs = [torch.randn(elements) for _ in range(given.gpus)]
    plain, checked = (
        _all_reduce(inputs, given.target, given.rounds, check=check) for check in (False, True)
    )
    host = _median(lambda: [sum(inputs) for _ in inputs], given.rounds)
    print(f"all-reduce of {given.mebibytes:g} MiB on {given.gpus} GPUs: {plain:.2f} s")
    print(f"checked: {checked:.2f} s, {checked / plain:.1f} times the plain one")
    print(f"host sum: {host * 1e3:.1f} ms")
    plain, checked = (_step(given.target, given.gpus, check=check) for check in (False, True))
    print(f"step of two layers, tensor parallel over {given.gpus}: {plain:.1f} s")
    print(f"checked: {checked:.1f} s, {checked / plain:.1f} times the plain one")


def _median(call: Callable[[], Any], rounds: int) -> float:
    """Median seconds of processor time of some calls, after two that compile."""
    for _ in range(2):
        call()
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def _all_reduce(inputs: list[torch.Tensor], target: str, rounds: int, *, check: bool) -> float:
    world = len(inputs)
    node: Any
    with wavecast.device(target, count=world, check=check) as node:
        groups = distributed.groups(world)
        x = [value.to(f"cuda:{rank}") for rank, value in enumerate(inputs)]
        return _median(
            lambda: node.ranks(lambda rank: distributed.all_reduce(x[rank], groups[rank])), rounds
        )


def _operators(target: str, world: int, rounds: int) -> None:
    """Print processor seconds of small calls of every fused operator, plain and checked."""
    for name, call in _calls(world).items():
        plain, checked = (
            _call_seconds(call, target, world, rounds, check=check) for check in (False, True)
        )
        print(
            f"{target}, {world} GPUs, {name}: plain {plain:.3f} s, checked {checked:.3f} s, "
            f"{checked / plain:.1f} times the plain one",
            flush=True,
        )


def _calls(world: int) -> dict[str, Callable[[int, Any], Any]]:
    """By name, what a rank with a group calls."""
    torch.manual_seed(0)
    x, weight = torch.randn(66 * world, 70).half(), torch.randn(130, 70).half()
    heads, tokens = torch.randn(1, 5, 1, 16), torch.randn(16, 64).half()
    choices, weights = torch.randint(2 * world, (16, 2)), torch.rand(16, 2)

    def product(name: str) -> Callable[[int, Any], Any]:
        # the shots that are predicted to be faster need links, which not every device has
        shots = {"shots": 2} if name == "matmul_all_reduce" else {}
        called = getattr(distributed, name)
        return lambda _, group: called(x.to("cuda"), weight.to("cuda"), group, **shots)

    def ring(_: int, group: Any) -> Any:
        q, k, v = (heads.to("cuda") for _ in range(3))
        return distributed.ring_attention(q, k, v, group, causal=True)

    def experts(_: int, group: Any) -> Any:
        sent = distributed.expert_dispatch(tokens.to("cuda"), choices.to("cuda"), 2 * world, group)
        return distributed.expert_combine(sent.tokens, weights.to("cuda"), sent, group)

    products = ("matmul_reduce_scatter", "matmul_all_reduce", "all_gather_matmul")
    calls = {name: product(name) for name in products}
    return {**calls, "ring_attention": ring, "expert_dispatch and expert_combine": experts}


def _call_seconds(
    call: Callable[[int, Any], Any], target: str, world: int, rounds: int, *, check: bool
) -> float:
    node: Any
    with wavecast.device(target, count=world, check=check) as node:
        groups = distributed.groups(world, half=1 << 16)

        def rank(number: int) -> None:
            call(number, groups[number])
            torch.cuda.synchronize()

        return _median(lambda: node.ranks(rank), rounds)


def _step(target: str, world: int, *, check: bool) -> float:
    """Processor seconds of the second step of training."""
    node: Any
    seconds = 0.0

    def rank(number: int) -> None:
        dist.init_process_group("wavecast")
        torch.manual_seed(0)
        mesh = init_device_mesh("cuda", (world,))
        model = nn.Sequential(Layer(), Layer()).to("cuda")
        plan: dict[str, ParallelStyle] = {
            f"{layer}.{name}": style()
            for layer in range(2)
            for name, style in (
                *((name, ColwiseParallel) for name in ("query", "key", "value", "up")),
                *((name, RowwiseParallel) for name in ("out", "down")),
            )
        }
        parallelize_module(model, mesh, plan)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        x = torch.randn(_TOKENS, _HIDDEN, device="cuda")
        for _ in range(2):
            dist.barrier()
            start = time.process_time()
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            torch.cuda.synchronize()
            if number == 0:
                nonlocal seconds
                seconds = time.process_time() - start
        dist.destroy_process_group()

    with wavecast.device(target, count=world, check=check) as node:
        node.ranks(rank)
    return seconds


if __name__ == "__main__":
    main()
