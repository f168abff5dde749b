"""Mixture of experts: expected routing, formats, and the shape of the predicted times."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.perfmodel.interval import interval_of
from wavecast import arch
from wavecast.errors import MissingFact, UnknownName, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import mall_bandwidth
from wavecast.perfmodel.ops import op
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.perfmodel.ops.moe.formats import MoeFormats
from wavecast.perfmodel.ops.moe.routing import active_experts, expected_blocks
from wavecast.perfmodel.ops.moe.stages import FAMILY, MoeModel, MoeSizes
from wavecast.perfmodel.ops.moe.strategies import TiledProblems

LAYER = FusedMoe(tokens=64, model=7168, inter=256, experts=256, topk=8, dtype="fp8")
CHIPS = ("mi210", "mi300a", "mi300x", "mi308x", "mi325x", "mi350x", "mi355x", "rx9070xt", "h200")


def seconds(problem: FusedMoe, device: str = "mi355x") -> float:
    return problem.predict(arch.load(device)).seconds


def machine(device: str, form: MoeFormats, part: str = "layer") -> MoeModel:
    found = arch.load(device)
    return MoeModel.of(Chip.of(found), form, coefficients.values(FAMILY, found), part)


@pytest.mark.parametrize(
    ("tokens", "experts", "topk"), [(1, 8, 2), (7, 16, 4), (64, 32, 8), (300, 24, 3), (5, 4, 4)]
)
def test_routing_is_what_random_choices_give_on_average(
    tokens: int, experts: int, topk: int
) -> None:
    random = np.random.default_rng(tokens)
    loads = np.array(
        [
            np.bincount(
                np.argsort(random.random((tokens, experts)), axis=1)[:, :topk].ravel(),
                minlength=experts,
            )
            for _ in range(400)
        ]
    )
    assert active_experts(tokens, experts, topk) == pytest.approx(
        np.mean((loads > 0).sum(axis=1)), rel=0.02
    )
    for height, expected in zip(
        (1, 4, 16), expected_blocks(tokens, experts, topk, (1, 4, 16)), strict=True
    ):
        assert expected == pytest.approx(np.mean((-(-loads // height)).sum(axis=1)), rel=0.02)


@pytest.mark.parametrize("tokens", [1, 33, 4096, 131072])
def test_blocks_of_one_row_are_the_rows(tokens: int) -> None:
    (rows,) = expected_blocks(tokens, 384, 8, (1,))
    assert rows == pytest.approx(tokens * 8, rel=1e-6)


def test_two_tokens_of_two_experts() -> None:
    """Both on one expert half of the time: 1 block of two rows, else 2."""
    assert active_experts(2, 2, 1) == 1.5
    assert expected_blocks(2, 2, 1, (2,)) == pytest.approx((1.5,))


@pytest.mark.parametrize(
    ("activation", "weight", "scaling", "compute"),
    [
        ("bf16", "int4", "mx", "bf16"),
        ("fp8", "fp8", "block", "fp8"),
        ("mxfp8", "mxfp4", "mx", "fp8"),
        ("mxfp4", "mxfp4", "mx", "fp4"),
        ("int8", "int8", "token", "int8"),
    ],
)
def test_products_have_the_dtype_of_the_activations(
    activation: str, weight: str, scaling: str, compute: str
) -> None:
    assert MoeFormats(activation, weight, scaling).compute == compute


@pytest.mark.parametrize(
    ("activation", "weight", "scaling", "error"),
    [
        ("mxfp4", "fp8", "mx", UsageError),
        ("int4", "int4", "none", UsageError),
        ("fp8", "bf16", "none", UsageError),
        ("fp7", "fp8", "none", UnknownName),
        ("fp8", "fp8", "row", UnknownName),
    ],
)
def test_pairs_nobody_multiplies_are_refused(
    activation: str, weight: str, scaling: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        MoeFormats(activation, weight, scaling)


@pytest.mark.parametrize(
    ("given", "form"),
    [
        (("fp8_e4m3fn", "", ""), MoeFormats("fp8", "fp8", "token")),
        (("fp8", "", "mx"), MoeFormats("mxfp8", "mxfp8", "mx")),
        (("fp8", "fp4", ""), MoeFormats("mxfp8", "mxfp4", "mx")),
        (("bfloat16", "int4", ""), MoeFormats("bf16", "int4", "mx")),
        (("bf16", "", ""), MoeFormats("bf16", "bf16", "none")),
    ],
)
def test_formats_have_other_names_and_usual_scales(
    given: tuple[str, str, str], form: MoeFormats
) -> None:
    dtype, weights, scaling = given
    assert replace(LAYER, dtype=dtype, weights=weights, scaling=scaling).form == form


@pytest.mark.parametrize("device", CHIPS)
@pytest.mark.parametrize("tokens", [1, 64, 8192])
def test_no_layer_beats_the_datasheet(device: str, tokens: int) -> None:
    layer, chip = replace(LAYER, tokens=tokens, dtype="bf16"), Chip.of(arch.load(device))
    work = layer.work()
    assert work.flops is not None
    assert work.bytes is not None
    peak = chip.matrix_rate("bf16") * chip.units * chip.clock
    assert seconds(layer, device) > work.bytes / chip.hbm_peak
    assert seconds(layer, device) > work.flops["bf16"] / peak


def test_work_counts_every_chosen_expert() -> None:
    whole = FusedMoe(tokens=1, model=64, inter=32, experts=4, topk=4)
    assert whole.work().flops == {"bf16": 2 * 4 * 3 * 64 * 32}
    assert replace(whole, gated=False).work().flops == {"bf16": 2 * 4 * 2 * 64 * 32}
    assert whole.work().bytes_read == 2 * (4 * 3 * 64 * 32 + 64)
    first, second = replace(whole, part="gate-up").work(), replace(whole, part="down").work()
    assert first.flops == {"bf16": 2 * 4 * 2 * 64 * 32}
    assert first.bytes_written == 2 * 4 * 32
    assert second.bytes_read == 2 * 4 * 64 * 32 + 2 * 4 * 32


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "mxfp4"])
def test_more_tokens_take_longer(dtype: str) -> None:
    times = [seconds(replace(LAYER, tokens=2**n, dtype=dtype)) for n in range(16)]
    assert all(later > 0.999 * sooner for sooner, later in pairwise(times))


def test_few_tokens_stream_weights_and_many_multiply() -> None:
    device = arch.load("mi355x")
    assert replace(LAYER, tokens=128).predict(device).limiter == "memory"
    large = FusedMoe(tokens=16384, model=4096, inter=4096, experts=8, topk=2)
    assert large.predict(device).limiter == "matrix"


def test_narrow_weights_pay_while_weights_are_streamed() -> None:
    wide, narrow = (FusedMoe(64, 7168, 512, 384, 8, "bf16", w) for w in ("", "int4"))
    assert seconds(narrow) < 0.5 * seconds(wide)
    many = [replace(layer, tokens=16384) for layer in (wide, narrow)]
    assert seconds(many[1]) > 0.9 * seconds(many[0])


def test_the_tile_is_chosen_among_those_that_can_be_given() -> None:
    device = arch.load("mi308x")
    stage = replace(LAYER, part="gate-up")
    best = stage.predict(device)
    assert best.fidelity == "formula"
    given = [
        replace(stage, block_m=height, tile_n=width).predict(device)
        for height in (16, 32, 64, 128)
        for width in (64, 128, 256)
    ]
    assert {prediction.fidelity for prediction in given} == {"tile"}
    assert min(prediction.seconds for prediction in given) == pytest.approx(best.seconds)
    wide = replace(LAYER, part="down", block_m=64, tile_n=256).predict(device)
    assert np.isfinite(wide.seconds)


def test_one_kernel_is_a_way_where_libraries_have_it() -> None:
    device = arch.load("mi355x")
    layer = replace(LAYER, scaling="block")
    whole, one = layer.predict(device), replace(layer, part="one-kernel").predict(device)
    assert whole.assumed["kernels"] in (1, 2)
    assert whole.seconds <= 1.02 * one.seconds  # rates of memory of layers and of single kernels
    assert replace(LAYER, dtype="bf16").predict(device).assumed["kernels"] == 2


@pytest.mark.parametrize("part", ["layer", "gate-up", "down", "one-kernel"])
def test_a_batch_gives_what_its_problems_give(part: str) -> None:
    layers = [replace(LAYER, tokens=n, inter=i, part=part) for n, i in ((1, 256), (900, 768))]
    known = machine("mi300x", LAYER.form, part)
    together = TiledProblems.of(part, [layer.sizes for layer in layers]).seconds(known)
    alone = [TiledProblems.of(part, [layer.sizes]).best(known).seconds for layer in layers]
    assert together == pytest.approx(alone)
    assert alone == [seconds(layer, "mi300x") for layer in layers]


def test_bounds_hold_the_launches_and_every_resource() -> None:
    prediction = replace(LAYER, scaling="block").predict(arch.load("mi355x"))
    assert {"memory", "fabric", "chain", "matrix", "vector", "combine", "launch"} == set(
        prediction.bounds
    )
    expected = interval_of(prediction, LAYER.subject, arch.load("mi355x"))
    assert (prediction.low, prediction.high) == pytest.approx(expected)
    assert max(prediction.bounds.values()) < prediction.seconds


def test_what_a_chip_cannot_multiply_is_a_missing_fact() -> None:
    with pytest.raises(MissingFact, match="fp4"):
        seconds(replace(LAYER, dtype="mxfp4"), "mi300x")
    assert seconds(FusedMoe(8, 2048, 256, 64, 4, "bf16", "mxfp4"), "mi300x") > 0


def test_formats_nobody_measured_on_a_chip_widen_the_interval() -> None:
    prediction = replace(LAYER, dtype="bf16").predict(arch.load("mi210"))
    assert any("not measured on cdna2" in note for note in prediction.notes)


def test_the_command_line_reads_shape_and_options() -> None:
    parsed = op("moe").parse(
        "64x7168x256x256x8", {"dtype": "fp8", "scaling": "block", "gated": "false", "block_m": "32"}
    )
    assert parsed == replace(LAYER, scaling="block", gated=False, block_m=32)
    assert str(parsed) == "moe 64x7168x256 experts 256 top 8 fp8 per block tile 32x*"


def test_one_scale_is_repeated_for_rows_before_an_assembly_kernel() -> None:
    tensor, token = (
        FusedMoe(
            *(16, 4096, 1024, 64, 4), "fp8", scaling=scaling, part="gate-up", block_m=32, tile_n=128
        )
        for scaling in ("tensor", "token")
    )
    assert seconds(tensor) == pytest.approx(seconds(token))
    extra = seconds(replace(tensor, assembly=True)) - seconds(tensor)
    known = coefficients.values(FAMILY, arch.load("mi355x"))
    assert extra == pytest.approx(2 * known["launch_repeat"])
    assert seconds(replace(token, assembly=True)) == pytest.approx(seconds(token))


def test_a_scaled_kernel_waits_for_each_step_of_k() -> None:
    kernel = FusedMoe(
        *(8192, 7168, 512, 384, 8), "mxfp4", part="gate-up", block_m=32, tile_n=32, resident=1
    )
    known = coefficients.values(FAMILY, arch.load("mi355x"))
    steps = 7168 / 2 / 128
    rounds = seconds(replace(kernel, resident=1)) / (steps * known["step"])
    groups = MoeSizes.of([kernel.sizes], (32,), (32,)).blocks.item() * 2 * 512 / 32
    assert rounds > groups / 256
    two, four = (seconds(replace(kernel, resident=count)) for count in (2, 4))
    assert seconds(kernel) > 1.5 * two > 1.5 * 1.5 * four
    wide = replace(kernel, tile_n=128)
    assert seconds(replace(wide, resident=4)) == pytest.approx(seconds(wide))


def test_parts_of_k_help_few_tokens_and_cost_many() -> None:
    few = FusedMoe(
        *(1, 7168, 512, 384, 8), "mxfp4", part="gate-up", block_m=32, tile_n=64, resident=2
    )
    many = replace(few, tokens=16384)
    assert seconds(replace(few, splits=7)) < 0.8 * seconds(few)
    assert seconds(replace(many, splits=7)) > seconds(many)


def test_the_end_of_a_padded_tile_costs() -> None:
    low, high = (
        FusedMoe(*(64, 7168, 512, 384, 8), "mxfp4", part="down", block_m=block, tile_n=128)
        for block in (32, 128)
    )
    assert seconds(high) > 1.3 * seconds(low)
    assert seconds(replace(low, by_element=True)) > seconds(low)


def test_layers_take_kernels_that_do_not_wait() -> None:
    form = FusedMoe(*(64, 7168, 512, 384, 8), "mxfp4").form
    layer, kernel = (machine("mi355x", form, part).known for part in ("layer", "down"))
    assert layer["step"] == layer["tile_end"] == 0
    assert kernel["step"] > 0
    assert kernel["tile_end"] > 0


def test_single_kernels_stream_at_their_own_rates() -> None:
    chip, form = Chip.of(arch.load("mi355x")), LAYER.form
    known = coefficients.values(FAMILY, chip.device)
    layer, kernel = (MoeModel.of(chip, form, known, part).known for part in ("layer", "down"))
    assert layer == {**known, "step": 0.0, "tile_end": 0.0}
    share = kernel["stream_fraction"] / layer["stream_fraction"]
    assert share == pytest.approx(known["kernel_stream"])
    assert kernel["unit_stream"] == known["kernel_unit_stream"]


@pytest.mark.parametrize(
    ("shape", "options", "error"),
    [
        ("64x7168x256x256", {"dtype": "fp8"}, UsageError),
        ("64x7168x256x8x256", {"dtype": "fp8"}, UsageError),
        ("0x7168x256x256x8", {"dtype": "fp8"}, UsageError),
        ("64x7168x256x256x8", {}, UsageError),
        ("64x7168x256x256x8", {"experts": "9"}, UnknownName),
        ("64x7168x256x256x8", {"dtype": "fp8", "part": "up"}, UnknownName),
        ("64x7168x256x256x8", {"dtype": "fp8", "gated": "maybe"}, UsageError),
        ("64x7168x256x256x8", {"dtype": "fp8", "block_m": "-1"}, UsageError),
    ],
)
def test_other_input_is_refused(
    shape: str, options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        op("moe").parse(shape, options)


def test_dies_fetch_the_weights_of_every_block_that_they_do_not_share() -> None:
    """MI300X, 2048 columns in tiles of 256: each of eight dies gets one tile of every block, and
    its 38 workgroups share its weights. 29 tiles share no divisor with eight dies: 304 workgroups
    are 10.5 blocks, those of more than one expert, and no two of a die share weights."""
    device = arch.load("mi300x")
    problem = FusedMoe(512, 2048, 2048, 6, 2, "fp8", "fp8", "token", part="one-kernel", block_m=32)
    shared = replace(problem, tile_n=256).predict(device).bounds["fabric"]
    apart = replace(problem, inter=29 * 256, tile_n=256).predict(device).bounds["fabric"]
    rate = mall_bandwidth(Chip.of(device))
    blocks = expected_blocks(512, 6, 2, (32,))[0]
    weights = 3 * 2048 * 256
    experts = max(1.0, min(304, 8 * blocks) / (8 * blocks / 6))
    groups = 8 * blocks
    assert shared == pytest.approx(groups * weights * experts / (min(304, groups) / 8) / rate)
    assert apart == pytest.approx(29 * blocks * weights / rate, rel=0.3)
    assert apart > 10 * shared
    single = replace(problem, tile_n=256).predict(arch.load("rx9070xt")).bounds
    assert "fabric" not in single
