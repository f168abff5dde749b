"""Operator calls as kernels: which operations, of which sizes, and what nobody knows."""

from __future__ import annotations

import pytest

from wavecast.arch.systems import system
from wavecast.errors import NothingAnalysed, UnknownName, UsageError
from wavecast.perfmodel.ops.attention import Attention
from wavecast.perfmodel.ops.convolution import Convolution
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.reduction import Reduction
from wavecast.systems.sources.answer import answer
from wavecast.systems.sources.calls import ModuleGraph, OperatorCall, TensorSizes
from wavecast.systems.sources.fusion import fuse_graph
from wavecast.systems.sources.kernels import parts_of
from wavecast.systems.sources.part import SameBytes, UnknownOperator


def tensor(*shape: int, dtype: str = "bf16", storage: int = -1) -> TensorSizes:
    return TensorSizes.contiguous(shape, dtype, storage)


def call(name: str, result: TensorSizes, **arguments: object) -> OperatorCall:
    given = [value for value in arguments.values() if isinstance(value, TensorSizes)]
    return OperatorCall(name, tuple(given), (result,), arguments)


def only(one: OperatorCall):
    (part,) = parts_of(one)
    return part.op


def test_a_product_with_a_bias_takes_the_sizes_of_its_matrices() -> None:
    sizes = {"self": tensor(64), "mat1": tensor(32, 16), "mat2": tensor(16, 64)}
    assert only(call("aten.addmm", tensor(32, 64), **sizes)) == Gemm(
        m=32, n=64, k=16, dtype="bf16", bias=True, library="blas", transposed="TT"
    )


@pytest.mark.parametrize(
    ("name", "shape", "dim", "expected"),
    [
        ("aten.sum", (), None, Reduction(1, 64 * 32 * 16, "bf16")),
        ("aten.sum", (64, 32), [-1], Reduction(2048, 16, "bf16")),
        ("aten.mean", (32, 16), [0], Reduction(512, 64, "bf16", inner=512)),
        ("aten.amax", (64, 16), 1, Reduction(1024, 32, "bf16", inner=16)),
        ("aten.argmax", (64, 32), 2, Reduction(2048, 16, "bf16", function="argmax")),
    ],
)
def test_reductions_know_what_lies_between_their_elements(
    name: str, shape: tuple[int, ...], dim: object, expected: Reduction
) -> None:
    assert only(call(name, tensor(*shape), self=tensor(64, 32, 16), dim=dim)) == expected


@pytest.mark.parametrize(
    ("name", "masked", "library"),
    [
        ("aten.scaled_dot_product_attention", False, "sdpa"),
        ("aten.scaled_dot_product_attention", True, "sdpa_masked"),
        ("aten._scaled_dot_product_flash_attention", False, "sdpa"),
        ("aten._scaled_dot_product_efficient_attention", False, "sdpa_efficient"),
        ("aten._scaled_dot_product_efficient_attention", True, "sdpa_masked"),
        ("aten._scaled_dot_product_cudnn_attention_backward", False, "sdpa_cudnn"),
    ],
)
def test_attention_runs_what_the_operator_names(name: str, masked: bool, library: str) -> None:
    heads = tensor(2, 8, 128, 64)
    sizes = {"query": heads, "key": heads, "value": heads}
    mask = {"attn_mask": tensor(2, 1, 128, 128)} if masked else {}
    op = only(call(name, heads, **sizes, **mask))
    assert isinstance(op, Attention)
    assert op.library == library


@pytest.mark.parametrize(("transposed", "direction"), [(False, "forward"), (True, "data")])
def test_a_transposed_convolution_is_the_gradient_of_another(transposed, direction) -> None:
    sizes = {"input": tensor(2, 8, 16, 16), "weight": tensor(8, 8, 2, 2), "bias": None}
    result = tensor(2, 8, 32, 32) if transposed else tensor(2, 8, 8, 8)
    steps = {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    op = only(call("aten.convolution", result, **sizes, **steps, transposed=transposed))
    assert isinstance(op, Convolution)
    assert (op.direction, op.image) == (direction, (32, 32) if transposed else (16, 16))


def test_a_convolution_of_one_dimension_has_images_of_one_row() -> None:
    sizes = {"input": tensor(2, 80, 3000), "weight": tensor(512, 80, 3), "bias": None}
    steps = {"stride": (1,), "padding": (1,), "dilation": (1,), "groups": 1, "transposed": False}
    op = only(call("aten.convolution", tensor(2, 512, 3000), **sizes, **steps))
    assert isinstance(op, Convolution)
    assert (op.image, op.filter, op.output) == ((1, 3000), (1, 3), (1, 3000))


@pytest.mark.parametrize(
    ("exponent", "function"), [(2, "square"), (0.5, "sqrt"), (-0.5, "rsqrt"), (1.7, "pow_number")]
)
def test_powers_by_common_numbers_are_products_and_roots(exponent: float, function: str) -> None:
    rows = tensor(64, 32, dtype="fp32")
    op = only(call("aten.pow", rows, self=rows, exponent=exponent))
    assert isinstance(op, Elementwise)
    assert op.function == function


def test_an_expanded_operand_is_broadcast() -> None:
    rows = TensorSizes((64, 32), "fp32", (0, 1))
    op = only(call("aten.mul", tensor(64, 32, dtype="fp32"), self=rows, other=rows))
    assert isinstance(op, Elementwise)
    assert op.broadcast


@pytest.mark.parametrize(
    "name", ["aten.view", "aten.empty", "aten.detach", "aten._local_scalar_dense"]
)
def test_some_calls_launch_nothing(name) -> None:
    made = call(name, tensor(4, 4), self=tensor(4, 4))
    if name == "aten.view":
        made = OperatorCall(name, made.inputs, made.outputs, view=True)
    assert parts_of(made) == ()


@pytest.mark.parametrize("name", ["mylib.attention", "aten.lstm_of_tomorrow"])
def test_an_unknown_operator_is_bounded_and_listed(name) -> None:
    big = tensor(4096, 4096, storage=1)
    made = OperatorCall(name, (big,), (tensor(4096, 4096, storage=2),), flops=1e12)
    assert isinstance(only(made), UnknownOperator)
    found = answer(ModuleGraph("own", (made,)), system("mi300x"))
    (note,) = found.notes
    assert note.startswith(f"{name}: only a bound")
    assert found.total.high > 2 * found.total.value
    assert found.time.device >= 1e12 / 1.307e15


def test_a_form_that_no_table_knows_is_unknown() -> None:
    """A matrix product without its matrices."""
    assert isinstance(only(call("aten.mm", tensor(4, 4), self=tensor(4, 4))), UnknownOperator)


def test_kernels_of_nvidia_have_a_convolution_as_a_product_and_say_so() -> None:
    sizes = {"input": tensor(8, 64, 56, 56), "weight": tensor(64, 64, 3, 3), "bias": None}
    steps = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    made = call("aten.convolution", tensor(8, 64, 56, 56), **sizes, **steps, transposed=False)
    graph = ModuleGraph("conv", (made,))
    (amd,), (nvidia,) = (answer(graph, system(name)).times for name in ("mi300x", "h200"))
    assert isinstance(amd.priced.node.op, Convolution)
    assert nvidia.priced.node.op == Gemm(m=8 * 56 * 56, n=64, k=576, dtype="bf16")
    assert "implicit GEMM" in answer(graph, system("h200")).notes[0]


# --- fusion -----------------------------------------------------------------------------------


def chain() -> ModuleGraph:
    """A product, then two element-wise calls and a norm of its result, then a product."""
    size = 512

    def one(name: str, source: int, result: int, after: tuple[int, ...], **extra: object):
        read = tensor(size, size, storage=source)
        given = {"self": read, "input": read, **extra}
        return OperatorCall(
            name, (read,), (tensor(size, size, storage=result),), given, after=after,
            pointwise=name in ("aten.relu", "aten.exp"),
        )  # fmt: skip

    weight = tensor(size, size, storage=9)
    return ModuleGraph(
        "chain",
        (
            one("aten.mm", 0, 1, (), mat2=weight),
            one("aten.relu", 1, 2, (0,)),
            one("aten.exp", 2, 3, (1,)),
            one("aten.native_layer_norm", 3, 4, (2,), normalized_shape=(size,)),
            one("aten.mm", 4, 5, (3,), mat2=weight),
        ),
    )


def test_calls_between_products_are_one_kernel_that_reads_and_writes_once() -> None:
    first, middle, last = fuse_graph(chain())
    assert (first.operator, middle.operator, last.operator) == ("aten.mm", "fused", "aten.mm")
    size = 512 * 512 * 2
    assert middle.part.op == SameBytes(middle.part.name, size, size)


def test_a_result_that_a_product_reads_as_well_is_written() -> None:
    graph = chain()
    *calls, last = graph.calls
    more = OperatorCall("aten.mm", last.inputs, last.outputs, last.arguments, after=(1,))
    _, middle, *_ = fuse_graph(ModuleGraph("twice", (*calls, last, more)))
    assert middle.part.op.work().bytes_written == 2 * 512 * 512 * 2


def test_fused_is_faster_than_eager_and_names_its_rule() -> None:
    eager, compiled = (answer(chain(), system("mi300x"), name) for name in ("eager", "fusion-rule"))
    assert compiled.time.device < eager.time.device
    assert any(
        note.startswith("assumed: torch.compile by a fusion rule") for note in compiled.notes
    )


# --- time -------------------------------------------------------------------------------------


def test_small_kernels_wait_for_the_host() -> None:
    small = OperatorCall("aten.relu", (tensor(8),), (tensor(8),), pointwise=True)
    found = answer(ModuleGraph("small", (small,) * 50), system("mi300x"))
    assert found.time.host_bound
    assert found.total.value >= 50 * found.framework.call
    assert found.time.idle == pytest.approx(found.time.seconds - found.time.device)


def test_what_cannot_be_answered() -> None:
    with pytest.raises(NothingAnalysed, match="launches no kernel"):
        answer(ModuleGraph("nothing", ()), system("mi300x"))
    with pytest.raises(UsageError, match="runs on one GPU"):
        answer(chain(), system("8xmi300x"))
    with pytest.raises(UnknownName, match="engine"):
        answer(chain(), system("mi300x"), "vllm")
