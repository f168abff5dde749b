"""Launches follow from the spec of a kernel: by name, with what need not be given."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

from wavecast import arch  # noqa: E402
from wavecast.errors import MissingFact  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.kernels.spec import KernelSpec, Workspace  # noqa: E402
from wavecast.perfmodel.ranking import Constant, StreamingKernel  # noqa: E402
from wavecast.runtimes.triton import capture  # noqa: E402

pytestmark = pytest.mark.torch
MI300X = arch.load("mi300x")


@triton.jit
def scaled_kernel(
    x_ptr, y_ptr, partial_ptr, count, factor, BLOCK: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
):  # fmt: skip
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < count)
    tl.store(y_ptr + offs, x * factor, mask=offs < count)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(x))


def spec(**changes: Any) -> KernelSpec:
    known: dict[str, Any] = {
        "function": scaled_kernel,
        "grid": lambda problem, settings: (triton.cdiv(problem["count"], settings["BLOCK"]),),
        "axes": {"BLOCK": (64, 128, 256), "num_warps": (1,), "kpack": (1,)},
        "demand": lambda problem, settings, device: Constant(-settings["BLOCK"]),
        "workspaces": lambda problem, settings: {
            "partial": Workspace((triton.cdiv(problem["count"], settings["BLOCK"]),), zeroed=True)
        },
    }
    return KernelSpec(**{**known, **changes})


def bound(**changes: Any) -> choice.Bound:
    x = torch.ones(1000)
    arguments = {"x": x, "y": torch.empty_like(x), "factor": 2.0, **changes}
    return choice.bound(spec(), {"count": 1000}, arguments, {"BLOCK": 256, "num_warps": 1}, MI300X)


def test_what_the_problem_settings_and_device_have_need_not_be_given() -> None:
    found = bound()
    assert found.grid == (4,)
    given = found.arguments
    assert (given["count"], given["BLOCK"], given["WIDE"], given["XCDS"]) == (1000, 256, False, 8)
    assert given["partial_ptr"] is found.workspaces["partial"]
    assert torch.equal(found.workspaces["partial"], torch.zeros(4))
    assert bound(WIDE=True).arguments["WIDE"] is True


@triton.jit
def strided_kernel(x_ptr, bias_ptr, x_row, x_head, bias_row, BLOCK: tl.constexpr):
    tl.store(x_ptr + x_row * BLOCK + x_head, tl.load(bias_ptr + bias_row))


def streaming(**changes: Any) -> KernelSpec:
    known: dict[str, Any] = {
        "grid": "cdiv(rows, BLOCK), heads",
        "axes": {"BLOCK": (64, 128, 256), "num_warps": (1, 4)},
        "fits": "BLOCK >= lanes",
        "read": "4.0 * rows * heads",
        "written": 0.0,
        "elements": "BLOCK",
    }
    return KernelSpec.streaming(strided_kernel, **{**known, **changes})


def test_a_streaming_kernel_is_described_by_expressions() -> None:
    kernel, problem = streaming(instructions="2 * heads"), {"rows": 300, "heads": 3}
    settings = {"BLOCK": 128, "num_warps": 1}
    assert kernel.programs(problem, settings) == (3, 3)
    needed = StreamingKernel(workgroups=9, read=3600.0, written=0.0, elements=128, instructions=6)
    assert kernel.demand(problem, settings, MI300X) == needed
    fitting = {
        (one.settings["BLOCK"], one.settings["num_warps"]) for one in kernel.ranked(problem, MI300X)
    }
    assert fitting == {(64, 1), (128, 1), (256, 1), (256, 4)}
    assert {one.settings["num_stages"] for one in kernel.ranked(problem, MI300X)} == {1}


def test_a_streaming_kernel_can_be_slowed_by_a_factor() -> None:
    def slowed(kernel: StreamingKernel, problem: Any, settings: Any, device: Any) -> float:
        return 2.0 if kernel.elements > settings["num_warps"] * device.wave_lanes else 1.0

    problem, times = {"rows": 300, "heads": 3}, []
    for block in (64, 128):
        settings = {"BLOCK": block, "num_warps": 1}
        plain, other = (
            kernel.demand(problem, settings, MI300X).seconds(MI300X, 1)
            for kernel in (streaming(), streaming(slowed=slowed))
        )
        times.append(other / plain)
    assert times == pytest.approx([1.0, 2.0])


def test_equal_configurations_stay_in_the_order_of_all_axes() -> None:
    axes = {"BLOCK": (64, 128), "num_stages": (2, 3)}
    found = spec(axes=axes, demand=lambda *_: Constant(0.0)).ranked({"count": 9}, MI300X)
    order = [(one.settings["BLOCK"], one.settings["num_stages"]) for one in found]
    assert order == [(64, 2), (64, 3), (128, 2), (128, 3)]


def test_axes_may_be_expressions_of_the_problem_and_the_width_of_a_wave() -> None:
    axes = {"BLOCK": "up_to(rows, 64, 128, 256)", "num_warps": "(1,) if wave_lanes == 64 else (2,)"}
    kernel = spec(axes=axes)

    def choices(rows: int, device: Any) -> list[tuple[int, int]]:
        ranked = kernel.ranked({"rows": rows}, device)
        return [(one.settings["BLOCK"], one.settings["num_warps"]) for one in ranked]

    assert choices(200, MI300X) == [(128, 1), (64, 1)]
    assert choices(16, MI300X) == [(16, 1)]
    assert choices(100, arch.load("rx7900xtx")) == [(64, 2)]


def test_a_name_that_neither_problem_nor_settings_have_is_an_error() -> None:
    with pytest.raises(NameError, match="tokens"):
        streaming(grid="tokens").programs({"rows": 3}, {"BLOCK": 64})


def test_strides_are_those_of_the_leading_dimensions_and_0_without_a_tensor() -> None:
    strides = {"x": "x_row x_head", "bias": "bias_row"}
    x = torch.empty(5, 3, 8).transpose(0, 1)

    def given(**arguments: Any) -> dict[str, Any]:
        problem, settings = {"rows": 300, "heads": 3}, {"BLOCK": 128}
        kernel = streaming(strides=strides)
        return dict(
            choice.bound(kernel, problem, {"x": x, **arguments}, settings, MI300X).arguments
        )

    found = given(bias=None)
    assert (found["x_row"], found["x_head"], found["bias_row"]) == (8, 24, 0)
    assert given(bias=torch.ones(4), x_head=7)["x_head"] == 7


def test_tensors_that_a_kernel_reads_contiguous_are_copied() -> None:
    kernel = streaming(strides={"x": "x_row x_head", "bias": "bias_row"}, contiguous=("x", "bias"))
    x = torch.empty(5, 3, 8).transpose(0, 1)
    with capture(MI300X) as launches:
        choice.run(kernel, {"rows": 300, "heads": 3}, x=x, bias=torch.ones(4), x_head=1)
    assert launches[0].scalars["x_row"] == 40


def test_offsets_are_wide_where_a_tensor_reaches_beyond_32_bits() -> None:
    far = torch.empty(1, device="meta").expand(2).as_strided((2,), (2**31,))
    assert bound(x=far).arguments["WIDE"] is True


def test_arguments_a_kernel_lacks_or_does_not_have_are_named() -> None:
    x = torch.ones(3)
    with pytest.raises(TypeError, match=r"scaled_kernel lacks \['factor'\] and does not take \[\]"):
        choice.bound(spec(), {"count": 3}, {"x": x, "y": x}, {"BLOCK": 64}, MI300X)
    with pytest.raises(TypeError, match=r"does not take \['weight'\]"):
        bound(weight=1)


def test_configurations_are_ranked_by_demand_among_those_that_fit() -> None:
    every = spec().ranked({"count": 1000}, MI300X)
    assert [one.settings["BLOCK"] for one in every] == [256, 128, 64]
    few = spec(fits=lambda problem, settings, device: settings["BLOCK"] < 256)
    assert [one.settings["BLOCK"] for one in few.ranked({"count": 1000}, MI300X)] == [128, 64]


def test_options_of_amd_are_left_out_elsewhere() -> None:
    found = spec().ranked({"count": 1000}, arch.load("h100_sxm"))
    assert all("kpack" not in one.settings for one in found)


def test_without_a_fact_configurations_stay_in_the_order_of_the_axes() -> None:
    def demand(problem: Any, settings: Any, device: Any) -> Any:
        raise MissingFact("nobody measured it")

    found = spec(demand=demand).ranked({"count": 1000}, MI300X)
    assert [one.settings["BLOCK"] for one in found] == [64, 128, 256]


def test_the_tuning_key_rounds_sizes_and_leaves_out_what_is_ignored() -> None:
    one = spec(rounded=("count",), ignored=("programs",))
    assert one.key({"count": 1000, "dtype": "fp16", "programs": 7}) == (
        ("count", 1024),
        ("dtype", "fp16"),
    )


def test_a_launch_returns_its_settings_and_workspaces() -> None:
    x = torch.ones(1000)
    choice.forget()
    with capture(MI300X) as launches:
        made = choice.run(spec(), {"count": 1000}, x=x, y=torch.empty_like(x), factor=3.0)
    assert made.settings["BLOCK"] == 256
    assert tuple(made.workspaces["partial"].shape) == (4,)
    assert len(launches) == 1


def test_demands_add_up() -> None:
    one = StreamingKernel(workgroups=64, read=1e9, written=0.0, elements=1024)
    alone = one.seconds(MI300X, 4)
    assert (one + Constant(1.0)).seconds(MI300X, 4) == pytest.approx(1.0 + alone)
    assert one.slow_down(2.0).seconds(MI300X, 4) == pytest.approx(2 * alone)
    assert alone > 1e9 / 5.3e12


def test_a_configuration_beyond_the_registers_of_a_lane_ranks_last() -> None:
    small = StreamingKernel(workgroups=1, read=1e9, written=0.0, elements=64)
    large = StreamingKernel(workgroups=1, read=1.0, written=0.0, elements=64 * 600)
    assert large.seconds(MI300X, 1) > small.seconds(MI300X, 1)
