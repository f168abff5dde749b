"""References on the CPU refuse what kernels do, in the same words."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.kernels.refusal import refuse  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", ops.names())
def test_dtypes_of_every_tensor(name: str) -> None:
    operator = ops.operator(name)
    for label, value in operator.inputs(Make(), **operator.cases[0]).items():
        if not isinstance(value, torch.Tensor):
            continue
        given = operator.inputs(Make(), **operator.cases[0])
        given[label] = torch.zeros(value.shape, dtype=torch.complex64)
        with pytest.raises(ArgumentError, match=r"complex64|different dtypes"):
            getattr(torch.ops.wavecast, name)(**given)


@pytest.mark.parametrize("name", ops.names())
def test_what_is_right_comes_to_its_first_launch(name: str) -> None:
    operator = ops.operator(name)
    for sizes in operator.cases:
        refuse(operator, operator.inputs(Make(values=operator.needs_values), **sizes))


ANY_SHAPE = {
    ("dropout", "x"),
    ("embedding", "indices"),
    ("gelu", "x"),
    ("quantise_fp8_tensor", "x"),
    ("quantise_int8_tensor", "x"),
    ("relu_squared", "x"),
    ("silu", "x"),
}
"""Tensors that may have any shape. Every other tensor has shapes that are refused."""


@pytest.mark.parametrize("name", ops.names())
def test_shapes_of_every_tensor(name: str) -> None:
    """A shape that a call does not refuse is one that the reference computes with."""
    operator = ops.operator(name)
    values = operator.inputs(Make(values=True), **operator.cases[0])
    for label, value in values.items():
        if not isinstance(value, torch.Tensor):
            continue
        refused = 0
        for other in (
            torch.zeros((), dtype=value.dtype),
            value[None],
            *((value[:0], value[..., :0], value[..., :1], value[0]) if value.dim() else ()),
        ):
            given = {**values, label: other}
            try:
                refuse(operator, given)
            except ArgumentError:
                refused += 1
                continue
            try:
                operator.reference(**given)
            except IndexError:  # no call checks the values of indices
                assert other.numel() == 0
        assert (refused == 0) == ((name, label) in ANY_SHAPE), label


def test_mistakes_of_an_operator_are_not_taken_for_the_lack_of_data() -> None:
    def called(look: Callable[[Any], object]) -> None:
        refuse(replace(ops.operator("silu"), call=look), {"x": torch.ones(3)})

    for look in (lambda x: x.sum().item(), lambda x: x.tolist(), lambda x: bool(x.any())):
        called(look)
    for broken, kind in (
        (lambda x: x.no_such_thing, AttributeError),
        (lambda x: x.view(2), RuntimeError),
        (lambda x: x.shape[3], IndexError),
    ):
        with pytest.raises(kind):
            called(broken)


def test_shapes() -> None:
    x, words = torch.randn(2, 8), r"rms_norm: weight is 1, expected 8"
    with pytest.raises(ArgumentError, match=words):
        ops.rms_norm(x, torch.ones(1))
    with pytest.raises(ArgumentError, match=words), wavecast.device("gfx942"):
        ops.rms_norm(x, torch.ones(1))


def test_float64_is_for_references() -> None:
    x = torch.randn(2, 8, dtype=torch.float64)
    assert ops.silu(x).dtype == torch.float64
    with pytest.raises(ArgumentError, match="x is float64"), wavecast.device("gfx942"):
        ops.silu(x)


def test_devices() -> None:
    """A launch goes to one device; where the others lie is said for each."""
    from wavecast.frameworks.torch.library import device_of

    x, elsewhere = torch.randn(2, 8), torch.empty(8, device="meta")
    with pytest.raises(ArgumentError, match=r"rms_norm: .*x on cpu, weight on meta"):
        device_of("rms_norm", {"x": x, "weight": elsewhere})
    assert device_of("rms_norm", {"x": x, "weight": None, "eps": 1e-6}) == x.device


def test_results_share_no_memory_with_arguments() -> None:
    x = torch.randn(4)
    y = ops.dropout(x, 0.0, 1)
    assert torch.equal(x, y)
    assert x.data_ptr() != y.data_ptr()


@pytest.mark.parametrize("emulated", [False, True])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("causal_conv1d", (torch.empty(2, 3, 0), torch.randn(3, 4))),
        ("embedding_backward", (torch.empty(5, 0), torch.arange(5), 7)),
        ("group_norm", (torch.empty(0, 4, 2), 2)),
        ("rope", (torch.empty(3, 0, 8), torch.randn(3, 1, 8), torch.ones(3, 4), torch.ones(3, 4))),
    ],
)
def test_nothing_of_something(name: str, given: tuple[object, ...], emulated: bool) -> None:
    with wavecast.device("gfx942") if emulated else contextlib.nullcontext():
        found = getattr(torch.ops.wavecast, name)(*given)
    assert all(one.isfinite().all() for one in ((found,) if hasattr(found, "dim") else found))


def test_strides_of_small_arguments() -> None:
    """Those of a sink, of slopes and of starts, which no kernel is told."""
    gap = torch.randn(4, 2)[:, 0]
    q = torch.randn(1, 5, 4, 16)
    starts = torch.tensor([[0, 9], [2, 9], [5, 9]], dtype=torch.int32)[:, 0]
    given = {"causal": True, "sinks": gap, "alibi": gap.square()}
    expected = ops.attention(q, q, q, **given)[0]
    packed = (starts, starts, 3, 3)
    others = ops.attention_varlen(q[0], q[0], q[0], *packed, **given)[0]
    with wavecast.device("gfx942"):
        torch.testing.assert_close(ops.attention(q, q, q, **given)[0], expected)
        torch.testing.assert_close(
            ops.attention_varlen(q[0], q[0], q[0], *packed, **given)[0], others
        )


def test_what_is_written_shares_no_memory() -> None:
    rows, words = torch.randn(2, 3), "expanded: elements of it share memory"
    with pytest.raises(ArgumentError, match=f"state is {words}"):
        ops.causal_conv1d_update(rows, torch.zeros(1, 3, 3).expand(2, 3, 3), torch.randn(3, 4))
    cache = torch.zeros(1, 16, 1, 8).expand(4, 16, 1, 8)
    new, slots = torch.randn(2, 1, 8), torch.tensor([0, 17])
    with pytest.raises(ArgumentError, match=f"cache of key is {words}"):
        ops.kv_cache_write(new, new, cache, torch.zeros(4, 16, 1, 8), slots)
    q = torch.randn(3, dtype=torch.float32).expand(5, 3)
    torch.testing.assert_close(ops.silu(q), torch.nn.functional.silu(q))
