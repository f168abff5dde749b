"""Products over ranks: how launches are divided, and fused kernels ranked against separate ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from wavecast import arch
from wavecast.arch.systems import system
from wavecast.errors import MissingFact, UnknownName, UsageError
from wavecast.perfmodel.ops import op
from wavecast.perfmodel.ops.collectives.own_products import (
    PRODUCTS,
    gather_plan,
    launch_length,
    reduce_plan,
)
from wavecast.perfmodel.ops.collectives.problem import known_of
from wavecast.perfmodel.ops.collectives.product import GemmCollective

LARGE = 1 << 28


def _product(function: str = "matmul_reduce_scatter", **options: Any) -> GemmCollective:
    sizes = {"m": 8192, "n": 8192, "k": 1024, "gpus": 8, "buffer": LARGE}
    return GemmCollective(function, **{**sizes, **options})


@pytest.mark.parametrize("function", PRODUCTS)
def test_the_faster_kernels_run(function: str) -> None:
    device = arch.load("mi300x")
    times = {
        kernels: _product(function, kernels=kernels).predict(device)
        for kernels in ("fused", "separate")
    }
    best = _product(function).predict(device)
    assert best.seconds == min(one.seconds for one in times.values())
    assert all(one.low < one.seconds < one.high for one in times.values())
    assert all(one.basis is not None for one in times.values())
    separate = times["separate"]
    product, collective = _product(function).product(), _product(function).collective()
    parts = product.predict(device).seconds + collective.predict(device).seconds
    assert separate.seconds == pytest.approx(parts)


@pytest.mark.parametrize("function", PRODUCTS)
@pytest.mark.parametrize("k", [64, 1024, 8192])
def test_a_fused_kernel_takes_as_long_as_its_links_and_its_product(function: str, k: int) -> None:
    """At least what the links carry, and the roofline of the product; at most all one after the
    other."""
    device = arch.load("mi300x")
    problem = _product(function, k=k, kernels="fused", shots=2 * (function == "matmul_all_reduce"))
    result = problem.predict(device)
    wire = problem.collective().wire
    links = wire / (7 * 64e9)
    floor = 2.0 * 8192 * 8192 * k / 1307.4e12
    assert result.seconds > max(links, floor)
    assert result.seconds < sum(result.bounds.values()) * (1 + 1e-12)


def test_short_buffers_take_more_launches() -> None:
    device = arch.load("mi300x")
    whole, parts = (
        _product(kernels="fused", buffer=size).predict(device) for size in (LARGE, 1 << 23)
    )
    assert whole.assumed["launches"] == 1
    assert parts.assumed["launches"] == 16  # 8192 columns of 8192 rows of 2 bytes in 8 MiB
    assert parts.seconds > whole.seconds


@pytest.mark.parametrize(
    ("function", "shots", "bytes_of_one"),
    [
        ("all_gather_matmul", 2, 8 * 1024 * 2),
        ("matmul_reduce_scatter", 2, 8 * 13 * 2),
        ("matmul_all_reduce", 2, 2 * 8 * 13 * 2),
        ("matmul_all_reduce", 1, 8 * 100 * 2),
    ],
)
def test_what_a_launch_exchanges_fits_the_buffer(
    function: str, shots: int, bytes_of_one: int
) -> None:
    """100 rows on 8 ranks are parts of 13."""
    length = launch_length(function, 100, 1024, 8, shots, 2, 1 << 16)
    assert length * bytes_of_one <= 1 << 16 < (length + 1) * bytes_of_one


def test_ranks_agree_on_what_peers_see() -> None:
    """Tiles of sums do not depend on K, chunks and pieces not on the columns of a rank."""
    device = arch.load("mi300x")
    for rows, k in ((16, 512), (1000, 8192), (4096, 257)):
        plans = [gather_plan(rows, n, k, 8, "bf16", device) for n in (1, 300, 8192)]
        assert len({(one.rows, one.copies, one.pieces, one.workers) for one in plans}) == 1
        for one in plans:
            assert one.rows * k % one.pieces == 0
            assert one.copies + one.workers <= device.compute_units
            assert one.copies <= math.ceil(rows / one.rows) * one.pieces
    assert reduce_plan(512, 8192, 8, "bf16", device).workers == device.compute_units


def test_a_chip_without_rates_has_a_plan() -> None:
    """Of float32 products without matrix instructions the vector pipes take their place."""
    for target in ("gfx1100", "gfx1201", "gfx1250", "gfx90a"):
        device = arch.resolve(target).device
        assert reduce_plan(64, 256, 2, "fp32", device).columns >= 64


def test_concurrent_products_slow_the_links() -> None:
    device = arch.load("mi300x")
    result = _product(k=64, kernels="fused").predict(device)
    constants = known_of(device)
    rate = 7 * 64e9 * constants["mesh_fraction"] * constants["concurrent_gemm"]
    assert result.bounds["links"] < 7 / 8 * 8192 * 8192 * 2 / rate < result.seconds


def test_over_nodes_kernels_are_separate() -> None:
    machine = system("2x8xMI300X")
    problem = _product(gpus=16, group=machine.group(16))
    assert problem.predict(machine.device).assumed["kernels"] == "separate"
    with pytest.raises(UsageError, match="one node"):
        replace(problem, kernels="fused").predict(machine.device)


def test_command_line_and_errors() -> None:
    parse = op("gemm_collective").parse
    options = {"function": "all_gather_matmul", "gpus": "8", "dtype": "float16"}
    problem = parse("64x128x256", options)
    assert str(problem) == "all_gather_matmul 64x128x256 fp16 on 8 GPUs"
    assert hash(problem) == hash(parse("64x128x256", options))
    for change, error in (
        ({"function": "matmul"}, UnknownName),
        ({"dtype": "fp8"}, UnknownName),
        ({"kernels": "best"}, UnknownName),
        ({"library": "mpi"}, UnknownName),
        ({"gpus": "3"}, UsageError),
        ({"gpus": "1"}, UsageError),
        ({"shots": "1"}, UsageError),
        ({"colour": "red"}, UnknownName),
    ):
        with pytest.raises(error):
            parse("64x128x256", {**options, **change})
    either = _product(buffer=64).predict(arch.load("mi300x"))
    assert either.assumed["kernels"] == "separate"
    assert "too small" in either.notes[-1]
    with pytest.raises(UsageError, match="too small"):
        _product(kernels="fused", buffer=64).predict(arch.load("mi300x"))
    with pytest.raises(MissingFact, match="links"):
        _product(kernels="fused", gpus=16).predict(arch.load("mi300x"))
