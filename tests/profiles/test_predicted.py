"""Operators of a profile are predicted from their sizes, here and on other chips."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

pytest.importorskip("torch")

from wavecast.arch.select import load
from wavecast.perfmodel.intervals import HALF_WIDTH
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.profiles.changes import parse
from wavecast.profiles.elsewhere import RatioBasis, elsewhere
from wavecast.profiles.nesting import adopt
from wavecast.profiles.predicted import predict
from wavecast.profiles.profile import NONE, Profile, ProfiledKernel, ProfiledOp
from wavecast.runtimes.torch_graph.profiled import UnknownCall, calls

pytestmark = pytest.mark.torch

_MM = ("[[4096, 1024], [1024, 2048]]", '["c10::BFloat16", "c10::BFloat16"]')


def _profile(*runs: tuple[ProfiledOp | None, str, int]) -> Profile:
    """A profile of kernels: (operator, name, nanoseconds)."""
    profile, now = Profile("test"), 0
    for op, name, duration in runs:
        kernel = profile.kernels.number(ProfiledKernel(name))
        profile.launches.add(kernel, 0, 0, now, duration)
        if op is not None:
            profile.launches.op[-1] = len(profile.ops)
            profile.ops.add(profile.op_infos.number(op), 0, now, duration)
        now += duration
    return profile


def test_a_product_has_the_time_of_its_sizes() -> None:
    op = ProfiledOp("aten::mm", *_MM, "[[1024, 1], [1, 1024]]")
    found = predict(_profile((op, "Cijk_a", 50_000), (op, "Cijk_a", 60_000)), load("mi300x"))
    (time,) = found.operators
    one = Gemm(m=4096, n=2048, k=1024, dtype="bf16", library="blas").predict(load("mi300x"))
    assert time.count == 2
    assert time.measured == pytest.approx(110e-6)
    assert time.predicted == pytest.approx(2 * one.seconds, rel=0.1)
    assert time.flops == 2 * 2 * 4096 * 2048 * 1024
    assert time.low / time.predicted == pytest.approx(one.low / one.seconds, rel=0.05)
    assert found.covered == 1


def test_what_is_not_known_keeps_its_time_and_says_why() -> None:
    known = ProfiledOp("aten::mm", *_MM)
    runs = [
        (known, "Cijk_a", 1000),
        (ProfiledOp("vllm::thing", "[[1]]", '["float"]'), "thing", 300),
        (ProfiledOp("aten::mm"), "Cijk_b", 200),
        (None, "late", 500),
    ]
    found = predict(_profile(*runs), load("mi300x"))
    why = {one.name: one.why_not for one in found.operators if one.why_not}
    assert "vllm::thing" in why["vllm::thing"]
    assert why["aten::mm"].startswith("aten::mm has no sizes")
    assert "names and grids" in why["late"]
    assert found.covered == pytest.approx(0.5)


def test_another_chip_keeps_the_ratio_of_measured_to_predicted() -> None:
    product = ProfiledOp("aten::mm", *_MM)
    unknown = ProfiledOp("mine::mm", "[[8]]", '["float"]')
    profile = _profile((product, "Cijk_a", 100_000), (unknown, "Cijk_b", 10_000))
    here = predict(profile, load("mi300x"))
    moved = elsewhere(profile, here, load("mi355x"))
    there = predict(profile, load("mi355x"))
    ratio = there.known[0].predicted / here.known[0].predicted
    assert [one.ratio for one in moved.operators] == [pytest.approx(ratio)] * 2
    assert [one.basis for one in moved.operators] == [RatioBasis.PREDICTED, RatioBasis.CATEGORY]
    assert moved.seconds == pytest.approx(110e-6 * ratio)
    widths = [math.log(one.high / one.low) / 2 for one in (here.known[0], there.known[0])]
    # Chips err independently, and one operator says little of the others of its category.
    others = HALF_WIDTH * moved.operators[1].deviation
    assert others > math.hypot(*widths)
    factor = math.exp((100 * math.hypot(*widths) + 10 * others) / 110)
    assert (moved.seconds / moved.low, moved.high / moved.seconds) == pytest.approx((factor,) * 2)


def test_kernels_without_operators_are_priced_by_name_and_grid() -> None:
    name = (
        "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<"
        "c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>"
    )
    profile = Profile("test")
    known = profile.kernels.number(ProfiledKernel(name, (50_000, 1, 1), (256, 1, 1)))
    unknown = profile.kernels.number(ProfiledKernel("Cijk_a", (304, 1, 1), (256, 1, 1)))
    for number, duration in ((known, 300_000), (known, 310_000), (unknown, 100_000)):
        profile.launches.add(number, 0, 0, 0, duration)
    found = predict(profile, load("mi300x"))
    first, second = found.operators
    assert (first.count, first.by_name, first.form) == (2, True, "bf16")
    assert first.bytes == pytest.approx(2 * 3 * 2 * 50_000 * 256 * 8)
    assert 0.2 < first.predicted / first.measured < 5
    assert second.why_not
    assert found.rows == [0, 0, 1]
    moved = elsewhere(profile, found, load("mi355x"))
    assert [one.basis for one in moved.operators] == [RatioBasis.PREDICTED, RatioBasis.CHIP]


def test_a_batch_and_a_factor_change_the_time() -> None:
    sizes = "[[4096, 1024], [1024, 2048]]"
    product = ProfiledOp("aten::mm", sizes, _MM[1], "[[1024, 1], [1, 1024]]")
    shape = ProfiledOp("aten::mul", "[[16, 256, 1024], []]", '["c10::BFloat16", "Scalar"]')
    profile = _profile((product, "Cijk_a", 60_000), (shape, "elementwise_kernel", 10_000))
    chip = load("mi300x")
    here = predict(profile, chip)
    doubled = elsewhere(profile, here, chip, parse("batch*2"))
    assert 1.5 < doubled.operators[0].ratio < 2.3
    halved = elsewhere(profile, here, chip, parse("gemm*0.5"))
    ratios = {one.here.category: one.ratio for one in halved.operators}
    assert ratios["gemm"] == pytest.approx(0.5)
    assert ratios["element-wise"] == pytest.approx(1)
    assert halved.after.span == pytest.approx(40_000)


def test_another_library_has_its_predicted_time() -> None:
    profile = _profile((ProfiledOp("aten::mm", *_MM), "Cijk_a", 900_000))
    chip = load("mi300x")
    here = predict(profile, chip)
    (moved,) = elsewhere(profile, here, chip, parse("gemm=triton")).operators
    triton = Gemm(m=4096, n=2048, k=1024, dtype="bf16", library="triton").predict(chip)
    assert moved.seconds == pytest.approx(triton.seconds, rel=0.05)
    assert elsewhere(profile, here, chip).seconds == pytest.approx(900e-6)


def test_kernels_without_calls_take_operators_of_equal_kernels() -> None:
    small = ProfiledOp("aten::mm", "[[1, 1], [1, 1]]", '["float", "float"]')
    large = ProfiledOp("aten::mm", *_MM)
    profile = _profile(
        (small, "Cijk_a", 100),
        (large, "Cijk_a", 9000),
        (None, "Cijk_a", 8000),
        (None, "Cijk_a", 120),
        (None, "Cijk_a", 9500),
        (None, "other", 10),
    )
    adopt(profile)
    ops = [NONE if op == NONE else profile.ops.info[op] for op in profile.launches.op]
    assert ops == [0, 1, 1, 0, 1, NONE]
    assert len(set(profile.launches.op)) == 6
    assert any("3 launches without a call" in note for note in profile.notes)


@pytest.mark.parametrize(
    ("name", "sizes", "dtypes", "values", "expected"),
    [
        ("aten::mm", *_MM, "", ["aten.mm"]),
        ("aten::addmm", "[[8], [4, 2], [2, 8], [], []]",
         '["float", "float", "float", "Scalar", "Scalar"]', '["", "", "", "1", "1."]',
         ["aten.addmm"]),
        ("aten::cat", "[[[4, 2], [4, 3]], []]", '["TensorList", "Scalar"]', '["", "1"]',
         ["aten.cat"]),
        ("aten::sum", "[[5, 128], [], [], []]", '["float", "ScalarList", "Scalar", ""]',
         '["", "[0]", "False", ""]', ["aten.sum"]),
        ("aten::_to_copy", "[[4], [], [], [], [], [], []]",
         '["float", "Scalar", "", "", "", "Scalar", ""]', '["", "15", "", "", "", "False", ""]',
         ["aten._to_copy"]),
    ],
)  # fmt: skip
def test_calls_are_made_again(
    name: str, sizes: str, dtypes: str, values: str, expected: list[str]
) -> None:
    made = calls(name, sizes, dtypes, "", values)
    assert [call.name for call in made] == expected
    assert made[0].outputs


def test_strides_and_values_are_those_of_the_profile() -> None:
    (call,) = calls("aten::mm", *_MM, "[[1024, 1], [1, 1024]]", "")
    assert [one.strides for one in call.inputs] == [(1024, 1), (1, 1024)]
    (call,) = calls(
        "aten::_to_copy", "[[4], [], [], [], [], [], []]",
        '["float", "Scalar", "", "", "", "Scalar", ""]', "", '["", "15", "", "", "", "False", ""]',
    )  # fmt: skip
    assert call.outputs[0].dtype == "bf16"


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("aten::mm", ""),
        ("aten::mm", "[["),
        ("aten::nothing", json.dumps([[1]])),
        ("nothing", json.dumps([[1]])),
        ("aten::mm", json.dumps([[1, 2], [3, 4]])),
    ],
)
def test_calls_that_cannot_be_made_again(name: str, sizes: str) -> None:
    dtypes: Any = json.dumps(["float", "float"])
    with pytest.raises(UnknownCall):
        calls(name, sizes, dtypes, "", "")


@pytest.mark.parametrize(
    "texts",
    [
        ("5", "[]", "", ""),
        ("[[4, 4]]", '{"a": 1}', "", ""),
        ("[" * 100_000, "[]", "", ""),
        ("[[4, 4]]", '["float"]', "[1", ""),
        ("[5, [4]]", '["float", "float"]', "", ""),
        ("[[1e300, 4], [4, 4]]", '["float", "float"]', "", ""),
    ],
)
def test_arguments_of_another_form_are_unknown(texts: tuple[str, str, str, str]) -> None:
    with pytest.raises(UnknownCall):
        calls("aten::mm", *texts)
