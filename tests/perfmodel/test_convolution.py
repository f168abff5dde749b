"""Convolutions: geometry, parsing, and the shape of the predicted times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.perfmodel.interval import interval_of
from wavecast import arch
from wavecast.errors import MissingFact, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops import op
from wavecast.perfmodel.ops.convolution import Convolution, direct, implicit_gemm
from wavecast.perfmodel.ops.convolution.geometry import ConvolutionBatch

RESNET = Convolution(32, 64, (56, 56), 64, (3, 3), padding=(1, 1), dtype="fp16")
CHIPS = ("mi100", "mi250x_gcd", "mi210", "mi300x", "mi355x", "rx6800xt", "rx7900xtx")


@pytest.mark.parametrize("size", [7, 8, 15])
@pytest.mark.parametrize(
    ("taps", "stride", "padding", "dilation"), [(3, 1, 1, 1), (5, 2, 0, 1), (3, 2, 2, 2)]
)
def test_output_sizes_are_those_of_torch(
    size: int, taps: int, stride: int, padding: int, dilation: int
) -> None:
    image = torch.zeros(1, 2, size, size + 1)
    filter_ = torch.zeros(4, 1, taps, taps)
    result = torch.nn.functional.conv2d(
        image, filter_, stride=stride, padding=padding, dilation=dilation, groups=2
    )
    problem = Convolution(
        1, 2, (size, size + 1), 4, (taps, taps), (stride,) * 2, (padding,) * 2, (dilation,) * 2, 2
    )
    assert (4, *problem.output) == tuple(result.shape[1:])


def test_parse() -> None:
    text = "2x8x4x16x16,16x1x3x3"
    options = {"dtype": "bf16", "stride": "1x2x2", "padding": "0x1x1", "groups": "4"}
    parsed = op("conv").parse(text, {**options, "direction": "weights", "layout": "nhwc"})
    assert parsed == Convolution(
        2,
        8,
        (4, 16, 16),
        16,
        (1, 3, 3),
        (1, 2, 2),
        (0, 1, 1),
        (1, 1, 1),
        4,
        "weights",
        "bf16",
        "nhwc",
    )
    assert (
        str(parsed)
        == "conv 2x8x4x16x16,16x1x3x3 bf16 stride 1x2x2 padding 0x1x1 groups 4 weights nhwc"
    )


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ("2x8x16x16", {"dtype": "fp16"}, "not a shape"),
        ("2x8x16x16,8x3", {"dtype": "fp16"}, "dimensions"),
        ("2x8x16xa,8x3x3", {"dtype": "fp16"}, "not numbers"),
        ("2x8x16x16,8x3x3", {}, "needs a dtype"),
        ("2x8x16x16,8x3x3", {"dtype": "fp64"}, "fp64"),
        ("2x8x16x16,8x3x3", {"dtype": "fp16", "causal": "yes"}, "no option causal"),
        ("2x8x16x16,8x3x3", {"dtype": "fp16", "groups": "3"}, "groups"),
        ("2x8x2x2,8x3x3", {"dtype": "fp16"}, "does not fit"),
        ("0x8x16x16,8x3x3", {"dtype": "fp16"}, "positive"),
    ],
)
def test_what_is_no_convolution(shape: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Convolution.parse(shape, options)


def test_work_is_that_of_the_direct_algorithm() -> None:
    work = RESNET.work()
    assert work.flops == {"fp16": 2.0 * 32 * 64 * 56 * 56 * 64 * 9}
    assert work.bytes_written == 32 * 64 * 56 * 56 * 2
    assert work.bytes_read == 32 * 64 * 56 * 56 * 2 + 64 * 64 * 9 * 2
    assert replace(RESNET, direction="weights").work().bytes_written == 64 * 64 * 9 * 2


@pytest.mark.parametrize("direction", ["forward", "data", "weights"])
@pytest.mark.parametrize("stride", [1, 2])
def test_the_matrix_products_have_the_flops_of_the_convolution(direction: str, stride: int) -> None:
    """Taps and strides divide here, so that no phase of the stride is padded."""
    problem = Convolution(
        4, 32, (28, 28), 64, (2, 2), (stride, stride), groups=2, direction=direction, dtype="fp16"
    )
    geometry = ConvolutionBatch.of([problem])
    m, n, k, count = geometry.product()
    flops = float(np.squeeze(2.0 * m * n * k * count * geometry.groups))
    assert flops == (problem.work().flops or {})["fp16"]


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("direction", ["forward", "data", "weights"])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_predictions_are_above_the_roofline_and_within_their_interval(
    name: str, direction: str, dtype: str
) -> None:
    device = arch.load(name)
    problem = replace(RESNET, direction=direction, dtype=dtype)
    prediction = problem.predict(device)
    assert (prediction.low, prediction.high) == pytest.approx(
        interval_of(prediction, problem.subject, device)
    )
    assert prediction.limiter in prediction.bounds
    bandwidth = device.peak_bandwidth()
    assert bandwidth is not None
    assert prediction.seconds > (problem.work().bytes or 0.0) / bandwidth.number
    assert prediction.assumed["algorithm"] in (
        "implicit GEMM",
        "GEMM",
        "Winograd",
        "direct",
        "naive",
    )


def test_time_grows_with_the_batch() -> None:
    device = arch.load("mi250x_gcd")
    times = [replace(RESNET, n=n).predict(device).seconds for n in (1, 8, 64, 512)]
    assert times == sorted(times)
    assert times[-1] > 6.0 * times[-2]


def test_volumes_of_16_bit_have_no_implicit_gemm_before_gfx942() -> None:
    problem = Convolution(
        8, 64, (8, 28, 28), 64, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), dtype="fp16"
    )
    assert problem.predict(arch.load("mi250x_gcd")).assumed["algorithm"] == "GEMM"
    assert problem.predict(arch.load("mi300x")).assumed["algorithm"] == "implicit GEMM"


def test_channels_last_bf16_falls_back_to_the_reference_on_gfx908() -> None:
    problem = replace(RESNET, dtype="bf16", layout="nhwc")
    assert problem.predict(arch.load("mi100")).assumed["algorithm"] == "naive"
    assert problem.predict(arch.load("mi250x_gcd")).assumed["algorithm"] == "implicit GEMM"


def test_a_target_measured_at_a_low_clock_says_so() -> None:
    assert any("low clock" in note for note in RESNET.predict(arch.load("rx6800xt")).notes)
    assert not any("clock" in note for note in RESNET.predict(arch.load("mi300x")).notes)


def test_devices_without_a_calibrated_library_are_refused() -> None:
    with pytest.raises(MissingFact, match="h100"):
        RESNET.predict(arch.load("h100"))


def test_8_bit_products_need_a_chip_and_a_direction_that_has_them() -> None:
    int8, fp8 = replace(RESNET, dtype="int8"), replace(RESNET, dtype="fp8")
    assert int8.predict(arch.load("mi300x")).seconds < RESNET.predict(arch.load("mi300x")).seconds
    for problem, name in (
        (replace(int8, direction="weights"), "mi300x"),
        (int8, "rx6800xt"),
        (fp8, "mi250x_gcd"),
    ):
        with pytest.raises(MissingFact):
            problem.predict(arch.load(name))


def test_many_problems_at_once_are_each_alone() -> None:
    """The calibration evaluates rows of problems; predictions evaluate one."""
    from wavecast.perfmodel import coefficients
    from wavecast.perfmodel.chip import Chip
    from wavecast.perfmodel.ops.convolution.algorithms import timings

    device = arch.load("mi250x_gcd")
    known = coefficients.values("convolution", device)
    problems = [replace(RESNET, n=n, k=k) for n in (1, 16, 100) for k in (8, 64, 200)]
    together = timings(ConvolutionBatch.of(problems), Chip.of(device), known)
    best = np.min([timing.seconds for timing in together.values()], axis=0)
    assert best == pytest.approx([problem.predict(device).seconds for problem in problems])


@pytest.mark.parametrize(
    ("device", "dtype", "direction", "families"),
    [
        ("mi100", "bf16", "data", {"gather"}),
        ("mi100", "bf16", "forward", {"gather"}),
        ("mi250x_gcd", "bf16", "data", {"nhwc"}),
        ("mi250x_gcd", "fp16", "forward", {"nhwc", "gather"}),
        ("mi300x", "bf16", "data", {"nhwc"}),
        ("mi300x", "fp16", "forward", {"nhwc"}),
        ("mi355x", "fp32", "weights", {"nhwc"}),
        ("rx6800xt", "fp32", "forward", {"vector"}),
        ("rx7900xtx", "fp32", "forward", set()),
        ("rx6800xt", "fp32", "data", {"vector"}),
        ("rx6800xt", "fp16", "data", set()),
    ],
)
def test_implicit_gemm_families_of_a_target(
    device: str, dtype: str, direction: str, families: set[str]
) -> None:
    """What MIOpen's find databases have solvers for."""

    problem = replace(RESNET, dtype=dtype, direction=direction, layout="nchw")
    found = implicit_gemm.families(ConvolutionBatch.of([problem]), arch.load(device))
    assert set(found) == families


def test_deprecated_direct_kernels_run_on_older_targets_only() -> None:
    batch = ConvolutionBatch.of([RESNET])
    assert direct.applies(batch, arch.load("mi250x_gcd"))
    assert not direct.applies(batch, arch.load("mi300x"))


def test_kernels_that_keep_a_chip_busy_run_at_the_clock_of_its_power_limit() -> None:
    chip = Chip.of(arch.load("mi300x"))
    known = coefficients.values("convolution", chip.device)
    batch = ConvolutionBatch.of([replace(RESNET, n=256, c=512, k=512, layout="nhwc")])

    def seconds(power: float) -> float:
        found = implicit_gemm.implicit_gemm(batch, chip, {**known, "power": power})
        return float(found.seconds[0])

    assert seconds(1.0) > 1.1 * seconds(0.6) > 1.1 * seconds(1e-6)
