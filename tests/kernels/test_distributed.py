"""Collectives on emulated GPUs against their references, and calls that do not fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from wavecast.errors import ArgumentError, MissingFact, WavecastError  # noqa: E402
from wavecast.kernels.distributed import collectives  # noqa: E402
from wavecast.kernels.distributed.collectives import groups  # noqa: E402
from wavecast.kernels.distributed.descriptions import (  # noqa: E402
    DESCRIPTIONS,
    CollectiveOperator,
)
from wavecast.launch.inputs import Make  # noqa: E402

pytestmark = pytest.mark.torch
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
SLOW = pytest.mark.thorough


class Node:
    """The GPUs of a test, and what each rank calls."""

    def __init__(self, hooks: Any, world: int, half: int = 1 << 12) -> None:
        self.hooks, self.world = hooks, world
        self.groups = groups(world, half=half)

    def inputs(self, operator: CollectiveOperator, **sizes: Any) -> list[dict[str, Any]]:
        dtype = sizes["dtype"]
        shaped = {n: v for n, v in sizes.items() if n not in (*operator.options, "dtype")}
        shapes = operator.shapes(self.world, **shaped)
        make = Make(3)
        return [
            {name: make.normal(shape, dtype).to(f"cuda:{rank}") for name, shape in shapes.items()}
            for rank in range(self.world)
        ]

    def call(self, operator: CollectiveOperator, inputs: list[dict[str, Any]], **options: Any):
        def rank(number: int) -> Any:
            return operator.call(**inputs[number], group=self.groups[number], **options)

        return self.hooks.ranks(rank)


@pytest.fixture(params=[2, pytest.param(4, marks=SLOW), pytest.param(8, marks=SLOW)])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """The buffers are small: some cases take several launches."""
    with wavecast.device("gfx942", count=request.param) as hooks:
        yield Node(hooks, request.param, half=1 << 14)


def _cases() -> Iterator[Any]:
    """Of float32 only sums are quick: what moves data does not know its dtype, and products in
    float32 are tested with their gradients."""
    for operator in DESCRIPTIONS:
        for sizes in operator.cases:
            text = " ".join(f"{name}={value}" for name, value in sizes.items())
            quick = sizes["dtype"] != "float32" or operator.name.startswith("all_reduce")
            yield pytest.param(
                operator, sizes, id=f"{operator.name} {text}", marks=() if quick else SLOW
            )


def _check(node: Node, operator: CollectiveOperator, sizes: Any) -> None:
    options = {name: sizes[name] for name in operator.options}
    inputs = node.inputs(operator, **sizes)
    got = node.call(operator, inputs, **options)
    wide = [{name: value.cpu().double() for name, value in one.items()} for one in inputs]
    expected = operator.reference(wide, **options)
    for rank, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        results = mine if isinstance(mine, tuple) else (mine,)
        for result, wanted in zip(results, theirs, strict=True):
            assert result.device.index == rank
            assert result.shape == wanted.shape
            error = (result.cpu().double() - wanted).abs().max()
            assert error <= TOLERANCE[sizes["dtype"]] * (1 + wanted.abs().max())


@pytest.mark.parametrize(("operator", "sizes"), list(_cases()))
def test_results_of_all_ranks(node: Node, operator: CollectiveOperator, sizes: Any) -> None:
    _check(node, operator, sizes)


@pytest.mark.parametrize("shots", [1, 2])
def test_all_ranks_get_the_same_bits(node: Node, shots: int) -> None:
    operator = DESCRIPTIONS[0]
    inputs = node.inputs(operator, count=777, dtype="bfloat16")
    results = [one.cpu() for one in node.call(operator, inputs, shots=shots)]
    assert all(torch.equal(results[0], one) for one in results)


@SLOW
@pytest.mark.parametrize("target", ["gfx90a", "gfx950", "gfx1100", "gfx1201", "gfx1250"])
def test_other_targets(target: str) -> None:
    with wavecast.device(target, count=2) as hooks:
        two = Node(hooks, 2)
        for operator in DESCRIPTIONS:
            _check(two, operator, {**operator.cases[0]})


def test_the_faster_of_one_and_two_shots() -> None:
    with wavecast.device("mi300x", count=8):
        assert collectives.shots_for(4096, 8) == 1
        assert collectives.shots_for(16 << 20, 8) == 2
    with (
        wavecast.device("gfx1250", count=2),
        pytest.raises(MissingFact, match="shots=1 or shots=2"),
    ):
        collectives.shots_for(4096, 2)


def test_calls_that_differ_between_ranks() -> None:
    with wavecast.device("gfx942", count=2) as hooks:
        pair = groups(2, half=1 << 12)

        def rank(number: int) -> Any:
            x = torch.ones(300 + number, device="cuda")
            return collectives.all_reduce(x, pair[number], 1)

        with pytest.raises(ArgumentError) as raised:
            hooks.ranks(rank)
        assert "all_reduce of 300 float32 (shots=1)" in str(raised.value)
        assert "all_reduce of 301 float32 (shots=1)" in str(raised.value)


def test_a_rank_that_does_not_call() -> None:
    with wavecast.device("gfx942", count=2) as hooks:
        pair = groups(2, half=1 << 12)

        def rank(number: int) -> Any:
            x = torch.ones(300, device="cuda")
            return None if number else collectives.broadcast(x, pair[number])

        with pytest.raises(WavecastError, match=r"deadlock: .*GPU 0 \(gather_kernel, .*GPU 1"):
            hooks.ranks(rank)


@pytest.mark.parametrize(
    ("call", "shape", "dtype", "message"),
    [
        ("all_reduce", (4,), "bool", "all_reduce: x is bool; it takes float32"),
        ("all_reduce_rms_norm", (4, 2), "int32", "x is int32; it takes float32"),
        ("all_reduce", (0,), "float32", "all_reduce: x is empty"),
        ("reduce_scatter", (3, 2), "float32", "x is 3x2: 2 ranks do not divide it"),
        ("all_to_all", (), "float32", "x is a scalar: 2 ranks do not divide it"),
        ("all_gather", (), "float32", "a scalar has no first dimension"),
    ],
)
def test_arguments_that_do_not_fit(node: Node, call: str, shape: Any, dtype: str, message: str):
    if node.world != 2:
        pytest.skip("messages name two ranks")
    x = torch.zeros(shape, dtype=getattr(torch, dtype), device="cuda:0")
    more = (x, x[0]) if call == "all_reduce_rms_norm" else ()
    with pytest.raises(ArgumentError, match=message):
        getattr(collectives, call)(x, *more, node.groups[0])


def test_a_tensor_of_another_gpu(node: Node) -> None:
    x = torch.zeros(4, device="cuda:1")
    with pytest.raises(ArgumentError, match="x is on cuda:1, rank 0 on cuda:0"):
        collectives.all_reduce(x, node.groups[0])


def test_a_group_of_one() -> None:
    with pytest.raises(ArgumentError, match="a group of 1"):
        groups(1)


def test_results_are_written_to_a_given_tensor(node: Node) -> None:
    def rank(number: int) -> None:
        x = torch.arange(6.0, device="cuda") * (number + 1)
        out = torch.empty(6 * node.world, device="cuda")
        assert collectives.all_gather(x, node.groups[number], out=out) is out
        assert torch.equal(out.cpu()[6:12], torch.arange(6.0).cpu() * 2)
        assert collectives.all_reduce(x, node.groups[number], 2, "max", out=x) is x
        assert torch.equal(x.cpu(), torch.arange(6.0).cpu() * node.world)
        with pytest.raises(ArgumentError, match="out is 6, expected 12"):
            collectives.all_gather(x, node.groups[number], out=x)

    node.hooks.ranks(rank)
