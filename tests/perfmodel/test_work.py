"""Work of a launch: FLOPs of what ran, least bytes of what it reads and writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavecast.analyze.result import CodeAnalysis, Occupancy, Registers
from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter
from wavecast.perfmodel.footprint import distinct_bytes, element_bytes
from wavecast.perfmodel.work import work


def analysis(**changes: Any) -> CodeAnalysis:
    nothing = CodeAnalysis(
        kernel="k",
        target="gfx942",
        registers=Registers(0, 0, 0, 0, 0, 0),
        lds_bytes=0,
        occupancy=Occupancy(1, 8, 1, 1, "", {}, None),
        instructions={},
        blocks=1,
        loops=(),
        memory=(),
        waits=(),
        pressure=None,
        lines=(),
        matrix_kinds={},
        matrix_flops_static={},
    )
    return replace(nothing, **changes)


def tensor(
    name: str, shape: tuple[int, ...], storage: int, strides: tuple[int, ...] | None = None
) -> Argument:
    """A float32 tensor, contiguous unless strides are given."""
    if strides is None:
        strides = tuple(_product(shape[axis + 1 :]) for axis in range(len(shape)))
    reach = sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) + 1
    return Argument(name, "tensor", "float32", shape, strides, 4 * reach, storage)


def _product(sizes: tuple[int, ...]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def launch(*arguments: Argument, addresses: dict[str, int] | None = None) -> Launch:
    parameters = tuple(
        Parameter(argument.name, "*fp32", 8 * index, 8) for index, argument in enumerate(arguments)
    )
    code = CodeObject(
        "k", "gfx942", "triton", {}, parameters, {}, 256, 0, "", 0, "", "", ""
    )  # fmt: skip
    where = addresses or {}
    data = b"".join(
        where.get(argument.name, argument.storage).to_bytes(8, "little") for argument in arguments
    )
    return Launch(code, (1, 1, 1), (256, 1, 1), arguments, data)


USES: dict[str, Any] = {
    "arguments_read": frozenset({"x"}),
    "arguments_written": frozenset({"y"}),
    "arguments_complete": True,
}


def test_a_copy_reads_and_writes_once() -> None:
    started = launch(tensor("x", (1000, 100), 1 << 20), tensor("y", (1000, 100), 1 << 24))
    found = work(started, analysis(**USES))
    assert (found.bytes_read, found.bytes_written) == (400_000, 400_000)
    assert found.bytes == 800_000
    assert "reads and writes" in found.bytes_source


def test_in_place_counts_both_ways() -> None:
    uses = USES | {"arguments_written": frozenset({"x"})}
    found = work(launch(tensor("x", (64,), 4096)), analysis(**uses))
    assert (found.bytes_read, found.bytes_written) == (256, 256)


def test_atomics_read_and_write() -> None:
    uses = USES | {"arguments_updated": frozenset({"h"})}
    started = launch(tensor("x", (64,), 4096), tensor("y", (64,), 8192), tensor("h", (8,), 1 << 16))
    found = work(started, analysis(**uses))
    assert (found.bytes_read, found.bytes_written) == (256 + 32, 256 + 32)


def test_a_gather_reads_no_more_than_it_asks_for() -> None:
    started = launch(tensor("x", (1_000_000, 64), 1 << 20), tensor("y", (16, 64), 1 << 32))
    asked = {"x": (16 * 64 * 4.0, 0.0), "y": (0.0, 1e9)}
    found = work(started, analysis(**USES, requested_bytes=asked))
    assert (found.bytes_read, found.bytes_written) == (4096, 4096)


def test_untraced_addresses_count_every_tensor_once() -> None:
    started = launch(tensor("x", (64,), 4096), tensor("y", (64,), 8192))
    found = work(started, analysis(**(USES | {"arguments_complete": False})))
    assert found.bytes == 512
    assert "which way is unknown" in found.bytes_source


def test_pointers_of_unknown_size_are_named() -> None:
    started = launch(tensor("x", (64,), 4096), Argument("y", "pointer", storage=8192))
    found = work(started, analysis(**USES))
    assert found.bytes == 256
    assert "y" in found.bytes_source.rsplit(";", 1)[1]


def test_without_a_launch_bytes_are_unknown() -> None:
    found = work(None, analysis())
    assert found.bytes is None
    assert found.bytes_source.startswith("unknown")


def test_given_figures_win() -> None:
    found = work(None, analysis(), given_flops=1e9, given_bytes=5.0, given_dtype="fp16")
    assert (found.flops, found.bytes) == ({"fp16": 1e9}, 5.0)
    assert found.flops_source == found.bytes_source == "given"


@pytest.mark.parametrize(
    ("changes", "hint", "flops", "source"),
    [
        (
            {"matrix_flops_static": {"bf16": 1.0}, "executed_flops": {"bf16": 9.0},
             "executed_vector_flops": {"fp32": 3.0}},
            None, {"bf16": 9.0}, "matrix instructions",
        ),
        ({"executed_vector_flops": {"fp32": 3.0}}, None, {"vector_fp32": 3.0}, "vector"),
        ({"matrix_flops_static": {"bf16": 1.0}}, {"bf16": 7.0}, {"bf16": 7.0}, "another target"),
        ({"matrix_flops_static": {"bf16": 1.0}}, None, None, "unknown"),
    ],
)  # fmt: skip
def test_where_flops_come_from(changes, hint, flops, source: str) -> None:
    found = work(None, analysis(**changes), flops_hint=hint)
    assert found.flops == flops
    assert source in found.flops_source


def test_the_same_tensor_twice_counts_once() -> None:
    x = tensor("x", (64,), 4096)
    assert distinct_bytes(launch(x, replace(x, name="w")), [x, replace(x, name="w")], {}) == 256


def test_views_of_one_storage() -> None:
    """q, k, v interleaved in one allocation; and two halves of a vector."""
    packed = [tensor(name, (10, 8), 4096, (24, 1)) for name in "qkv"]
    places = {"q": 4096, "k": 4096 + 32, "v": 4096 + 64}
    started = launch(*packed, addresses=places)
    assert distinct_bytes(started, packed, {}) == 3 * 10 * 8 * 4
    halves = [tensor("a", (32,), 4096), tensor("b", (32,), 4096)]
    apart = launch(*halves, addresses={"a": 4096, "b": 4096 + 128})
    assert distinct_bytes(apart, halves, {}) == 256
    overlapping = launch(*halves, addresses={"a": 4096, "b": 4096 + 64})
    assert distinct_bytes(overlapping, halves, {}) == 192


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [((10, 4), (4, 1), 160), ((10, 4), (0, 1), 16), ((10, 4), (100, 1), 160), ((1,), (1,), 4)],
)
def test_elements(shape, strides, expected: float) -> None:
    assert element_bytes(tensor("x", shape, 0, strides)) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 100)), min_size=1, max_size=6))
def test_distinct_bytes_are_the_union(views: list[tuple[int, int]]) -> None:
    tensors = [tensor(f"t{n}", (size,), 4096) for n, (_, size) in enumerate(views)]
    places = {f"t{n}": 4096 + 4 * start for n, (start, _) in enumerate(views)}
    found = distinct_bytes(launch(*tensors, addresses=places), tensors, {})
    exact = {4 * start + byte for start, size in views for byte in range(4 * size)}
    assert found == len(exact)
