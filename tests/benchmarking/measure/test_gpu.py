"""Measuring on a GPU, with a fake one (`fake_gpu`): turns, rotation, graphs, refusals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import wavecast
import wavecast.arch
from tests.benchmarking.measure import fake_gpu
from tests.benchmarking.measure.fake_gpu import FakeGpu
from wavecast.benchmarking.environment import new_run
from wavecast.benchmarking.measure import gpu
from wavecast.benchmarking.measure.gpu_environment import LocalGpuState, here
from wavecast.benchmarking.measure.gpu_session import gpu_session
from wavecast.benchmarking.measure.sampling import SamplingBudget
from wavecast.benchmarking.measure.session import SessionResult
from wavecast.benchmarking.measure.workload import FunctionWorkload, OperatorWorkload
from wavecast.benchmarking.records import BenchRecord
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.kernels import registry
from wavecast.perfmodel.bounds import Work
from wavecast.runtimes.gpu.inputs import MakeThere
from wavecast.runtimes.gpu.timing import Stopwatch

pytestmark = pytest.mark.torch

QUICK = SamplingBudget(seconds=0.5, samples=30, relative=1e-9)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    with FakeGpu().present(monkeypatch) as present:
        yield present


def measured(
    *operators: Any, settings: gpu.GpuSettings | None = None, store: Any = None
) -> SessionResult:
    workloads = [OperatorWorkload(one, {"count": 64}) for one in operators]
    settings = settings or gpu.GpuSettings(budget=QUICK)
    return gpu_session(new_run(), workloads, here(), settings, store)


def one(outcome: SessionResult) -> BenchRecord:
    assert not outcome.failed
    (record,) = outcome.records
    return record


def test_a_measured_record(fake: FakeGpu) -> None:
    record = one(measured(fake_gpu.operator(fake)))
    figure = record.figures["measured_seconds"]
    assert figure.origin == "measured"
    assert len(figure.samples) == 30
    assert figure.value == pytest.approx(1e-3, rel=0.01)
    assert record.figures["numerical_error"].value == 0
    assert record.conditions.cache == "cold"
    assert record.conditions.timing == "events"
    assert not record.refused
    assert record.environment.device == "h200"
    assert not record.environment.emulated
    assert record.environment.runtime.startswith("CUDA")
    assert record.floor_seconds == pytest.approx(2e9 / 4.8e12, rel=0.01)
    assert any("no prediction" in note for note in record.notes)  # it launches no kernel
    assert any("clocks, power and temperature are unknown" in note for note in record.notes)
    assert "throttled" not in record.sensors


def test_spinning_before_a_call_is_not_its_time(fake: FakeGpu) -> None:
    stopwatch = Stopwatch()
    before = fake.now
    assert stopwatch.seconds(lambda: fake.spend(1e-3)) == pytest.approx(1e-3, rel=0.1)
    assert fake.now - before > 2e-3


def test_cold_inputs_rotate_over_more_than_the_caches(fake: FakeGpu) -> None:
    seen: list[int] = []
    described = fake_gpu.operator(fake, bytes_of_inputs=40 << 20)
    prepared = gpu.prepare(
        OperatorWorkload(described, {"count": 64}),
        gpu.GpuSettings(budget=QUICK, verify=False),
        here(),
        Stopwatch(),
    )
    closure = prepared.seconds.__closure__
    assert closure is not None
    (found,) = [
        cell.cell_contents for cell in closure if isinstance(cell.cell_contents, gpu.RoundRobin)
    ]
    assert len(found.calls) * (40 << 20) > 2 * gpu.cache_bytes(here())
    found.calls = [lambda n=n: seen.append(n) for n in range(len(found.calls))]
    for _ in range(2 * len(found.calls)):
        found()
    assert len(set(seen[: len(found.calls)])) == len(found.calls)
    assert seen[: len(found.calls)] == seen[len(found.calls) :]


def test_small_inputs_are_flushed(fake: FakeGpu) -> None:
    record = one(measured(fake_gpu.operator(fake, bytes_of_inputs=4096)))
    assert any("flushed before each call by a write of 100 MiB" in n for n in record.notes)


def test_warm(fake: FakeGpu) -> None:
    record = one(
        measured(
            fake_gpu.operator(fake), settings=gpu.GpuSettings("warm", budget=QUICK, offline=False)
        )
    )
    assert record.conditions.cache == "warm"
    assert fake.allocated == 2 * (64 << 20)  # one to be verified, one to be timed


def test_graphs(fake: FakeGpu) -> None:
    settings = gpu.GpuSettings(timing="graph", budget=QUICK)
    record = one(measured(fake_gpu.operator(fake, seconds=2e-5, work_bytes=2e6), settings=settings))
    assert record.conditions.timing == "graph"
    assert record.figures["measured_seconds"].value == pytest.approx(2e-5, rel=0.02)
    assert fake.replays >= 30


def test_without_a_graph_events_are_used_and_said(fake: FakeGpu) -> None:
    fake.no_graphs = "operation not permitted when stream is capturing"
    record = one(
        measured(fake_gpu.operator(fake), settings=gpu.GpuSettings(timing="graph", budget=QUICK))
    )
    assert record.conditions.timing == "events"
    assert any("timed by events: cannot be captured" in note for note in record.notes)


def test_subjects_take_turns(fake: FakeGpu) -> None:
    outcome = measured(fake_gpu.operator(fake, "a"), fake_gpu.operator(fake, "b"))
    assert [record.subject.name for record in outcome.records] == ["a", "b"]
    last = [name for name in fake.calls if name][-8:]
    assert last in (["a", "b", "b", "a"] * 2, ["b", "a", "a", "b"] * 2)


def half(x: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(x)
    result[: len(x) // 2] = 2 * x[: len(x) // 2]
    return result


@pytest.mark.parametrize(
    ("wrong", "why"),
    [(half, "not finite"), (lambda x: 2 * x + 0.1, "beyond tolerance"), (lambda x: x[1:], "shape")],
)
def test_wrong_results_are_refused(fake: FakeGpu, wrong: Any, why: str) -> None:
    record = one(measured(fake_gpu.operator(fake, wrong=wrong)))
    assert record.refused.startswith("wrong result: ")
    assert why in record.refused
    assert record.figures["measured_seconds"].samples  # kept all the same


def test_faster_than_the_floor_is_refused(fake: FakeGpu) -> None:
    record = one(measured(fake_gpu.operator(fake, seconds=1e-4)))
    assert "faster than the" in record.refused


def test_a_subject_that_raises_does_not_end_the_others(fake: FakeGpu) -> None:
    broken = fake_gpu.operator(fake, "broken", raises=RuntimeError("CUDA error:\n illegal"))
    outcome = measured(broken, fake_gpu.operator(fake))
    assert [record.subject.name for record in outcome.records] == ["twice"]
    assert [failed.why for failed in outcome.failed] == ["CUDA error: illegal"]


def test_full_memory_puts_a_subject_into_the_next_group(fake: FakeGpu) -> None:
    full = [torch.cuda.OutOfMemoryError("full")]
    second = fake_gpu.operator(fake, "second")

    def inputs(make: Any, count: int, dtype: str = "float32") -> dict[str, Any]:
        if full:
            raise full.pop()
        return {"x": make.normal((count,), dtype)}

    object.__setattr__(second, "inputs", inputs)
    settings = gpu.GpuSettings(budget=QUICK, verify=False)
    outcome = measured(fake_gpu.operator(fake, "first"), second, settings=settings)
    assert not outcome.failed
    assert [record.subject.name for record in outcome.records] == ["first", "second"]


def test_a_reference_that_does_not_fit_is_said(fake: FakeGpu) -> None:
    described = fake_gpu.operator(fake)

    def reference(x: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("full")

    object.__setattr__(described, "reference", reference)
    object.__setattr__(described, "call", lambda x: fake.spend(1e-3))
    record = one(measured(described))
    assert any("the reference does not fit in memory" in note for note in record.notes)
    assert "numerical_error" not in record.figures


def test_an_interrupt_keeps_what_was_measured(fake: FakeGpu) -> None:
    described, calls = fake_gpu.operator(fake), []

    def call(x: Any) -> Any:
        calls.append(1)
        if len(calls) > 60:
            raise KeyboardInterrupt
        fake.spend(1e-3)
        return 2 * x

    object.__setattr__(described, "call", call)
    budget = SamplingBudget(seconds=5, samples=100, relative=1e-9)
    outcome = measured(described, fake_gpu.operator(fake), settings=gpu.GpuSettings(budget=budget))
    assert outcome.interrupted
    record = outcome.records[0]
    assert 1 < len(record.figures["measured_seconds"].samples) < 100
    assert any("interrupted after" in note for note in record.notes)


def test_memory_nobody_wrote_is_found_without_a_reference(
    fake: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    import types

    module = types.ModuleType("users_kernels")
    x = torch.ones(64)

    def make(part: int) -> Any:
        def call() -> Any:
            fake.spend(1e-3)
            result = torch.empty_like(x)
            result[:part] = x[:part]
            return result

        return call

    module.make = make  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "users_kernels", module)
    both = [FunctionWorkload("users_kernels:make", {"part": part}) for part in (64, 48)]
    outcome = gpu_session(new_run(), both, here(), gpu.GpuSettings(budget=QUICK))
    right, wrong = outcome.records
    assert not right.refused
    assert wrong.refused == "wrong result: 16 of 64 values of result 0 are never written"
    assert any("flushed" in note for note in right.notes)  # its tensors are its own


def test_caches_of_devices(fake: FakeGpu) -> None:
    local = here()
    assert gpu.cache_bytes(local) == 50 << 20
    mi300x = LocalGpuState(
        local.local, wavecast.arch.load("mi300x"), local.sensors, local.environment
    )
    assert gpu.cache_bytes(mi300x) >= (256 + 4) << 20
    unknown = LocalGpuState(local.local, None, local.sensors, local.environment)
    assert gpu.cache_bytes(unknown) == 256 << 20


def test_what_caches_can_hold_need_not_have_moved() -> None:
    device = wavecast.arch.load("h200")
    work = Work({}, 48e6, 48e6, "given", "given")
    ten, twenty = 10e-6, 20e-6  # at 4.8 TB/s, reading takes 10 µs and writing another 10
    assert gpu.too_fast([1.01 * ten] * 3, work, device, 50 << 20, cold=True) == ""
    assert gpu.too_fast([0.8 * ten] * 3, work, device, 50 << 20, cold=True) != ""
    assert gpu.too_fast([1.01 * ten] * 3, work, device, 0, cold=True) != ""
    assert gpu.too_fast([1.01 * twenty] * 3, work, device, 0, cold=True) == ""
    assert gpu.too_fast([0.5 * ten] * 3, work, device, 0, cold=False) == ""


@pytest.mark.parametrize(
    ("size", "taken", "free", "expected"),
    [
        (40 << 20, 40 << 20, 80 << 30, (4, False)),
        (200 << 20, 200 << 20, 80 << 30, (2, False)),
        (4096, 4096, 80 << 30, (1, True)),  # too many sets
        (40 << 20, 40 << 30, 80 << 30, (1, True)),  # results do not fit
        (50 << 30, 50 << 30, 80 << 30, (1, True)),
        (0, 0, 80 << 30, (1, True)),
    ],
)
def test_sets_of_inputs(size: int, taken: int, free: int, expected: tuple[int, bool]) -> None:
    assert gpu._sets(size, taken, 100 << 20, free) == expected


def test_a_reference_that_only_runs_on_the_host(fake: FakeGpu) -> None:
    described, tried = fake_gpu.operator(fake), []

    def reference(x: Any) -> Any:
        tried.append(x)
        if len(tried) == 1:
            raise RuntimeError("expected all tensors on the same device")
        return 2 * x

    object.__setattr__(described, "reference", reference)
    object.__setattr__(described, "call", lambda x: (fake.spend(1e-3), 2 * x)[1])
    record = one(measured(described))
    assert record.figures["numerical_error"].value == 0
    assert len(tried) == 2


def test_inputs_made_there() -> None:
    first, second = (MakeThere(3, "cpu").normal((64, 8), "bfloat16") for _ in range(2))
    assert torch.equal(first, second)
    assert first.float().std().item() == pytest.approx(1, abs=0.2)
    small = MakeThere(3, "cpu").normal((4096,), "float8_e4m3fn", 200.0).float()
    assert small.abs().max() <= 448
    assert int((small != 0).sum()) > 4000
    low = MakeThere(3, "cpu").uniform((4096,), "float16", 2.0, 3.0)
    assert 2 <= float(low.min()) <= float(low.max()) <= 3
    whole = MakeThere(3, "cpu").integers((4096,), 1, 4)
    assert set(whole.tolist()) == {1, 2, 3}


@pytest.mark.parametrize("name", ["rms_norm", "moe_route", "scaled_matmul", "cross_entropy"])
def test_operators_take_inputs_made_there(name: str) -> None:
    operator = registry.operator(name)
    given = operator.inputs(MakeThere(0, "cpu"), **operator.cases[0])
    returned = operator.reference(**given)
    returned = (returned,) if isinstance(returned, torch.Tensor) else returned
    assert all(one.numel() for one in returned)


def test_an_operator_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine code runs on the emulator, its times are the fake clock's."""
    fake, operator = FakeGpu(), registry.operator("rms_norm")

    def call(**given: Any) -> Any:
        fake.spend(1e-4, "rms_norm")
        return operator.call(**given)

    with fake.present(monkeypatch, "mi300x", kernels=True):
        watched = OperatorWorkload(
            dataclasses.replace(operator, call=call), {"rows": 4, "columns": 300}
        )
        outcome = gpu_session(new_run(), [watched], here(), gpu.GpuSettings(budget=QUICK))
    record = one(outcome)
    assert not record.refused
    assert 0 < record.figures["numerical_error"].value <= 1
    assert record.environment.device == "mi300x"
    assert record.environment.runtime.startswith("ROCm")
    assert record.figures["measured_seconds"].value == pytest.approx(1e-4, rel=0.02)


class TestDoBench:
    def test_forms(self, fake: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("wavecast.benchmarking.measure.do_bench.cache_bytes", lambda _: 1 << 10)
        call = lambda: fake.spend(2e-3)  # noqa: E731
        bench = wavecast.testing.do_bench
        assert bench(call) == pytest.approx(2, rel=0.02)
        low, high = bench(call, rep=20, quantiles=[0.2, 0.8])
        assert low < high
        assert isinstance(bench(call, rep=20, quantiles=[0.5]), float)
        samples = bench(call, rep=20, return_mode="all")
        assert len(samples) >= 10
        assert min(samples) <= bench(call, rep=20, return_mode="median") * 1.05
        with pytest.raises(UsageError, match="no return mode 'most'"):
            bench(call, return_mode="most")

    def test_gradients_are_dropped(self, fake: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("wavecast.benchmarking.measure.do_bench.cache_bytes", lambda _: 1 << 10)
        x = torch.ones(4, requires_grad=True)
        left = []

        def call() -> None:
            left.append(x.grad)
            fake.spend(1e-3)
            (2 * x).sum().backward()

        wavecast.testing.do_bench(call, rep=10, grad_to_none=[x])
        assert all(gradient is None for gradient in left[1:])

    def test_on_an_emulated_device_it_predicts(self) -> None:
        from wavecast import ops

        x, w = torch.randn(4, 64).bfloat16(), torch.randn(64).bfloat16()
        with wavecast.device("gfx942"):
            found = wavecast.testing.do_bench(lambda: ops.rms_norm(x, w))
            low, high = wavecast.testing.do_bench(lambda: ops.rms_norm(x, w), quantiles=[0.2, 0.8])
        assert math.isfinite(found)
        assert low == high == found

    @pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
    def test_without_a_gpu(self) -> None:
        with pytest.raises(NothingAnalysed, match="no GPU that PyTorch can use"):
            wavecast.testing.do_bench(lambda: None)
