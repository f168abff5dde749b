"""`cuda` on the CPU: what a program sees inside, and that nothing is left behind."""

from __future__ import annotations

import math
import threading
import warnings

import pytest

from tests.runtimes.conftest import GFX942, SM_90
from wavecast.runtimes.torch_cpu import emulated_cuda, products

torch = pytest.importorskip("torch")
from torch._subclasses import CrossRefFakeMode  # noqa: E402
from torch.utils._python_dispatch import return_and_correct_aliasing  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning"),
]

HERE = torch.device("cuda", 0)


@pytest.fixture
def cuda():
    with emulated_cuda(GFX942, lambda text: None):
        yield


MAKERS = {
    "factory": lambda: torch.empty(4, device="cuda"),
    "ordinal": lambda: torch.zeros(4, device="cuda:0"),
    "device object": lambda: torch.randn(4, device=torch.device("cuda")),
    "from a list": lambda: torch.tensor([1, 2], device="cuda"),
    "like": lambda: torch.empty_like(torch.ones(2), device="cuda"),
    "new": lambda: torch.ones(2).new_empty((3,), device=HERE),
    "to a name": lambda: torch.ones(2).to("cuda"),
    "to an ordinal": lambda: torch.ones(2).to(0),
    "to a device and type": lambda: torch.ones(2).to(HERE, torch.float16),
    "to another's device": lambda: torch.ones(2).to(torch.ones(1).device, non_blocking=True),
    "cuda()": lambda: torch.ones(2).cuda(),
    "pinned": lambda: torch.ones(2, pin_memory=True).cuda(non_blocking=True),
    "generator": lambda: torch.rand(
        2, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1)
    ),
    "module": lambda: next(torch.nn.Linear(2, 2).to("cuda").parameters()),
    "module made there": lambda: next(torch.nn.Linear(2, 2, device="cuda").parameters()),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_way_to_a_gpu_tensor(cuda, make):
    tensor = make()
    assert tensor.is_cuda
    assert tensor.device == HERE
    assert tensor.get_device() == 0
    assert not tensor.is_cpu
    assert tensor.data_ptr()


def test_numbers_of_devices_are_those_of_the_emulated_gpu(cuda):
    assert torch.device(0) == torch.device(HERE) == HERE
    assert torch.device("cpu").type == "cpu"
    assert torch.device(type="cuda", index=1) == torch.device(1)
    assert torch.ones(2, device=torch.device(0)).is_cuda


def test_threads_see_the_emulated_gpu(cuda):
    tensors = []
    thread = threading.Thread(target=lambda: tensors.append(torch.ones(2, device="cuda")))
    thread.start()
    thread.join()
    assert [tensor.device for tensor in tensors] == [HERE]


def test_device_contexts_and_defaults(cuda):
    with torch.device("cuda"):
        assert torch.ones(2).is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.ones(2).sum() == 2
    finally:
        torch.set_default_device(None)
    with torch.cuda.device(0), torch.autocast("cuda", dtype=torch.bfloat16):
        product = torch.ones(4, 4, device="cuda") @ torch.ones(4, 4, device="cuda")
    assert product.dtype == torch.bfloat16


def test_backward_of_custom_functions_runs_on_the_emulated_gpu(cuda):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            assert gradient.is_cuda
            return torch.full(gradient.shape, 2.0, device="cuda") * gradient

    x = torch.ones(3, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    (again,) = torch.autograd.grad(Double.apply(x).sum(), x)
    assert again.tolist() == [2, 2, 2]


def test_custom_operators_for_cuda_run(cuda):
    @torch.library.custom_op("wavecast_test::twice", mutates_args=(), device_types="cuda")
    def twice(x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        return torch.empty_like(x, device="cuda").copy_(x * 2)

    assert twice(torch.ones(2, device="cuda")).tolist() == [2, 2]


def test_opcheck_of_an_operator_for_cuda(cuda):
    fragment = torch.library.Library("wavecast_checked", "DEF")
    try:
        fragment.define("twice(Tensor x) -> Tensor")

        @torch.library.register_fake("wavecast_checked::twice", lib=fragment)
        def _(x: torch.Tensor) -> torch.Tensor:
            assert x.is_cuda
            return torch.empty(x.shape, dtype=x.dtype, device=x.device)

        fragment.impl("twice", lambda x: torch.empty_like(x, device=x.device).copy_(x * 2), "CUDA")
        twice = torch.ops.wavecast_checked.twice.default
        results = torch.library.opcheck(twice, (torch.ones(2, device="cuda"),))
        assert set(results.values()) == {"SUCCESS"}
    finally:
        fragment._destroy()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_of_16_bits_are_rounded_once(dtype, monkeypatch):
    def kernels():
        return [torch._C._dispatch_dump(f"aten::{name}") for name in products.PRODUCTS]

    monkeypatch.setattr(products, "unsupported_dtypes", lambda: frozenset({dtype}))
    before = kernels()
    make = torch.Generator().manual_seed(1)
    a, b, c = (torch.randn(2, 96, 96, generator=make).to(dtype) for _ in range(3))
    wide = a.float(), b.float(), c.float()
    batched, alone = wide[0] @ wide[1], wide[0][0] @ wide[1][0]
    with emulated_cuda(GFX942, lambda text: None):
        weight = b[0].clone().requires_grad_()
        out = torch.nn.functional.linear(a[0], weight)
        out.backward(c[0])
        assert torch.equal(torch.bmm(a, b), batched.to(dtype))
        assert torch.equal(a[0] @ b[0], alone.to(dtype))
        assert torch.equal(
            torch.addmm(c[0], a[0], b[0], beta=2), (2 * wide[2][0] + alone).to(dtype)
        )
        assert torch.equal(torch.baddbmm(c, a, b), (wide[2] + batched).to(dtype))
        assert torch.equal(weight.grad, (wide[2][0].T @ wide[0][0]).to(dtype))
        assert (
            torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64)
        ).sum() == 8
        with pytest.raises(RuntimeError, match="same dtype"):
            torch.mm(a[0], wide[1][0])
    assert kernels() == before


def test_kernels_for_cuda_and_for_the_cpu_do_not_warn(cuda):
    fragment = torch.library.Library("wavecast_both", "DEF")
    torch.set_warn_always(True)
    try:
        fragment.define("same(Tensor x) -> Tensor")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fragment.impl("same", lambda x: x + 1, "CPU")
            fragment.impl("same", lambda x: x + 2, "CUDA")
        assert torch.ops.wavecast_both.same(torch.zeros(1)).tolist() == [2]
    finally:
        torch.set_warn_always(False)
        fragment._destroy()


def test_kernels_for_cuda_do_not_see_lone_numbers(cuda):
    seen = []

    def add(x, y, *, alpha=1):
        seen.append((type(x), type(y)))
        return torch.sub(x, y, alpha=-alpha)

    def copy(x, *, dtype=None, **kwargs):
        seen.append(type(x))
        return torch.empty(x.shape, dtype=dtype or x.dtype, device="cuda").fill_(7)

    fragment = torch.library.Library("aten", "IMPL")
    try:
        fragment.impl("add.Tensor", add, "CUDA")
        fragment.impl("_to_copy", copy, "CUDA")
        total = torch.add(0.1, 0.2, alpha=2)
        assert (total.dtype, total.item()) == (torch.float32, pytest.approx(0.5))
        assert torch.add(1, 2).dtype == torch.int64
        assert torch.ops.aten._to_copy(0.1, dtype=torch.float64).item() == 0.1
        assert seen == []
        assert torch.add(torch.ones(2, device="cuda"), 2).tolist() == [3, 3]
        assert torch.ones(2).to(torch.bfloat16).tolist() == [7, 7]
        assert len(seen) == 2
    finally:
        fragment._destroy()


def test_queries_describe_the_target(cuda):
    properties = torch.cuda.get_device_properties("cuda")
    assert torch.cuda.is_available()
    assert torch.cuda.get_device_name() == "AMD Instinct MI300X"
    assert (properties.multi_processor_count, properties.warp_size) == (304, 64)
    assert properties.gcnArchName == "gfx942"
    assert torch.cuda.get_device_capability() == (9, 4)
    assert torch.version.hip
    assert torch.version.cuda is None


def test_nvidia_looks_like_nvidia():
    with emulated_cuda(SM_90, lambda text: None):
        assert torch.version.hip is None
        assert torch.version.cuda
        assert torch.cuda.get_device_capability() == (9, 0)
        assert not hasattr(torch.cuda.get_device_properties(0), "gcnArchName")


def test_streams_events_and_memory_do_nothing(cuda):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(torch.cuda.Stream()):
        start.record()
        end.record()
    torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.manual_seed_all(0)
    torch.manual_seed(0)
    assert math.isnan(start.elapsed_time(end))
    assert torch.cuda.max_memory_allocated() == 0


def test_events_measure_what_is_executed():
    with emulated_cuda(GFX942, lambda text: None, executing=True):
        start, end, bare = (torch.cuda.Event(enable_timing=on) for on in (True, True, False))
        with pytest.raises(ValueError, match="must be recorded"):
            start.elapsed_time(end)
        start.record()
        bare = torch.cuda.current_stream().record_event(bare)
        torch.cuda.Stream().record_event(end)
        assert 0 <= start.elapsed_time(end) < 60e3
        assert math.copysign(1, end.elapsed_time(start)) == -1
        with pytest.raises(ValueError, match="enable_timing"):
            start.elapsed_time(bare)


def test_seeds_and_generator_states(cuda):
    def draw() -> list[float]:
        return torch.rand(3, device="cuda").tolist()

    torch.cuda.manual_seed(7)
    state, first = torch.cuda.get_rng_state("cuda"), draw()
    assert torch.cuda.initial_seed() == 7
    torch.cuda.manual_seed_all(7)
    assert draw() == first
    torch.cuda.set_rng_state(state)
    with torch.random.fork_rng(devices=[0]):
        assert draw() == first
    assert draw() == first
    assert draw() != first


def test_memory_and_profiler_queries(cuda):
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 0
    assert torch.cuda.mem_get_info() == (GFX942.memory_bytes, GFX942.memory_bytes)
    assert torch.cuda.get_device_properties(0).total_memory == GFX942.memory_bytes
    assert torch.cuda.get_device_properties(0).L2_cache_size == GFX942.l2_bytes
    assert torch.cuda.cudart().cudaProfilerStart() == 0
    with torch.cuda.nvtx.range("step"), torch.cuda.device(torch.device("cuda:0")):
        torch.cuda._sleep(1000)
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_histograms_of_integers(cuda, dtype):
    values = torch.tensor([[0, 1, 1], [3, 7, 4]], dtype=dtype, device="cuda")
    found = torch.histc(values, bins=4, min=0, max=4)
    assert (found.dtype, found.tolist()) == (dtype, [1, 2, 0, 2])
    assert torch.histc(values, bins=8).tolist() == [1, 2, 0, 1, 1, 0, 0, 1]
    assert torch.histc(values[0, :1], bins=2).tolist() == [0, 1]
    assert torch.histc(values.float(), bins=4, min=0, max=4).tolist() == [1, 2, 0, 2]
    with pytest.raises(RuntimeError, match="0 bins"):
        torch.histc(values, bins=0)


def test_compiled_histograms_of_integers(cuda):
    def program(values):
        return torch.histc(values, bins=4, min=0, max=4)

    compiled = torch.compile(program, backend="eager", fullgraph=True)
    found = compiled(torch.tensor([0, 1, 1, 3, 7, 4], device="cuda"))
    assert (found.dtype, found.tolist()) == (torch.int64, [1, 2, 0, 2])
    assert compiled(torch.tensor([0.5, 3.0], device="cuda")).tolist() == [1, 0, 0, 1]


def test_histograms_are_put_back():
    before = torch._C._dispatch_dump("aten::histc")
    with emulated_cuda(GFX942, lambda text: None):
        assert torch._C._dispatch_dump("aten::histc") != before
    assert torch._C._dispatch_dump("aten::histc") == before
    with pytest.raises(NotImplementedError):
        torch.histc(torch.ones(2, dtype=torch.int64), bins=2)


class Wrapped(torch.Tensor):
    """A tensor around another, on the device that the other names."""

    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_wrapper_subclass(
            cls, data.shape, dtype=data.dtype, device=data.device
        )

    def __init__(self, data):
        self.data_ = data

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        found = cls(func(args[0].data_))
        return return_and_correct_aliasing(func, args, kwargs or {}, found)


def test_tensors_that_wrap_others_share_their_storage(cuda):
    parameter = torch.nn.Parameter(Wrapped(torch.ones(3, device="cuda")), requires_grad=False)
    assert isinstance(parameter, Wrapped)
    assert parameter.device == HERE


def test_everything_is_put_back():
    names = [name for name in dir(torch.cuda) if not name.startswith("__")]
    owners = [
        *((torch.cuda, name) for name in names),
        (torch, "Generator"),
        (torch, "load"),
        (torch, "allclose"),
        (torch.version, "hip"),
        (torch.version, "cuda"),
        (torch.library, "custom_op"),
        (torch.library.Library, "_register_fake"),
        (CrossRefFakeMode, "__torch_dispatch__"),
        (torch.testing, "assert_close"),
        (torch.autograd, "_engine_run_backward"),
        (torch.Tensor, "allclose"),
    ]
    before = [getattr(owner, name) for owner, name in owners]
    with pytest.raises(KeyError), emulated_cuda(GFX942, lambda text: None):
        raise KeyError
    after = [getattr(owner, name) for owner, name in owners]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert torch.ones(2).device.type == "cpu"
    assert "is_cuda" in dir(torch.ones(2))


def test_comparisons_hold_until_something_was_not_computed():
    launched = []
    notes = []
    with emulated_cuda(GFX942, notes.append, lambda: bool(launched)):
        with pytest.raises(AssertionError):
            torch.testing.assert_close(torch.ones(2), torch.zeros(2))
        launched.append(1)
        torch.testing.assert_close(torch.ones(2), torch.zeros(2))
        assert torch.allclose(torch.ones(2), torch.zeros(2))
    assert len(set(notes)) == 1
    assert "taken as passed" in notes[0]
