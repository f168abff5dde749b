"""Matrix products as an op: demand by hand, limits no prediction may pass, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from wavecast import arch
from wavecast.errors import MissingFact, UnknownName, Unpredictable, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops import op
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.gemm.libraries import candidates, fixed_configuration, libraries
from wavecast.perfmodel.ops.gemm.problem import FAMILY, bounds, machine
from wavecast.perfmodel.ops.gemm.tiles import GemmSizes, demand
from wavecast.perfmodel.roofline import roofline

FORMATS = ["bf16", "fp16", "fp8", "int8", "fp32", "fp64"]


def gemm(shape: str, **options: str) -> Gemm:
    return Gemm.parse(shape, options)


def seconds(problem: Gemm, device: str) -> float:
    return problem.predict(arch.load(device)).seconds


def test_demand_of_one_tile_by_hand():
    problem = gemm("300x500x1000", dtype="bf16", library="blas", tile="128x256x128", splits="2")
    chip, known = machine(arch.load("mi300x"))
    asked = demand(problem.sizes, problem.operands, problem.candidates("cdna3"), chip, known)
    assert asked.workgroups == pytest.approx(3 * 2 * 2)
    assert asked.matrix == pytest.approx(2 * 128 * 256 * 512 / 2048)
    assert asked.lds == pytest.approx(3 * (128 + 256) * 2 * 512)
    assert asked.l2 == pytest.approx((128 + 256) * 2 * 512)
    assert asked.stored == 128 * 256
    assert asked.read == (300 + 500) * 1000 * 2
    assert asked.written == 300 * 500 * 2
    assert asked.combined == pytest.approx(12 * 128 * 256 * 8)
    assert asked.latency == pytest.approx(8 * known["step_blas"] + known["start"])


def test_a_preshuffled_b_passes_the_lds_and_block_scales_need_vector_work():
    chip, known = machine(arch.load("mi300x"))

    def asked(**options: str):
        problem = gemm("256x256x1024", dtype="fp8", library="ck", tile="128x128x128", **options)
        return demand(problem.sizes, problem.operands, problem.candidates("cdna3"), chip, known)

    plain, shuffled = asked(), asked(layout="preshuffled")
    assert plain.lds == 2 * shuffled.lds
    assert plain.vector == 0
    scaled = asked(scaling="block")
    assert scaled.vector == pytest.approx(128 * 128 * 8 * 2 / chip.vector_flops)


def test_block_scales_of_microscaling_formats_are_read():
    work = gemm("256x256x1024", dtype="mxfp4").work()
    assert work.bytes_read == (256 + 256) * 1024 * (0.5 + 1 / 32)
    assert work.flops == {"fp4": 2.0 * 256 * 256 * 1024}


@pytest.mark.parametrize("device", ["mi300x", "mi355x", "mi210", "mi308x"])
def test_no_prediction_is_faster_than_the_chip(device: str):
    chip, rng = Chip.of(arch.load(device)), np.random.default_rng(0)
    for _ in range(40):
        m, n, k = (int(2 ** rng.uniform(4, 13)) for _ in range(3))
        problem = gemm(f"{m}x{n}x{k}", dtype="bf16")
        found = seconds(problem, device)
        work = problem.work()
        assert work.bytes is not None
        assert found > work.bytes / chip.hbm_peak
        assert found > 2 * m * n * k / (chip.units * chip.matrix_rate("bf16") * chip.clock)


@pytest.mark.parametrize("dtype", FORMATS)
def test_large_products_are_slower_than_the_roofline_of_the_datasheet(dtype: str):
    problem, device = gemm("8192x8192x8192", dtype=dtype), arch.load("mi300x")
    floor = roofline(problem.work(), device).floor_seconds
    assert floor is not None
    assert floor < seconds(problem, "mi300x") < 4 * floor


@pytest.mark.parametrize(
    ("device", "dtype", "tflops"),
    [("mi300x", "bf16", 708), ("mi300x", "fp8", 1273), ("mi325x", "bf16", 843)],
)
def test_published_rates_of_the_largest_products(device: str, dtype: str, tflops: float):
    """AMD's max-achievable FLOPs: what the best of all sizes reaches, so a large one comes near."""
    rate = 2 * 16384**3 / seconds(gemm("16384x16384x16384", dtype=dtype), device) / 1e12
    assert 0.7 * tflops < rate < 1.1 * tflops


def test_twice_the_work_takes_longer():
    for size in (16, 128, 2048):
        first = seconds(gemm(f"{size}x4096x4096", dtype="fp8"), "mi300x")
        assert seconds(gemm(f"{size}x4096x8192", dtype="fp8"), "mi300x") > first
        assert seconds(gemm(f"{size * 8}x4096x4096", dtype="fp8"), "mi300x") > first
        assert seconds(gemm(f"8x{size}x4096x4096", dtype="fp8"), "mi300x") > first


def test_equal_groups_are_a_batch_up_to_their_operands():
    groups = seconds(gemm("1024x2048x2048", dtype="bf16", groups="256,256,256,256"), "mi300x")
    assert groups == pytest.approx(
        seconds(gemm("4x256x2048x2048", dtype="bf16"), "mi300x"), rel=0.02
    )


def test_fewer_units_take_longer():
    all_units = seconds(gemm("8192x8192x8192", dtype="bf16"), "mi300x")
    assert seconds(gemm("8192x8192x8192", dtype="bf16", units="152"), "mi300x") > 1.3 * all_units


def test_a_given_tile_is_taken_and_cannot_beat_the_best():
    device = arch.load("mi355x")
    best = gemm("4096x4096x4096", dtype="bf16", library="blas").predict(device)
    chosen = gemm("4096x4096x4096", dtype="bf16", library="blas", tile="64x64x128").predict(device)
    assert chosen.fidelity == "tile"
    assert best.fidelity == "formula"
    assert chosen.assumed["tile"] == (64, 64)
    assert chosen.seconds > best.seconds


def test_more_waves_read_more_and_hide_more():
    options = {"dtype": "bf16", "library": "triton", "tile": "256x256x128"}
    chip, known = machine(arch.load("mi300x"))
    four, eight = (
        demand(p.sizes, p.operands, p.candidates("cdna3"), chip, known)
        for p in (gemm("512x512x512", waves=waves, **options) for waves in ("4", "8"))
    )
    assert four.lds == (256 + 256) * 3 * 2 * 512
    assert eight.lds == (256 * 5 + 256 * 3) * 2 * 512
    assert np.all(np.asarray(four.serial) > np.asarray(eight.serial))


def test_many_problems_at_once_are_each_alone():
    device = arch.load("mi355x")
    problem = gemm("64x1280x8192", dtype="fp8", scaling="block")
    tiles = problem.candidates(device.generation)
    chip, known = machine(device)
    column = np.array([[64.0], [4096.0]])
    both = bounds(problem, tiles, chip, known, GemmSizes((column,), 1280.0, 8192.0, 1.0)).seconds
    alone = [
        seconds(gemm(f"{m}x1280x8192", dtype="fp8", scaling="block"), "mi355x") for m in (64, 4096)
    ]
    assert both.min(1) == pytest.approx(alone)


def test_every_library_has_its_coefficients():
    for name in ("mi300x", "mi355x", "mi210", "rx7900xtx", "h100_sxm"):
        known = coefficients.values(FAMILY, arch.load(name))
        for library in libraries():
            assert known[f"serial_{library}"] >= 0
            assert known[f"step_{library}"] > 0


def test_every_format_has_kernels_where_it_can_be_multiplied():
    for dtype in (*FORMATS, "xf32"):
        assert candidates(dtype, "none", "plain", "cdna3")
    for dtype in ("mxfp8", "mxfp6", "mxfp4"):
        assert candidates(dtype, "mx", "plain", "cdna4")
        assert candidates(dtype, "mx", "plain", "cdna3") is None
    assert len(fixed_configuration("ck", (16, 32, 64), 2, "cdna3")) == 1


def test_rows_that_name_a_generation_replace_the_others_of_a_library():
    hopper = candidates("bf16", "none", "plain", "hopper")
    assert hopper is not None
    assert hopper.names == ("blas",)
    assert hopper.asynchronous.all()
    assert (320, 192) not in set(zip(hopper.rows, hopper.columns, strict=True))
    every = candidates("bf16", "none", "plain", "rdna4", "blas")
    assert every is not None
    assert not every.asynchronous.any()


def test_asynchronous_copies_wait_for_the_latency_over_their_stages():
    """NVIDIA B200, one workgroup: the time of a step times the stages is the latency."""
    chip, known = machine(arch.load("b200"))

    def asked(**options: str):
        problem = gemm("64x16x131072", dtype="bf16", library="cutlass", **options)
        return demand(problem.sizes, problem.operands, problem.candidates("blackwell"), chip, known)

    steps, start = 131072 / 64, known["start"]
    for stages in (2, 4):
        found = asked(tile="64x16x128", stages=str(stages))
        assert found.latency == pytest.approx(steps * known["copy_latency"] / stages + start)
        assert found.lds == (64 + 16) * 2 * 2 * 131072
    deepest = asked(tile="64x16x128")
    assert deepest.latency == pytest.approx(steps * known["step_cutlass"] + start)
    narrow = asked(tile="64x16x32")
    assert narrow.l2 == 4 * deepest.l2


@pytest.mark.parametrize("device", ["a100", "h100_sxm", "b200"])
def test_triton_comes_near_cublas_on_nvidia(device: str):
    products = [
        seconds(gemm("4096x4096x4096", dtype="fp16", library=name), device)
        for name in ("blas", "triton")
    ]
    assert products[0] < products[1] < 1.5 * products[0]


@pytest.mark.parametrize(
    ("device", "share"), [("a100", (0.75, 0.9)), ("h100_sxm", (0.65, 0.8)), ("b200", (0.6, 0.8))]
)
def test_large_products_on_nvidia_reach_what_the_power_limit_leaves(
    device: str, share: tuple[float, float]
):
    peak = arch.load(device).peak_flops("bf16")
    assert peak is not None
    rate = 2 * 8192**3 / seconds(gemm("8192x8192x8192", dtype="bf16"), device)
    assert share[0] < rate / peak.number < share[1]


def test_a_call_between_events_waits_for_the_host():
    """HipKittens' measurements of torch.matmul: 1024 takes some 30 us, whatever runs."""
    kernel = seconds(gemm("1024x1024x1024", dtype="bf16", library="blas"), "mi300x")
    call = gemm("1024x1024x1024", dtype="bf16", library="blas", timing="eager")
    assert kernel < 12e-6
    assert 20e-6 < seconds(call, "mi300x") < 40e-6
    assert str(call) == "gemm 1024x1024x1024 bf16 blas eager"
    large = gemm("8192x8192x8192", dtype="bf16", library="blas")
    timed = gemm("8192x8192x8192", dtype="bf16", library="blas", timing="eager")
    assert seconds(timed, "mi300x") < 1.02 * seconds(large, "mi300x")
    with pytest.raises(UnknownName):
        gemm("64x64x64", dtype="bf16", timing="someday")


def test_warm_operands_come_from_the_cache_that_they_fit_into() -> None:
    def warmth(shape: str) -> float:
        warm, cold = (
            seconds(gemm(shape, dtype="fp16", library="rocblas", timing=timing), "rx6800xt")
            for timing in ("launch, client, warm", "launch, client")
        )
        return warm / cold

    assert warmth("16x4096x4096") < 0.6
    assert warmth("16x16384x16384") == pytest.approx(1.0)


def test_main_loops_of_rocblas_on_rdna_keep_the_pipes_busy() -> None:
    """Peak of RX 7600 at its boost clock: 43.5 TFLOP/s of fp16; its logic file has 38 to 43."""
    product = gemm("4096x2048x4096", dtype="fp16", library="rocblas", tile="128x128x64")
    rate = 2 * 4096 * 2048 * 4096 / seconds(product, "rx7600")
    assert 36e12 < rate < 43.5e12


def test_bytes_that_are_not_along_k_are_read_one_by_one() -> None:
    def time(layout: str, dtype: str) -> float:
        options = {"library": "tensile", "tile": "128x128x128", "transposed": layout}
        return seconds(gemm("4096x4096x4096", dtype=dtype, **options), "mi300x")

    assert time("TN", "fp8") < time("NN", "fp8") < time("NT", "fp8")
    assert time("TT", "fp8") == pytest.approx(time("NN", "fp8"))
    assert time("NT", "bf16") == pytest.approx(time("TN", "bf16"))


def test_published_time_of_an_mlp_on_a100():
    """Liger's benchmark of a LLaMA MLP: 65,536 tokens, forward 72.6 ms, backward 141 ms."""
    device = arch.load("a100")

    def product(m: int, n: int, k: int) -> float:
        return gemm(f"{m}x{n}x{k}", dtype="bf16", library="blas").predict(device).seconds

    tokens, hidden, inner = 65536, 4096, 11008
    element_wise = tokens * inner * 2 / Chip.of(device).hbm
    forward = 2 * product(tokens, inner, hidden) + product(tokens, hidden, inner)
    assert forward + 3 * element_wise == pytest.approx(72.6e-3, rel=0.1)
    data = 2 * product(tokens, hidden, inner) + product(tokens, inner, hidden)
    weights = 2 * product(hidden, inner, tokens) + product(inner, hidden, tokens)
    assert data + weights + 5 * element_wise == pytest.approx(141.3e-3, rel=0.1)


def test_options_from_text():
    problem = gemm("2x64x128x256", dtype="float8_e4m3fn", scaling="block", layout="preshuffled")
    assert (problem.batch, problem.m, problem.n, problem.k) == (2, 64, 128, 256)
    assert problem.dtype == "fp8"
    assert str(problem) == "gemm 2x64x128x256 fp8 block preshuffled"
    assert op("gemm") is Gemm


@pytest.mark.parametrize(
    ("shape", "options", "error"),
    [
        ("64x64", {"dtype": "bf16"}, UsageError),
        ("64x64x0", {"dtype": "bf16"}, UsageError),
        ("64x64x64", {}, UsageError),
        ("64x64x64", {"dtype": "fp7"}, UnknownName),
        ("64x64x64", {"dtype": "bf16", "library": "mkl"}, UnknownName),
        ("64x64x64", {"dtype": "bf16", "colour": "red"}, UnknownName),
        ("64x64x64", {"dtype": "bf16", "tile": "64x64x64"}, UsageError),
        ("64x64x64", {"dtype": "bf16", "groups": "32,16"}, UsageError),
        ("64x64x64", {"dtype": "fp8", "weight": "bf16"}, UsageError),
        ("64x64x64", {"dtype": "bf16", "splits": "two"}, UsageError),
    ],
)
def test_bad_input(shape: str, options: dict[str, str], error: type[Exception]):
    with pytest.raises(error):
        gemm(shape, **options)


def test_what_a_chip_cannot_multiply_is_refused():
    with pytest.raises(MissingFact, match="fp8"):
        seconds(gemm("64x64x64", dtype="fp8"), "mi210")
    with pytest.raises(Unpredictable, match="no known library has a kernel"):
        seconds(gemm("64x64x64", dtype="mxfp4"), "mi300x")


def test_narrow_weights_save_memory_not_products():
    wide = seconds(gemm("16x28672x8192", dtype="bf16"), "mi300x")
    assert seconds(gemm("16x28672x8192", dtype="bf16", weight="int4"), "mi300x") < 0.7 * wide
    large = seconds(gemm("8192x8192x8192", dtype="bf16"), "mi300x")
    assert seconds(gemm("8192x8192x8192", dtype="bf16", weight="int4"), "mi300x") > 0.95 * large


def test_rows_that_are_no_multiple_of_a_load_are_loaded_in_narrower_ones() -> None:
    """By hand: 1001 bf16 are 2002 bytes, so a lane loads one element, of which a CU takes 16 a
    clock (32 bytes); a bank of the LDS takes one of its two bytes' width a clock. The columns of B
    are along N."""
    chip, known = machine(arch.load("mi300x"))
    tile = {"dtype": "bf16", "library": "blas", "tile": "128x256x128"}
    odd, even, batch = (
        demand(problem.sizes, problem.operands, problem.candidates("cdna3"), chip, known)
        for problem in (
            gemm("300x512x1001", **tile),
            gemm("300x512x1024", **tile),
            gemm("2x300x512x1001", **tile),
        )
    )
    assert known["l2_rate"] > 16 * 16
    assert even.l2 == pytest.approx((128 + 256) * 2 * 1024)
    assert odd.l2 == pytest.approx(8 * even.l2)
    assert odd.lds == pytest.approx((2 + 2) / (1 + 2) * even.lds)
    assert batch.l2 == pytest.approx((8 * 128 + 256) * 2 * 1024)
    assert odd.matrix == even.matrix


@pytest.mark.parametrize("device", ["mi100", "mi300x", "mi355x", "rx9070xt", "h100_sxm", "b200"])
@pytest.mark.parametrize("shape", ["16x512x512x512", "4096x4096x4096", "64x8192x1024"])
def test_an_odd_size_is_not_faster_than_the_next_even_one(device: str, shape: str) -> None:
    *batch, m, n, k = map(int, shape.split("x"))
    chip = arch.load(device)
    for sizes in ((m, n, k - 1), (m, n - 1, k), (m - 1, n - 1, k - 1)):
        odd = gemm("x".join(map(str, (*batch, *sizes))), dtype="bf16", library="blas")
        even = gemm(shape, dtype="bf16", library="blas")
        assert odd.predict(chip).seconds >= 0.99 * even.predict(chip).seconds


def test_unaligned_rows_lose_the_instructions_that_read_by_a_descriptor() -> None:
    """An H100 multiplies 16-bit rows of odd length with those of its predecessor; fp32 is
    multiplied by its vector units in any case."""
    chip = arch.load("h100_sxm")
    ratio = {
        dtype: gemm("32x2048x2048x2047", dtype=dtype, library="blas").predict(chip).seconds
        / gemm("32x2048x2048x2048", dtype=dtype, library="blas").predict(chip).seconds
        for dtype in ("bf16", "fp32")
    }
    assert 1.5 < ratio["bf16"] < 2.5
    assert ratio["fp32"] == pytest.approx(1, abs=0.05)


def test_an_unknown_layout_is_one_line() -> None:
    with pytest.raises(UnknownName, match="layout of A and B"):
        gemm("64x64x64", dtype="bf16", transposed="XY")


@pytest.mark.parametrize("generation", ["rdna3", "rdna3.5", "rdna4"])
@pytest.mark.parametrize("library", ["blas", "triton"])
def test_tiles_on_rdna_leave_registers_for_more_than_accumulators(
    generation: str, library: str
) -> None:
    """Eight waves of 32 lanes with 256 registers each, half of them accumulators."""
    for dtype in ("bf16", "fp16"):
        tiles = candidates(dtype, "none", "plain", generation, library)
        assert tiles is not None
        assert float((tiles.rows * tiles.columns).max()) <= 8 * 32 * 128
