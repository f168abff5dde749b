"""Element-wise operations, norms, softmax, reductions: shapes, timing, what bounds them."""

from __future__ import annotations

import timeit
from dataclasses import astuple

import pytest

from tests.perfmodel.interval import interval_of
from wavecast import arch
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops import OPS, op
from wavecast.perfmodel.ops.elementwise import FUNCTIONS, Elementwise
from wavecast.perfmodel.ops.norm import Norm
from wavecast.perfmodel.ops.reduce_launch import divide
from wavecast.perfmodel.ops.reduction import Reduction
from wavecast.perfmodel.ops.softmax import Softmax
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.streaming import resident
from wavecast.perfmodel.timing import TIMINGS, measurement_time

DEVICES = ("mi100", "mi210", "mi300a", "mi300x", "mi325x", "mi350x", "mi355x", "h100_sxm")


def on(device: str, problem: Elementwise | Norm | Reduction | Softmax) -> Prediction:
    return problem.predict(arch.load(device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "problem",
    [
        Elementwise.of("add", (1000, 333), "bf16"),
        Norm("layer_norm", 4096, 1024, "fp16"),
        Softmax(4096, 1000, "fp32"),
        Softmax(100, 5000, "fp32"),
        Reduction(64, 4096, "fp32"),
        Reduction(4096, 64, "bf16", inner=4096),
        Reduction(2, 1 << 20, "fp32", function="argmax"),
    ],
    ids=str,
)
def test_every_device_is_predicted(device: str, problem: Elementwise | Norm | Reduction | Softmax):
    found = on(device, problem)
    assert 1e-6 < found.seconds < 1e-3
    expected = interval_of(found, problem.subject, arch.load(device))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.limiter in found.bounds


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_has_a_cost(function: str):
    assert on("mi300x", Elementwise.of(function, (64, 64), "fp32")).seconds > 0


@pytest.mark.parametrize("device", ["mi100", "mi210", "mi300x", "mi355x"])
def test_large_copies_run_at_the_bandwidth_of_memory(device: str):
    size = 2**31
    chip = Chip.of(arch.load(device))
    found = on(device, Elementwise.of("copy", (size,), "fp32"))
    assert found.limiter == "HBM"
    assert found.seconds == pytest.approx(8 * size / chip.hbm, rel=0.15)


def test_small_calls_wait_for_the_host():
    kernel = on("mi210", Elementwise.of("add", (64,), "fp32")).seconds
    eager = on("mi210", Elementwise.of("add", (64,), "fp32", timing="eager")).seconds
    number = on("mi210", Elementwise.of("add", (64,), "fp32", timing="eager, with a number"))
    assert kernel < eager < number.seconds


def test_host_time_hides_behind_long_kernels():
    chip = Chip.of(arch.load("mi210"))
    added = {
        timing: float(measurement_time(chip, timing, 1e-2)) - 1e-2
        for timing in ("eager", "eager, framed")
    }
    assert added["eager, framed"] - added["eager"] < 1e-7


def test_unknown_timing_is_refused():
    with pytest.raises(UnknownName, match="way of timing"):
        Softmax(1, 1, "fp32", timing="by eye")
    assert "kernel" in TIMINGS


def test_powers_are_bound_by_arithmetic():
    size = (4096, 4096)
    assert on("mi210", Elementwise.of("pow_number", size, "fp32")).limiter == "vector"
    assert on("mi210", Elementwise.of("scale", size, "fp32")).limiter == "HBM"


def test_broadcasting_takes_the_indexed_kernel():
    shape, row = (512, 4096), (4096,)
    plain = Elementwise.of("add", shape, "bf16")
    broadcast = Elementwise("add", ((shape, "bf16"), (row, "bf16")), (shape, "bf16"))
    assert on("mi300x", plain).assumed["kernel"] == "vectorised"
    assert on("mi300x", broadcast).assumed["kernel"] == "indexed"
    assert broadcast.work().bytes_read == 2 * (512 * 4096 + 4096)


@pytest.mark.parametrize(
    ("shapes", "result", "dimensions"),
    [
        (((8, 16, 32), (8, 16, 32)), (8, 16, 32), 1),
        (((8, 16, 32), (32,)), (8, 16, 32), 2),
        (((8, 16, 32), (16, 1)), (8, 16, 32), 3),
        (((8, 16, 32), (8, 1, 1)), (8, 16, 32), 2),
        (((1, 512), (512, 1)), (512, 512), 2),
    ],
)
def test_dimensions_that_broadcast_alike_are_merged(
    shapes: tuple[tuple[int, ...], ...], result: tuple[int, ...], dimensions: int
):
    operands = tuple((shape, "fp32") for shape in shapes)
    assert Elementwise("add", operands, (result, "fp32")).dimensions == dimensions


def test_copies_between_types_without_a_kernel_of_their_own_cast():
    def copy(source: str, target: str) -> Elementwise:
        return Elementwise("copy", (((1024,), source),), ((1024,), target))

    assert copy("int64", "fp32").casts
    assert copy("bf16", "fp32").casts
    assert not copy("fp32", "bf16").casts
    assert not copy("fp16", "bf16").casts
    assert not copy("int64", "int64").casts
    mask = Elementwise("masked_fill", (((8,), "bf16"), ((8,), "bool")), ((8,), "bf16"))
    assert not mask.casts
    assert on("mi300x", copy("bf16", "fp32")).seconds > on("mi300x", copy("fp32", "bf16")).seconds


def test_few_compute_units_keep_few_bytes_on_the_way():
    problem = Elementwise.of("add", (2**28,), "bf16")
    many, few = (on(device, problem).bounds["latency"] for device in ("mi300x", "mi308x"))
    assert few > 3 * many


def test_group_norm_waits_for_its_steps_not_for_its_size():
    small, larger = (on("mi300x", Norm("group_norm", 32, n, "bf16")) for n in (16384, 131072))
    assert larger.bounds["chain"] == pytest.approx(small.bounds["chain"])
    assert larger.seconds < 1.5 * small.seconds


def test_batch_norm_backward_passes_twice_over_its_channels():
    forward, backward = (
        on("mi300x", Norm(name, 64, 125440, "bf16"))
        for name in ("batch_norm", "batch_norm_backward")
    )
    assert backward.bounds["chain"] == pytest.approx(2 * forward.bounds["chain"], rel=0.05)


def test_in_place_touches_less():
    tensor = ((2**23,), "fp32")
    apart = Elementwise("add", (tensor, tensor), tensor)
    in_place = Elementwise("add", (tensor, tensor), tensor, in_place=True)
    assert on("mi210", in_place).seconds < on("mi210", apart).seconds


def test_a_second_pass_costs_what_the_caches_lost():
    long, short = Norm("layer_norm", 4096, 4096, "fp32"), Norm("layer_norm", 16384, 1024, "fp32")
    once = Norm("rms_norm", 4096, 4096, "fp32")
    assert on("mi100", long).bounds["HBM"] > 1.1 * on("mi100", short).bounds["HBM"]
    assert on("mi100", long).bounds["HBM"] > 1.1 * on("mi100", once).bounds["HBM"]


def test_fusing_saves_kernels():
    fused = Norm("layer_norm", 16384, 2048, "bf16", residual=True, dropout=True)
    apart = Norm("layer_norm", 16384, 2048, "bf16", residual=True, dropout=True, fused=False)
    assert on("mi355x", apart).assumed["kernels"] == 3
    assert on("mi355x", fused).seconds < 0.7 * on("mi355x", apart).seconds


@pytest.mark.parametrize(
    ("columns", "kept", "workgroups"),
    [
        (16, "registers", 63),  # 128 threads, 16 lanes and 2 rows: 16 rows per workgroup
        (128, "registers", 250),  # two rows per wave
        (129, "registers", 500),  # one row per wave
        (1024, "registers", 500),
        (1025, "memory", 1000),
        (2048, "LDS", 1000),
    ],
)
def test_softmax_takes_the_kernel_pytorch_takes(columns: int, kept: str, workgroups: int):
    assumed = on("mi210", Softmax(1000, columns, "fp32")).assumed
    assert (assumed["rows kept in"], assumed["workgroups"]) == (kept, workgroups)


def test_resident_workgroups_fill_the_wave_slots():
    assert resident(Chip.of(arch.load("mi210")), 1024) == 2
    assert resident(Chip.of(arch.load("mi300x")), 256) == 8


@pytest.mark.parametrize(
    ("kind", "shape", "options"),
    [
        ("elementwise", "64x64", {"function": "gelu", "dtype": "bf16"}),
        ("norm", "64x64", {"function": "rms_norm", "dtype": "bf16", "residual": "yes"}),
        ("softmax", "64x64", {"dtype": "fp32"}),
        ("reduction", "64x64", {"dtype": "fp32"}),
        ("collective", "1048576", {"function": "all_reduce", "gpus": "8"}),
    ],
)
def test_command_line(kind: str, shape: str, options: dict[str, str]):
    assert kind in OPS
    problem = op(kind).parse(shape, options)
    assert shape.split("x")[0] in str(problem).replace(",", "")
    assert hash(problem) == hash(op(kind).parse(shape, options))
    with pytest.raises(UnknownName, match="option"):
        op(kind).parse(shape, {**options, "colour": "red"})
    with pytest.raises(UsageError):
        op(kind).parse("64xsquare", options)
    required = next(iter(options))
    with pytest.raises(UsageError, match=required):
        op(kind).parse(shape, {k: v for k, v in options.items() if k != required})


def test_a_prediction_takes_less_than_a_millisecond():
    problem, device = Norm("layer_norm", 4096, 1024, "bf16"), arch.load("mi300x")
    problem.predict(device)
    assert min(timeit.repeat(lambda: problem.predict(device), number=10, repeat=5)) / 10 < 1e-3


def test_resizing_walks_one_element_per_thread():
    source = {"source": "1x256x128x128", "dtype": "bf16"}
    resized = Elementwise.parse("1x256x256x256", {"function": "upsample_nearest", **source})
    assert resized.work().bytes == 256 * (128**2 + 256**2) * 2
    found = on("mi300x", resized)
    assert found.assumed["kernel"] == "one element per thread"
    assert found.limiter == "vector"
    padded = Elementwise.parse("1x256x130x130", {"function": "pad", **source})
    plain = on("mi300x", Elementwise.of("copy", (1, 256, 130, 130), "bf16"))
    assert on("mi300x", padded).seconds > plain.seconds


def test_reading_by_index_moves_what_is_read_not_the_table():
    options = {"function": "index", "dtype": "bf16", "source": "151936x1024"}
    rows = Elementwise.parse("4096x1024", options)
    assert rows.work().bytes == 2 * 4096 * 1024 * 2 + 4096 * 8
    assert on("mi300x", rows).assumed["kernel"] == "indexed"


def test_foreach_puts_many_tensors_into_a_launch():
    """MultiTensorApply: 36 tensors per launch where there are four lists, 48 where three."""
    tensors = {"function": "add", "dtype": "fp32", "tensors": "100"}
    many = on("mi300x", Elementwise.parse("1024", tensors))
    assert many.assumed["launches"] == 3
    one = on("mi300x", Elementwise.parse("1024", {"function": "add", "dtype": "fp32"}))
    assert many.seconds < 10 * one.seconds
    assert Elementwise.parse("1024", tensors).work().bytes == 100 * 3 * 1024 * 4


def test_concatenation_copies_part_by_part():
    parts = {"function": "copy", "dtype": "bf16", "parts": "11"}
    found = on("mi300x", Elementwise.parse("1x3x133x240x240", parts))
    assert found.assumed["launches"] == 11
    assert found.assumed["kernel"] == "indexed"


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("upsample_nearest", {}),
        ("add", {"source": "4x4"}),
        ("add", {"parts": "2"}),
        ("copy", {"tensors": "0"}),
    ],
)
def test_options_that_do_not_fit_the_function(function: str, options: dict[str, str]):
    with pytest.raises(UsageError):
        Elementwise.parse("8x8", {"function": function, "dtype": "fp32", **options})


@pytest.mark.parametrize(
    ("device", "sizes", "expected"),
    [
        # A row of a matrix for each wave, 16 vectors of four a thread.
        ("mi300x", (512, 4096, 1), (512, 64, 64, 1, 4, 1)),
        # Long rows: all threads of a workgroup; on AMD a workgroup per row, however few.
        ("mi300x", (15, 151936, 1), (512, 15, 297, 1, 4, 1)),
        ("h100_sxm", (15, 151936, 1), (512, 285, 16, 1, 4, 19)),
        # Channels: four results a thread, four loads at once, and parts by threads of y.
        ("h100_sxm", (262144, 96, 262144), (128, 2048, 24, 4, 16, 1)),
        ("h100_sxm", (8192, 192, 8192), (128, 64, 48, 4, 16, 1)),
        # One number: as many workgroups as multiprocessors on AMD, 256 elements each on NVIDIA.
        ("mi300x", (1, 1 << 30, 1), (512, 304, 6899, 1, 4, 304)),
        ("h100_sxm", (1, 1 << 30, 1), (512, 8192, 256, 1, 4, 8192)),
        # RDNA counts two compute units as a multiprocessor.
        ("rx9070xt", (1, 1 << 30, 1), (512, 128, 16384, 1, 4, 128)),
    ],
)
def test_reductions_are_divided_as_pytorch_does(
    device: str, sizes: tuple[int, int, int], expected: tuple[int, ...]
):
    assert astuple(divide(Chip.of(arch.load(device)), *sizes)) == expected


def test_reductions_of_few_rows_wait_for_memory():
    few = on("mi300x", Reduction(15, 151936, "fp32"))
    many = on("mi300x", Reduction(1500, 151936, "fp32"))
    assert few.limiter == "latency"
    assert many.limiter == "HBM"
    assert many.seconds < 20 * few.seconds
    assert on("mi300x", Reduction(15, 151936, "fp32", function="argmax")).seconds > few.seconds


def test_reduction_options():
    text = {"dtype": "fp32", "function": "argmax", "inner": "8"}
    assert Reduction.parse("64x8", text) == Reduction(64, 8, "fp32", inner=8, function="argmax")
    with pytest.raises(UsageError, match="divides 10 rows"):
        Reduction(10, 10, "fp32", inner=3)
    with pytest.raises(UnknownName, match="argmax, sum"):
        Reduction.parse("10x10", {"dtype": "fp32", "function": "median"})
