"""Calls that repeat a signature are replayed, and what differs is not taken for the same."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import wavecast  # noqa: E402
from tests.targets import thorough_beyond  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.frameworks.torch import library, replay  # noqa: E402
from wavecast.frameworks.torch.tape import RecordedCall, Unreplayable, record  # noqa: E402
from wavecast.kernels import choice  # noqa: E402
from wavecast.kernels.norm import rows  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402

pytestmark = pytest.mark.torch
COLUMNS = 96


@pytest.fixture(autouse=True)
def nothing_recorded() -> Iterator[None]:
    replay.forget()
    yield
    replay.forget()


@pytest.fixture
def gpu() -> Iterator[Any]:
    with wavecast.device("gfx942", pytorch=False) as hooks:
        yield hooks


def numbers(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def rms(x: Any, weight: Any) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)


def recorded(name: str) -> int:
    return len(replay.repeated_calls(name))


def repeated(x: Any, weight: Any, times: int = 3) -> Any:
    for _ in range(times - 1):
        ops.rms_norm(x, weight)
    return ops.rms_norm(x, weight)


@pytest.mark.parametrize("call", [ops.rms_norm, torch.ops.wavecast.rms_norm])
def test_the_third_call_is_replayed_with_its_own_tensors(gpu: Any, call: Any) -> None:
    weight = numbers(COLUMNS)
    x = found = torch.empty(0)
    for number in range(4):
        x = torch.randn(5, COLUMNS)
        found = call(x, weight)
        torch.testing.assert_close(found, rms(x, weight), rtol=1e-5, atol=1e-5)
        assert recorded("rms_norm") == (number > 0)
    assert gpu.executed == 4
    torch.testing.assert_close(call(x, weight=weight), found, rtol=0, atol=0)
    assert recorded("rms_norm") == 1


def test_other_dtypes_shapes_strides_alignments_and_numbers_are_other_signatures(gpu: Any) -> None:
    weight, x = numbers(COLUMNS), numbers(6, COLUMNS)
    repeated(x, weight)
    memory = numbers(6 * 2 * COLUMNS + 1)
    others = (
        numbers(7, COLUMNS),
        memory[: 6 * 2 * COLUMNS].view(6, 2 * COLUMNS)[:, :COLUMNS],
        memory[1 : 6 * COLUMNS + 1].view(6, COLUMNS),  # four bytes from 16
        numbers(6, COLUMNS).t().contiguous().t(),
    )
    for count, other in enumerate(others, 2):
        found = repeated(other, weight)
        torch.testing.assert_close(found, rms(other, weight), rtol=1e-5, atol=1e-5)
        assert recorded("rms_norm") == count
    found = [ops.rms_norm(x, weight, 0.5) for _ in range(3)]
    assert not torch.equal(found[2], ops.rms_norm(x, weight))
    assert torch.equal(found[0], found[2])


def test_results_are_new_and_nothing_is_kept(gpu: Any) -> None:
    x, weight = numbers(5, COLUMNS), numbers(COLUMNS)
    one, other = repeated(x, weight), ops.rms_norm(x, weight)
    assert one.data_ptr() != other.data_ptr()
    references = [weakref.ref(each) for each in (one, other, x)]
    del one, other, x
    assert [reference() for reference in references] == [None] * 3


def test_arguments_that_are_one_tensor_are_not_taken_for_two(gpu: Any) -> None:
    x, other = numbers(5, COLUMNS), torch.ones(5, COLUMNS)
    same, *_ = [ops.rms_norm_residual(x, x) for _ in range(3)]
    assert recorded("rms_norm_residual") == 0
    torch.testing.assert_close(same[1], 2 * x)
    *_, found = [ops.rms_norm_residual(x, other) for _ in range(3)]
    torch.testing.assert_close(found[1], x + 1)
    torch.testing.assert_close(ops.rms_norm_residual(x, x)[1], 2 * x)


def test_gradients_are_recorded_where_they_are_wanted(gpu: Any) -> None:
    x, weight = numbers(5, COLUMNS), numbers(COLUMNS)
    repeated(x, weight)
    leaf = x.clone().requires_grad_()
    ops.rms_norm(leaf, weight).sum().backward()
    right = x.clone().requires_grad_()
    rms(right, weight).sum().backward()
    torch.testing.assert_close(leaf.grad, right.grad, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        assert not ops.rms_norm(leaf, weight).requires_grad
    grad = torch.func.grad(lambda each: ops.rms_norm(each, weight).sum())(x)
    torch.testing.assert_close(grad, right.grad, rtol=1e-4, atol=1e-4)
    several = torch.vmap(lambda each: ops.rms_norm(each, weight))(x[None].repeat(2, 1, 1))
    torch.testing.assert_close(several[1], rms(x, weight), rtol=1e-5, atol=1e-5)


def test_who_watches_pytorch_sees_repeated_calls(gpu: Any) -> None:
    x, weight = numbers(5, COLUMNS), numbers(COLUMNS)
    repeated(x, weight)
    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    with Watch():
        ops.rms_norm(x, weight)
    assert seen == ["wavecast::rms_norm"]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ops.rms_norm(x, weight)
    assert "wavecast::rms_norm" in {event.name for event in profile.events()}
    with FakeTensorMode() as mode:
        fake = ops.rms_norm(mode.from_tensor(x), mode.from_tensor(weight))
    assert type(fake).__name__ == "FakeTensor"
    compiled = torch.compile(lambda one: ops.rms_norm(one, weight), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), rms(x, weight), rtol=1e-5, atol=1e-5)


def test_decisions_are_watched_and_forced_all_the_same(gpu: Any) -> None:
    x, weight = numbers(5, COLUMNS), numbers(COLUMNS)
    repeated(x, weight)
    with choice.record_decisions() as decisions:
        ops.rms_norm(x, weight)
    (decision,) = decisions
    other = next(
        one for one in rows.FORWARD.ranked(decision.problem, decision.device)
        if one != decision.configuration
    )  # fmt: skip
    with choice.forced(decision.spec.name, other), choice.record_decisions() as decisions:
        ops.rms_norm(x, weight)
    assert decisions[0].source == "forced"
    assert recorded("rms_norm") == 1
    choice.forget()
    assert recorded("rms_norm") == 0


def test_the_negative_of_memory_is_not_replayed_as_the_memory(gpu: Any) -> None:
    x = torch.view_as_complex(numbers(5, COLUMNS, 2)).conj().imag
    assert x.is_neg()
    positive = torch.view_as_real(x.resolve_neg() + 0j)[..., 0]
    assert positive.stride() == x.stride()
    for _ in range(3):
        ops.silu(positive)
    torch.testing.assert_close(ops.silu(x), torch.nn.functional.silu(x), rtol=1e-5, atol=1e-5)


def test_another_device_compiles_for_itself() -> None:
    x, weight = numbers(5, COLUMNS), numbers(COLUMNS)
    for target in ("gfx942", "gfx1100", "gfx942"):
        with wavecast.device(target, pytorch=False) as hooks:
            found = repeated(x, weight)
            assert hooks.executed == 3
        torch.testing.assert_close(found, rms(x, weight), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ops.rms_norm(x, weight), rms(x, weight), rtol=1e-5, atol=1e-5)


def test_replays_are_checked() -> None:
    reports = Reports()
    with wavecast.device("gfx942", check=reports) as hooks:
        for _ in range(3):
            ops.silu(numbers(4, COLUMNS))
        assert recorded("silu") == 1
        assert not reports.errors
        before = hooks.executed
        ops.silu(torch.empty(4, COLUMNS))
    assert hooks.executed == before + 1
    assert "memory never" in reports.errors[0].message


def test_a_call_that_reads_data_is_not_replayed() -> None:
    x = numbers(4)

    def reads(x: Any) -> Any:
        return x * x[0].item()

    def remembers(x: Any, known: Any = torch.ones(4)) -> Any:  # noqa: B008
        return x + known

    def moves(x: Any) -> Any:
        return torch.as_strided(x, (2,), (1,), 1).clone()

    for call, why in (
        (reads, "aten::_local_scalar_dense looks at data"),
        (remembers, "aten::add is of a tensor the call did not make"),
        (moves, "aten::as_strided at an offset into memory"),
    ):
        result, found = record(call, {"x": x}, [x])
        assert torch.equal(result, call(x))
        assert found == Unreplayable(why)


def test_what_pytorch_computes_is_repeated() -> None:
    def call(x: Any, parts: Any) -> Any:
        wide = torch.cat([x.reshape(-1, 2).t().contiguous(), *parts], dim=1)
        return wide.sum(0), torch.zeros_like(x).add_(x[1:2])

    given = {"x": numbers(4), "parts": [numbers(2, 1), numbers(2, 2)]}
    _, found = record(call, given, [given["x"], *given["parts"]])
    assert isinstance(found, RecordedCall)
    other = {"x": torch.arange(4.0), "parts": [torch.ones(2, 1), torch.zeros(2, 2)]}
    for one, right in zip(found.run([other["x"], *other["parts"]]), call(**other), strict=True):
        assert torch.equal(one, right)


def test_the_oldest_signature_is_forgotten(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_SIGNATURES", 2)
    weight = numbers(COLUMNS)
    for count in (1, 2, 3):
        repeated(numbers(count, COLUMNS), weight, times=2)
    assert recorded("rms_norm") == 2


UNREPLAYABLE = {
    "adamw_foreach": "reads a tensor the call did not make",
    "convolution_backward_weight": "returns something else than tensors",
}
"""Operators whose Python looks at more than the signature, and how the reason ends."""


@pytest.mark.parametrize(
    "name",
    thorough_beyond(("rms_norm_backward", "matmul", "kv_cache_write"), ops.names()),
)
def test_replayed_launches_are_those_of_prepared_calls(name: str) -> None:
    operator = ops.operator(name)
    seen: list[Any] = []
    with wavecast.device("gfx942", pytorch=False) as hooks:
        hooks.driver.on_launch = lambda kernel, grid, values: seen.append(
            (kernel.name, grid, [_described(one) for one in values])
        )
        for sizes in operator.cases:
            given = operator.inputs(Make(), **sizes)
            for _ in range(3):
                library.function(name)(**given)
            count = len(seen) // 3
            assert seen[:count] == seen[count : 2 * count] == seen[2 * count :]
            seen.clear()
        if name in UNREPLAYABLE:
            (reason,) = replay.refusals()[name]
            assert reason.endswith(UNREPLAYABLE[name])
        else:
            assert recorded(name) == len(operator.cases)


def _described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.numel(), value.data_ptr() % 16
    if isinstance(value, tuple):
        return tuple(map(_described, value))
    if hasattr(value, "block_shape"):
        return value.shape, value.strides, value.block_shape, _described(value.base)
    return value
