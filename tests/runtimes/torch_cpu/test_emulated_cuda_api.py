"""What foreign and generated code asks of an emulated GPU: guards, bindings, generators, facts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from tests.runtimes.conftest import GFX942, SM_90  # noqa: E402
from wavecast import arch  # noqa: E402
from wavecast.runtimes.devices import facts_of  # noqa: E402
from wavecast.runtimes.torch_cpu import emulated_cuda  # noqa: E402
from wavecast.runtimes.torch_cpu.random import CudaGenerator  # noqa: E402
from wavecast.runtimes.triton.driver import CaptureUtils  # noqa: E402

pytestmark = pytest.mark.torch

LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset

values = TensorDataset(torch.arange(8.0))
batches = DataLoader(values, batch_size=4, num_workers=1, multiprocessing_context="fork")
print(sum(batch.cuda().sum().item() for (batch,) in batches))
"""


@pytest.fixture
def cuda() -> Iterator[None]:
    with emulated_cuda(GFX942, lambda text: None):
        yield


@pytest.mark.usefixtures("cuda")
def test_guards_and_bindings() -> None:
    with torch.cuda._DeviceGuard(0):
        assert torch.cuda.current_device() == 0
    assert torch.cuda._exchange_device(0) == torch.cuda._maybe_exchange_device(0) == 0
    assert torch._C._cuda_getCurrentRawStream(0) == 0
    assert torch._C._cuda_getDevice() == 0


def test_bindings_are_removed() -> None:
    before = set(dir(torch._C))
    with emulated_cuda(GFX942, lambda text: None):
        assert "_cuda_getCurrentRawStream" in dir(torch._C)
    assert set(dir(torch._C)) == before


@pytest.mark.usefixtures("cuda")
def test_the_state_of_a_gpu_generator_is_seed_and_offset() -> None:
    torch.cuda.manual_seed(11)
    generator = torch.cuda.default_generators[0]
    state = torch.cuda.get_rng_state()
    assert (state.dtype, state.numel()) == (torch.uint8, 16)
    assert state.view(torch.int64).tolist() == [11, 0]
    first = torch.rand(4, device="cuda")
    later = generator.get_state().view(torch.int64).tolist()
    assert later[0] == 11
    assert later[1] > 0
    assert later[1] % 4 == 0
    second = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(4, device="cuda"), first)
    assert torch.equal(torch.rand(4, device="cuda"), second)
    with pytest.raises(RuntimeError, match="wrong size"):
        torch.cuda.set_rng_state(torch.get_rng_state())


@pytest.mark.usefixtures("cuda")
def test_reading_a_state_changes_no_numbers() -> None:
    torch.cuda.manual_seed(3)
    expected = [torch.rand(2, device="cuda") for _ in range(3)]
    torch.cuda.manual_seed(3)
    for value in expected:
        torch.cuda.get_rng_state()
        assert torch.equal(torch.rand(2, device="cuda"), value)


@pytest.mark.usefixtures("cuda")
def test_an_offset_that_a_program_sets() -> None:
    def philox(increment: int) -> tuple[int, int]:
        """As kernel libraries reserve numbers for a kernel."""
        generator = torch.cuda.default_generators[0]
        state = generator.get_state()
        numbers = state.view(torch.int64)
        seed, offset = numbers.tolist()
        numbers[1] += increment
        generator.set_state(state)
        return seed, offset

    torch.cuda.manual_seed(5)
    assert philox(8) == (5, 0)
    assert philox(4) == (5, 8)
    assert torch.cuda.initial_seed() == 5
    assert torch.cuda.default_generators[0].get_offset() == 12
    drawn = torch.rand(3, device="cuda")
    torch.cuda.default_generators[0].set_offset(12)
    assert torch.equal(torch.rand(3, device="cuda"), drawn)


@pytest.mark.usefixtures("cuda")
def test_generators_of_the_gpu() -> None:
    generator = torch.Generator(device="cuda").manual_seed(1)
    assert isinstance(generator, torch.Generator)
    assert generator.device == torch.device("cuda", 0)
    state = generator.get_state()
    first = torch.randn(4, device="cuda", generator=generator)
    other = generator.clone_state()
    generator.set_state(state)
    assert torch.equal(torch.randn(4, device="cuda", generator=generator), first)
    assert torch.equal(
        torch.randn(4, device="cuda", generator=generator),
        torch.randn(4, device="cuda", generator=other),
    )
    assert isinstance(torch.Generator(), torch.Generator)
    assert not isinstance(torch.Generator(), CudaGenerator)


@pytest.mark.usefixtures("cuda")
def test_the_oldest_states_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wavecast.runtimes.torch_cpu.random._KEPT", 3)
    generator = CudaGenerator()
    for _ in range(20):
        torch.rand(1, device="cuda", generator=generator)
        generator.get_state()
    assert len(generator._states) == len(generator._named) == 3


def test_clocks_and_bus_of_tritons_driver() -> None:
    found = CaptureUtils(facts_of(arch.load("mi300x"))).get_device_properties(0)
    assert found["sm_clock_rate"] == 2_100_000
    assert found["mem_bus_width"] == 8192
    with wavecast.device("gfx942"):
        assert triton.testing.get_dram_gbps() == pytest.approx(5325, rel=1e-4)
    unknown = CaptureUtils(SM_90).get_device_properties(0)
    assert not {"mem_bus_width", "mem_clock_rate", "sm_clock_rate"} & unknown.keys()


@pytest.mark.usefixtures("cuda")
def test_fake_tensors_are_of_the_gpu() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.empty(3, device="cuda"))
        assert fake.device == torch.full_like(fake, 2.0).device == torch.device("cuda", 0)
        assert torch.empty(2, device="meta").device.type == "meta"
        whole = torch.ones(3, 4, device="cuda").T  # results of calls, and results of those
        parts = whole[1:, ::2], whole.contiguous(), whole.new_tensor([1.0]), whole[None] @ whole.T
        assert {part.device for part in parts} == {torch.device("cuda", 0)}
        whole[0, 0] = whole.copy_(whole + 1)[1, 1]


def test_workers_of_a_data_loader_send_batches(tmp_path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loader.py"
    path.write_text(LOADER)
    for gpus in (1, 2):
        done = wavecast.run(path, gpus=gpus, once=gpus > 1)
        assert (done.code, done.traceback) == (0, "")
        assert capfd.readouterr().out == "28.0\n"
    assert "_new_shared" not in vars(torch.UntypedStorage)


def test_operators_stay_when_other_gpus_are_emulated() -> None:
    devices: list[str] = []

    def note(x: torch.Tensor) -> torch.Tensor:
        devices.append(str(x.device))
        return x.clone()

    with wavecast.device("gfx942"):
        operator = torch.library.custom_op("wavecast_tests::note", mutates_args=())(note)
        operator(torch.ones(1, device="cuda"))
    with wavecast.device("gfx950", count=2):
        operator(torch.ones(1, device="cuda:1"))
    operator(torch.ones(1))
    assert devices == ["cuda:0", "cuda:1", "cpu"]
