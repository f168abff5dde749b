"""Rows of element-wise, collective and microbenchmark data as cases."""

from __future__ import annotations

import pytest

from calibration.datasets.collectives import Collectives
from calibration.datasets.elementwise_norm import ElementwiseNorm
from calibration.datasets.microbench import Microbench
from tests.calibration.support import importer
from wavecast.benchmarking.accuracy.cases import Case, MeasuredFigure
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.norm import Norm
from wavecast.perfmodel.ops.reduction import Reduction
from wavecast.perfmodel.ops.softmax import Softmax

pd = pytest.importorskip("pandas")

BF16, SCALAR = "c10::BFloat16", "Scalar"


def streaming(op: str, dtype: object, shape: object, **more: object) -> Case:
    row = {
        "arch": "gfx942",
        "device": "MI300X",
        "cu_count": 304,
        "op": op,
        "dtype": str(dtype),
        "shape": str(shape),
        "library": "elementwise",
        "kernel": "void at::native::vectorized_elementwise_kernel<8, …",
        "grid": "1x1x1",
        "block": "256x1x1",
        "time_us": 10.0,
        "bytes_min": 1.0,
        **more,
    }
    (case,) = ElementwiseNorm().cases(pd.DataFrame([row]))
    assert isinstance(case, Case)
    assert case.device == "mi300x"
    assert case.seconds == pytest.approx(1e-5)
    return case


def test_formats_are_recognised_by_their_columns():
    for known in (ElementwiseNorm, Collectives, Microbench):
        assert isinstance(importer(known.columns[0]), known)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("softmax", Softmax(8, 64, "fp32", timing="eager, softmax")),
        ("ln", Norm("layer_norm", 8, 64, "fp32", timing="eager, norm")),
        ("powu", Elementwise.of("pow_number", (8, 64), "fp32", timing="eager, framed")),
        ("add", Elementwise.of("add", (8, 64), "fp32", timing="eager")),
    ],
)
def test_eager_calls(name: str, expected: object):
    assert streaming(name, "fp32", "8x64").op == expected


def test_profiled_operations_broadcast():
    shapes = ((4, 197, 768), (1, 197, 768), ())
    op = streaming("aten::add", (BF16, BF16, SCALAR), shapes).op
    assert isinstance(op, Elementwise)
    assert op.result == ((4, 197, 768), "bf16")
    assert op.broadcast


def test_numbers_are_no_tensors():
    op = streaming("aten::mul", (BF16, "double"), ((8, 64), ())).op
    assert op == Elementwise.of("scale", (8, 64), "bf16")


def test_copies_change_types():
    op = streaming("aten::copy_", ("float", BF16, SCALAR), ((8, 64), (8, 64), ())).op
    assert isinstance(op, Elementwise)
    assert (op.operands[0][1], op.result[1], op.in_place) == ("bf16", "fp32", False)


def test_the_kernel_tells_what_is_not_contiguous():
    kernel = "void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel"
    op = streaming("aten::neg", (BF16,), ((8, 64),), kernel=kernel).op
    assert isinstance(op, Elementwise)
    assert op.indexed


def test_cases_say_what_is_known_of_the_layout():
    indexed = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel"
    same, other = ((8, 64), (8, 64)), ((8, 64), (64,))
    assert streaming("aten::mul", (BF16, BF16), same).labels["layout"] == "contiguous"
    assert streaming("aten::mul", (BF16, BF16), other).labels["layout"] == "broadcast"
    case = streaming("aten::mul", (BF16, BF16), same, kernel=indexed)
    assert case.labels["layout"] == "strides not recorded"


def test_reductions_with_results_side_by_side_are_over_channels():
    kernel = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16"
    case = streaming("aten::sum", (BF16,), ((2, 96, 64, 64),), kernel=kernel)
    assert case.op == Reduction(2 * 64 * 64, 96, "bf16", inner=64 * 64)


def test_reductions_that_find_a_place_are_told_apart():
    case = streaming("aten::argmax", ("float", SCALAR), ((15, 151936), ()))
    assert case.op == Reduction(15, 151936, "fp32", function="argmax")


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "expected"),
    [
        (
            "aten::layer_norm",
            (BF16, "ScalarList", BF16),
            ((2, 5, 64), (), (64,)),
            Norm("layer_norm", 10, 64, "bf16"),
        ),
        (
            "aiter::_groupnorm_run",
            (BF16, SCALAR, BF16),
            ((2, 512, 32, 32), (), (512,)),
            Norm("group_norm", 64, 16384, "bf16"),
        ),
        (
            "aiter::add_rmsnorm",
            (BF16, BF16),
            ((32, 64), (32, 64)),
            Norm("rms_norm", 32, 64, "bf16", residual=True),
        ),
        (
            "aten::batch_norm",
            (BF16, BF16),
            ((10, 64, 7, 7), (64,)),
            Norm("batch_norm", 64, 490, "bf16"),
        ),
        (
            "aten::mean",
            ("float", "ScalarList"),
            ((3, 4, 64), ()),
            Reduction(12, 64, "fp32"),
        ),
    ],
)
def test_profiled_rows(name: str, dtype: object, shape: object, expected: object):
    assert streaming(name, dtype, shape).op == expected


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "more", "reason"),
    [
        ("aten::copy_", (BF16, BF16), ((8,), (8,)), {"kernel": "Memcpy HtoD"}, "host"),
        ("aten::upsample_nearest2d", (BF16, ""), ((1, 8, 8, 8), ()), {}, "not an operation"),
        ("aten::where", ("bool",), ((8,),), {}, "1 tensors"),
        ("mystery", "fp32", "8x8", {}, "mystery"),
    ],
)
def test_rows_without_an_op_say_why(
    name: str, dtype: object, shape: object, more: dict[str, object], reason: str
):
    case = streaming(name, dtype, shape, **more)
    assert case.op is None
    assert reason in case.reason


def test_fused_norms():
    shape = "B16 N1024 D2048"
    fused = streaming("dropout+residual+layernorm", "bf16", shape, library="hipkittens").op
    apart = streaming("dropout+residual+layernorm", "bf16", shape, library="torch").op
    assert isinstance(fused, Norm)
    assert isinstance(apart, Norm)
    assert (fused.rows, fused.columns, fused.fused, apart.fused) == (16384, 2048, True, False)


@pytest.mark.parametrize(
    ("note", "channels", "expected"),
    [
        ("HIP graph launch (-G 1)", None, Collective("all_reduce", 64, 8)),
        ("normal launch", None, Collective("all_reduce", 64, 8, timing="launch")),
        ("alone", "unset", Collective("all_reduce", 64, 8, timing="torch")),
        (
            "overlapped with torch GEMM 8192^3",
            "56",
            Collective("all_reduce", 64, 8, channels=56, concurrent="gemm", timing="torch"),
        ),
    ],
)
def test_collectives(note: str, channels: str | None, expected: Collective):
    row = {
        "source_repo": "r",
        "source_path": "p",
        "arch": "gfx942",
        "device": "MI300X (304 CU, 8 XCD)",
        "cu_count": 304,
        "op": "all_reduce",
        "gpus": 8,
        "dtype": "bf16",
        "bytes": 64,
        "nccl_channels": channels,
        "time_us": 10.0,
        "note": note,
        "busbw_gbps": 1.0,
    }
    (case,) = Collectives().cases(pd.DataFrame([row]))
    assert isinstance(case, Case)
    assert (case.op, case.device) == (expected, "mi300x")


def micro(**more: object) -> Case | MeasuredFigure:
    row = {"arch": "gfx942", "device": "MI300A", "param": "", "unit": "GB/s", **more}
    (found,) = Microbench().cases(pd.DataFrame([row]))
    return found


def test_streams_are_operations():
    param = "mode=SPX device=0 array_elements=1000000 all devices of the node running"
    case = micro(bench="BabelStream 5.0 HIP fp64", metric="Add", param=param, value=3000.0)
    assert isinstance(case, Case)
    assert case.op == Elementwise.of("add", (1000000,), "fp64", timing="launch")
    assert case.seconds == pytest.approx(24e6 / 3e12)


def test_latencies_are_figures():
    figure = micro(
        bench="mt4g memory topology",
        metric="memory/l2/latency/mean",
        value=290.0,
        unit="cycles",
        device="AMD Instinct MI300X VF",
    )
    assert isinstance(figure, MeasuredFigure)
    assert figure.device == "mi300x"
    assert figure.expected == pytest.approx(287.5)


def test_parts_of_devices_have_a_reason():
    case = micro(
        bench="MGPUSim validation kernels",
        metric="relu",
        param="problem_size=1024,iterations=5",
        value=4.0,
        unit="us (min)",
        device="MI300A restricted to 120 CU",
    )
    assert isinstance(case, Case)
    assert case.reason == "a part of a device"
