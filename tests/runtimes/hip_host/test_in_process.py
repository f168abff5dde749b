"""HIP's runtime in the process of a script: modules, memory and tensors by bare addresses."""

import ctypes
import io
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from rich.console import Console

import wavecast
from tests.runtimes.hip_host.compiler import c_compiler
from tests.warm_python import run_python
from wavecast.api.explain import ExplainOptions
from wavecast.compile import hip, hip_program, process
from wavecast.compile.elf import load as load_object
from wavecast.emulate.errors import ChecksFailed, ExecutionError
from wavecast.errors import UsageError, WavecastError
from wavecast.pipeline.explain.run import explain_launches
from wavecast.report.explain.terminal_kernel import sections
from wavecast.runtimes.hip_host.argument_names import ArgumentNames, NamedArgument
from wavecast.runtimes.hip_host.in_process import serving
from wavecast.runtimes.triton import capture
from wavecast.runtimes.triton.wire import decode_launch, encode_launch

SOURCE = r"""
#include <hip/hip_runtime.h>
__device__ float factor = 2.0f;
extern "C" __global__ void scale(const float *x, float *y, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * by * factor;
}
extern "C" __global__ void gather(const float *const *rows, float *y) {
    y[blockIdx.x * 64 + threadIdx.x] = rows[blockIdx.x][threadIdx.x];
}
struct Extents { int rows, columns, stride; };
extern "C" __global__ void sized(float *y, Extents extents) { y[threadIdx.x] = extents.stride; }
struct Tensors { long pitch; const float *in; int rows; float *out; };
extern "C" __global__ void add_one(Tensors t) {
    int at = blockIdx.x * t.pitch + threadIdx.x;
    t.out[at] = t.in[at] + 1;
}
extern "C" __global__ void overrun(float *y) { y[(1 << 28) + threadIdx.x] = 1.0f; }
extern "C" __global__ void lookup(const int *index, float *y) {
    const float table[7] = {1.5f, -2.0f, 8.0f, 0.25f, 3.0f, 77.0f, -1.0f};
    y[threadIdx.x] = table[index[threadIdx.x]];
}
extern "C" __global__ void racing(float *y) {
    __shared__ float shared[64];
    shared[threadIdx.x & 63] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = shared[threadIdx.x & 63];
}
"""
CASES = [
    ("gfx942", "libamdhip64.so"),
    ("gfx1201", "libamdhip64.so.6"),
    ("gfx942", "libamdhip64.so.7"),
    ("gfx1201", "libhiprtc.so.7"),
]


@pytest.fixture(scope="module")
def images() -> dict[str, bytes]:
    def image(target: str) -> bytes:
        (code, *_) = hip.compile(SOURCE, target, program=True)
        binary = code.stages["hsaco"]
        assert isinstance(binary, bytes)
        return binary

    return {target: image(target) for target in ("gfx942", "gfx1201")}


class Hip:
    """Calls of the runtime, as a language makes them."""

    def __init__(self, image: bytes, name: str = "libamdhip64.so.7") -> None:
        self.library = ctypes.CDLL(name)
        self.module = ctypes.c_void_p()
        self.image = image
        assert self.call("hipModuleLoadData", ctypes.byref(self.module), image) == 0

    def call(self, name: str, *arguments) -> int:
        return getattr(self.library, name)(*arguments)

    def function(self, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        status = self.call(
            "hipModuleGetFunction", ctypes.byref(function), self.module, name.encode()
        )
        assert status == 0
        return function

    def launch(self, name: str, grid: int, block: int, *values) -> int:
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        return self.call(
            "hipModuleLaunchKernel", self.function(name), grid, 1, 1, block, 1, 1, 0, None,
            pointers, None,
        )  # fmt: skip


def pointer(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


@pytest.mark.parametrize(("target", "name"), CASES)
def test_tensors_are_memory_of_launches(images: dict[str, bytes], target: str, name: str) -> None:
    with wavecast.device(target) as device:
        hip = Hip(images[target], name)
        x = torch.arange(100, dtype=torch.float32, device="cuda")
        y = torch.zeros(100, device="cuda")
        values = pointer(x), pointer(y), ctypes.c_int(100), ctypes.c_float(1.5)
        assert hip.launch("scale", 2, 64, *values) == 0
    assert torch.equal(y, torch.arange(100) * 3.0)
    assert device.executed == 1


def test_allocations_variables_and_the_packed_form_of_arguments(images: dict[str, bytes]) -> None:
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
        data = np.arange(64, dtype=np.float32)
        x, y, factor = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        size = ctypes.c_size_t()
        for p in (x, y):
            assert hip.call("hipMalloc", ctypes.byref(p), ctypes.c_size_t(256)) == 0
        hip.call("hipMemcpyHtoD", x, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(256))
        hip.call(
            "hipModuleGetGlobal", ctypes.byref(factor), ctypes.byref(size), hip.module, b"factor"
        )
        assert size.value == 4
        four = ctypes.c_float(4.0)
        hip.call("hipMemcpyHtoD", factor, ctypes.byref(four), ctypes.c_size_t(4))
        segment = ctypes.create_string_buffer(
            np.array([x.value, y.value], np.uint64).tobytes()
            + np.int32(64).tobytes() + np.float32(0.5).tobytes()
        )  # fmt: skip
        length = ctypes.c_size_t(24)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(segment), 2, ctypes.addressof(length), 3)
        function = hip.function("scale")
        status = hip.call(
            "hipModuleLaunchKernel", function, 1, 1, 1, 64, 1, 1, 0, None, None, extra
        )
        assert status == 0
        result = np.zeros(64, np.float32)
        hip.call("hipMemcpyDtoH", result.ctypes.data_as(ctypes.c_void_p), y, ctypes.c_size_t(256))
        assert hip.call("hipFree", x) == hip.call("hipFree", y) == 0
    assert np.array_equal(result, data * 2)


def test_pointers_in_memory_lead_to_tensors(images: dict[str, bytes]) -> None:
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
        rows = [torch.full((64,), float(row)) for row in range(3)]
        addresses = torch.tensor([row.data_ptr() for row in rows])
        y = torch.zeros(192, device="cuda")
        assert hip.launch("gather", 3, 64, pointer(addresses), pointer(y)) == 0
    assert torch.equal(y, torch.arange(3.0).repeat_interleave(64))


def test_constants_of_code_of_other_compilers(
    images: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code reads them by their distance from the program counter, without a symbol."""
    monkeypatch.setattr(hip, "compiled_program", lambda binary: [])
    index, y = torch.arange(64, dtype=torch.int32) % 7, torch.zeros(64)
    with wavecast.device("gfx942"):
        assert Hip(images["gfx942"]).launch("lookup", 1, 64, pointer(index), pointer(y)) == 0
    table = torch.tensor([1.5, -2.0, 8.0, 0.25, 3.0, 77.0, -1.0])
    assert torch.equal(y, table[index])


def test_an_address_that_nobody_asked_for_is_looked_for(images: dict[str, bytes]) -> None:
    y = torch.zeros(64)
    x, address = torch.ones(64), y.data_ptr()  # before there is a GPU to see it
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
        values = pointer(x), ctypes.c_void_p(address), ctypes.c_int(64), ctypes.c_float(1.0)
        assert hip.launch("scale", 1, 64, *values) == 0
    assert torch.equal(y, torch.full((64,), 2.0))


def test_a_launch_that_fails_raises_where_it_is_called(images: dict[str, bytes]) -> None:
    y = torch.zeros(64)
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
        with pytest.raises(ExecutionError, match="overrun"):
            hip.launch("overrun", 1, 64, pointer(y))
        values = pointer(y), pointer(y), ctypes.c_int(64), ctypes.c_float(1.0)
        assert hip.launch("scale", 1, 64, *values) == 0


def test_profilers_of_pytorch_see_predicted_times(images: dict[str, bytes]) -> None:
    y = torch.ones(64)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
        values = pointer(y), pointer(y), ctypes.c_int(64), ctypes.c_float(1.0)
        hip.launch("scale", 1, 64, *values)
        with torch.profiler.profile(activities=activities) as watched:
            for _ in range(2):
                hip.launch("scale", 1, 64, *values)
            y.add_(1)
        with torch.profiler.profile(activities=activities[:1]) as host:
            hip.launch("scale", 1, 64, *values)
    assert torch.equal(y, torch.full((64,), 18.0))
    kernels = [e for e in watched.events() or () if str(e.device_type).endswith("CUDA")]
    assert [event.name for event in kernels] == ["scale", "scale"]
    first, second = (event.self_device_time_total for event in kernels)
    assert first == pytest.approx(second)  # differences of times in floats
    assert first > 0.1
    (total,) = (row for row in watched.key_averages() if row.key == "scale")
    assert total.self_device_time_total == pytest.approx(2 * kernels[0].self_device_time_total)
    assert not [event for event in host.events() or () if event.name == "scale"]


def test_timers_of_autotuners_predict(
    images: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("flydsl.autotune")
    module.do_bench = lambda call: -1.0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    y = torch.ones(64)
    with wavecast.device("gfx942") as device:
        hip = Hip(images["gfx942"])
        values = pointer(y), pointer(y), ctypes.c_int(64), ctypes.c_float(1.0)
        milliseconds = module.do_bench(lambda: hip.launch("scale", 1, 64, *values))
    assert 1e-4 < milliseconds < 1
    assert device.executed == 0
    assert module.do_bench(print) == -1.0


def test_checks_see_these_launches(images: dict[str, bytes]) -> None:
    y = torch.arange(128.0)
    with pytest.raises(ChecksFailed, match="race"), wavecast.device("gfx942", check=True):
        Hip(images["gfx942"]).launch("racing", 1, 128, pointer(y))


def test_calls_after_the_gpu_fail_and_another_gpu_answers(images: dict[str, bytes]) -> None:
    y = torch.ones(64)
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
    values = pointer(y), pointer(y), ctypes.c_int(64), ctypes.c_float(1.0)
    assert hip.launch("scale", 1, 64, *values) != 0
    assert torch.equal(y, torch.ones(64))
    assert hip.call("hipModuleUnload", hip.module) == 0
    with wavecast.device("gfx1201"):
        number = ctypes.c_int()
        other = Hip(images["gfx1201"])
        assert other.call("hipDeviceGetAttribute", ctypes.byref(number), 87, 0) == 0
        assert number.value == 32  # hipDeviceAttributeWarpSize
        assert other.launch("scale", 1, 64, *values) == 0
    assert torch.equal(y, torch.full((64,), 2.0))


def test_code_for_another_gpu_is_refused(images: dict[str, bytes]) -> None:
    module = ctypes.c_void_p()
    with wavecast.device("gfx950"):
        library = ctypes.CDLL("libamdhip64.so.7")
        with pytest.raises(WavecastError, match="gfx942"):
            library.hipModuleLoadData(ctypes.byref(module), images["gfx942"])
        bundled = hip_program.make_bundle(images["gfx942"], "gfx942")
        with pytest.raises(WavecastError, match="code for gfx942, not for gfx950"):
            library.hipModuleLoadData(ctypes.byref(module), bundled)


def test_launches_of_several_gpus_are_refused(images: dict[str, bytes]) -> None:
    with wavecast.device("gfx942", count=2):
        hip, x = Hip(images["gfx942"]), torch.ones(64)
        values = pointer(x), pointer(x), ctypes.c_int(64), ctypes.c_float(2.0)
        assert hip.library.hipSetDevice(1) == 0
        assert torch.cuda.current_device() == 1
        with pytest.raises(UsageError, match="one emulated GPU"):
            hip.launch("scale", 1, 64, *values)


def test_threads_launch_at_once(images: dict[str, bytes]) -> None:
    results = [torch.zeros(64) for _ in range(4)]
    with wavecast.device("gfx942"):
        hip, x = Hip(images["gfx942"]), torch.ones(64)
        addresses = [result.data_ptr() for result in results]

        def work(index: int) -> None:
            by = ctypes.c_float(float(index))
            for _ in range(5):
                values = pointer(x), ctypes.c_void_p(addresses[index]), ctypes.c_int(64), by
                assert hip.launch("scale", 1, 64, *values) == 0

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [float(result[0]) for result in results] == [0.0, 2.0, 4.0, 6.0]


class Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("values", ctypes.c_uint * 16))


class Configuration(ctypes.Structure):
    """`HIP_LAUNCH_CONFIG`."""

    _fields_ = (
        ("sizes", ctypes.c_uint * 7),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    )


def test_a_launch_states_its_cluster() -> None:
    """hipLaunchAttributeClusterDimension is 4."""
    (code, *_) = hip.compile(SOURCE, "gfx1250", program=True)
    binary = code.stages["hsaco"]
    assert isinstance(binary, bytes)
    with capture("gfx1250") as launches:
        module, y = Hip(binary), torch.zeros(128, device="cuda")
        values = pointer(y), pointer(y), ctypes.c_int(128), ctypes.c_float(1.5)
        arguments = (ctypes.c_void_p * 4)(*map(ctypes.addressof, values))
        attribute = Attribute(4, 0, (ctypes.c_uint * 16)(2, 1, 1))
        for count in (0, 1):
            sizes = (ctypes.c_uint * 7)(2, 1, 1, 64, 1, 1, 0)
            how = Configuration(sizes, None, ctypes.pointer(attribute), count)
            call = ctypes.byref(how), module.function("scale"), arguments, None
            assert module.call("hipDrvLaunchKernelEx", *call) == 0
    assert [launch.cluster for launch in launches] == [(1, 1, 1), (2, 1, 1)]


def test_events_have_predicted_times(images: dict[str, bytes]) -> None:
    """A launch alone, then three alike: HIP's events and PyTorch's agree."""
    y = torch.ones(64)
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
        values = pointer(y), pointer(y), ctypes.c_int(64), ctypes.c_float(1.0)

        def elapsed(launches: int) -> float:
            events = [ctypes.c_void_p() for _ in range(2)]
            milliseconds = ctypes.c_float()
            for event in events:
                hip.call("hipEventCreate", ctypes.byref(event))
            hip.call("hipEventRecord", events[0], None)
            for _ in range(launches):
                assert hip.launch("scale", 1, 64, *values) == 0
            hip.call("hipEventRecord", events[1], None)
            hip.call("hipEventElapsedTime", ctypes.byref(milliseconds), *events)
            return milliseconds.value

        single, three = elapsed(1), elapsed(3)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        assert hip.launch("scale", 1, 64, *values) == 0
        end.record()
    assert 1e-3 < single < 0.1
    assert three == pytest.approx(3 * single)
    assert start.elapsed_time(end) == pytest.approx(single)
    assert torch.equal(y, torch.full((64,), 2.0**5))


def test_addresses_of_tensors_are_ranges(images: dict[str, bytes]) -> None:
    with wavecast.device("gfx942"):
        hip, y = Hip(images["gfx942"]), torch.zeros(100)
        inside = ctypes.c_void_p(y[10:].data_ptr())
        base, size = ctypes.c_void_p(), ctypes.c_size_t()
        call = (ctypes.byref(base), ctypes.byref(size), inside)
        assert hip.call("hipMemGetAddressRange", *call) == 0
        assert (base.value, size.value) == (y.data_ptr(), 400)
        assert hip.call("hipPointerGetAttribute", ctypes.byref(base), 11, inside) == 0
        assert base.value == y.data_ptr()
        assert hip.call("hipMemsetD16Async", inside, 0x3F80, ctypes.c_size_t(4), None) == 0
    assert y.view(torch.int16)[18:26].tolist() == [0, 0, *[0x3F80] * 4, 0, 0]


def test_captured_launches_have_their_tensors(images: dict[str, bytes]) -> None:
    with capture("gfx942") as launches:
        hip = Hip(images["gfx942"])
        x, y = torch.ones(8, 16), torch.zeros(8, 16, device="cuda")
        for _ in range(2):
            values = pointer(x), pointer(y), ctypes.c_int(128), ctypes.c_float(1.5)
            assert hip.launch("scale", 2, 64, *values) == 0
    (launch,) = launches
    assert (launch.code.kernel, launch.grid, launch.block) == ("scale", (2, 1, 1), (64, 1, 1))
    assert launch.count == 2
    assert [(a.kind, a.shape) for a in launch.arguments[:2]] == [("tensor", (8, 16))] * 2
    assert torch.equal(y, torch.zeros(8, 16))


def test_structures_point_to_tensors(images: dict[str, bytes]) -> None:
    """Explained with names, bytes and a bound; the compiler has told no types here."""

    class Tensors(ctypes.Structure):
        _fields_ = (
            ("pitch", ctypes.c_long), ("x", ctypes.c_void_p), ("rows", ctypes.c_int),
            ("y", ctypes.c_void_p),
        )  # fmt: skip

    x, y = torch.ones(64, 256), torch.zeros(64, 256, dtype=torch.float32)
    with capture("gfx942") as launches:
        hip = Hip(images["gfx942"])
        x, y = x.to("cuda"), y.to("cuda")
        hip.launch("add_one", 64, 256, Tensors(256, x.data_ptr(), 64, y.data_ptr()))
    (launch,) = launches
    (name, *_) = (argument.name for argument in launch.arguments)
    assert [(item.name, item.shape, item.slot) for item in launch.members] == [
        (f"{name} (byte 8)", (64, 256), 8),
        (f"{name} (byte 24)", (64, 256), 24),
    ]
    assert decode_launch(encode_launch(launch), {launch.code.digest: launch.code}) == launch
    options = ExplainOptions(arch=("gfx942",))
    ((explanation,), _) = explain_launches([launch], options.selection(), options.launch_facts())
    analysis = explanation.analysis
    assert analysis.arguments_complete
    assert analysis.arguments_read == {f"{name} (byte 8)"}
    assert analysis.arguments_written == {f"{name} (byte 24)"}
    assert explanation.predicted.prediction is not None
    console = Console(width=160, file=io.StringIO())
    console.print(*sections(explanation, 160, full=False))
    printed = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert f"{name} (byte 8): float32[64, 256], {name} (byte 24): float32[64, 256]" in printed
    assert f"{name} = (" not in printed
    work = explanation.roofline.work
    assert (work.bytes_read, work.bytes_written) == (x.nbytes, y.nbytes)


def test_structures_are_shown_as_integers(images: dict[str, bytes]) -> None:
    with capture("gfx942") as launches:
        y = torch.zeros(64)
        extents = (ctypes.c_int * 3)(8, 16, -1)
        assert Hip(images["gfx942"]).launch("sized", 1, 64, pointer(y), extents) == 0
    (launch,) = launches
    assert launch.arguments[1].value == (8, 16, -1)


def test_names_that_a_language_knows(images: dict[str, bytes]) -> None:
    code = next(
        code for code in load_object(images["gfx942"], "gfx942", "it") if code.kernel == "sized"
    )
    nameless = replace(code, parameters=tuple(replace(p, name="") for p in code.parameters))
    names = ArgumentNames()
    names.add("sized", [NamedArgument("y", True), NamedArgument("y.layout", False)])
    assert names.with_names(nameless) is nameless
    names.in_use = True
    named = names.with_names(nameless)
    assert [p.name for p in named.parameters[:2]] == ["y", "y.layout"]
    assert names.with_names(named) is named
    later = ArgumentNames(in_use=True)  # a process that takes the code from a cache
    assert [p.name for p in later.with_names(nameless).parameters[:2]] == ["y", "y.layout"]
    later.add("sized", [NamedArgument("a", True), NamedArgument("b", True)])  # another kernel
    assert [p.name for p in later.with_names(nameless).parameters[:2]] == ["y", "y.layout"]


NEEDS = """
import ctypes, sys, wavecast
try:
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    print("libamdhip64" in str(error))
with wavecast.device("gfx942"):
    print(ctypes.CDLL(sys.argv[1]).count())
"""


def test_a_library_that_needs_the_runtime_is_loaded(tmp_path: Path) -> None:
    """A library that depends on HIP's by its name, which is in no folder."""
    sources = {
        "stub": "int hipGetDeviceCount(int *n) { return 1; }",
        "needs": "int hipGetDeviceCount(int *n); int count(void) {"
        " int n = 0; return hipGetDeviceCount(&n) ? -1 : n; }",
    }
    zig = (*c_compiler(), "-shared")
    stub, needs = tmp_path / "stub.so", tmp_path / "needs.so"
    for name, text in sources.items():
        (tmp_path / f"{name}.c").write_text(text)
    named = ("-Wl,-soname,libamdhip64.so.7", "-o", stub)
    assert not process.run([*zig, tmp_path / "stub.c", *named]).status
    assert not process.run([*zig, tmp_path / "needs.c", stub, "-o", needs]).status
    result = run_python("-c", NEEDS, str(needs))
    assert result.stdout.split() == ["True", "1"], result.stderr


def test_launches_that_are_measured_have_predicted_times_and_no_effect(
    images: dict[str, bytes],
) -> None:
    with wavecast.device("gfx942") as device:
        hip = Hip(images["gfx942"])
        x, y = torch.ones(100, device="cuda"), torch.zeros(100, device="cuda")
        values = pointer(x), pointer(y), ctypes.c_int(100), ctypes.c_float(1.5)
        assert hip.launch("scale", 2, 64, *values) == 0
        y.zero_()
        runtime = serving()
        assert runtime is not None
        assert runtime.launcher is not None
        seconds = runtime.launcher.measure(lambda: hip.launch("scale", 2, 64, *values))
        twice = runtime.launcher.measure(
            lambda: [hip.launch("scale", 2, 64, *values) for _ in range(2)]
        )
    assert 1e-7 < seconds < 1e-4
    assert twice == 2 * seconds
    assert device.executed == 1
    assert not y.any()


def test_memory_is_mapped_to_reserved_addresses(images: dict[str, bytes]) -> None:
    with wavecast.device("gfx942"):
        hip = Hip(images["gfx942"])
        granule, x, memory = ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_void_p()
        place = (ctypes.c_int * 8)(1, 0, 1, 0)
        hip.call("hipMemGetAllocationGranularity", ctypes.byref(granule), place, 0)
        size, no_flags = granule, ctypes.c_ulonglong()
        reserve = ctypes.byref(x), size, ctypes.c_size_t(), None, no_flags
        assert hip.call("hipMemAddressReserve", *reserve) == 0
        assert hip.call("hipMemCreate", ctypes.byref(memory), size, place, no_flags) == 0
        mapping = x, size, ctypes.c_size_t(), memory, no_flags
        assert hip.call("hipMemMap", *mapping) == 0
        assert hip.call("hipMemMap", *mapping) == 801  # hipErrorNotSupported
        assert hip.call("hipMemSetAccess", x, size, place, ctypes.c_size_t(1)) == 0
        assert hip.call("hipMemRelease", memory) == 0
        y = torch.zeros(64, device="cuda")
        hip.call("hipMemsetD32", x, ctypes.c_int(0x40400000), ctypes.c_size_t(64))
        values = x, pointer(y), ctypes.c_int(64), ctypes.c_float(0.5)
        assert hip.launch("scale", 1, 64, *values) == 0
        assert torch.equal(y, torch.full((64,), 3.0))
        assert hip.call("hipMemUnmap", x, size) == 0
        assert hip.call("hipMemUnmap", x, size) == 1
        assert hip.call("hipMemAddressFree", x, size) == 0


def test_the_layer_below_hip_names_the_target() -> None:
    with wavecast.device("gfx1201"):
        hsa = ctypes.CDLL("libhsa-runtime64.so.1")
        visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)
        length, kind, text = ctypes.c_uint(), ctypes.c_uint(), ctypes.create_string_buffer(64)
        handles: list[int] = []

        def add(handle: int, data: object) -> int:
            handles.append(handle)
            return 0

        assert hsa.hsa_init() == 0
        assert hsa.hsa_iterate_agents(visit(add), None) == 0
        (agent,) = map(ctypes.c_uint64, handles)
        assert hsa.hsa_agent_get_info(agent, 17, ctypes.byref(kind)) == 0
        assert kind.value == 1
        assert hsa.hsa_agent_get_info(agent, 0, text) == 0
        assert text.value == b"gfx1201"
        assert hsa.hsa_agent_iterate_isas(agent, visit(add), None) == 0
        isa = ctypes.c_uint64(handles[-1])
        assert hsa.hsa_isa_get_info_alt(isa, 0, ctypes.byref(length)) == 0
        assert hsa.hsa_isa_get_info_alt(isa, 1, text) == 0
        assert text.value == b"amdgcn-amd-amdhsa--gfx1201"
        assert length.value == len(text.value) + 1
        assert hsa.hsa_agent_get_info(agent, 99, text) == 0x1001
        assert hsa.hsa_agent_get_info(ctypes.c_uint64(7), 0, text) == 0x1004
        hsa.hsa_shut_down()
