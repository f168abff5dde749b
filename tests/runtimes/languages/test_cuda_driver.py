"""CUDA's driver without a GPU: what a launcher in C asks of it, and what a recorded launch has."""

from __future__ import annotations

import ctypes

import pytest

from tests.runtimes.conftest import SM_90
from wavecast.compile import nvidia_tools
from wavecast.compile.cache import DiskCache
from wavecast.errors import CaptureError
from wavecast.runtimes.hip_host.tensors import AddressedTensors
from wavecast.runtimes.languages.cuda_driver import CudaDriver, CudaLaunch
from wavecast.runtimes.languages.dlpack import exporting_to_cuda
from wavecast.runtimes.languages.watch import refuse_cuda
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu import emulated_cuda
from wavecast.runtimes.triton.cuda_launches import CudaLaunchRecorder
from wavecast.runtimes.triton.recorder import Recorder

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 x, .param .u32 count, .param .u64 y) .reqntid 128, 1, 1
{
    .reg .u64 %a;
    .reg .u32 %v;
    ld.param.u64 %a, [x];
    ld.param.u32 %v, [count];
    st.global.u32 [%a], %v;
    ret;
}
"""


class Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint * 16))


class Configuration(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    )  # fmt: skip


class Caller:
    """Calls functions as a launcher in C does: by the addresses that cuGetProcAddress gives."""

    def __init__(self, driver: CudaDriver) -> None:
        self._get = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64,
            ctypes.c_void_p,
        )(driver.get_function)  # fmt: skip

    def __call__(self, name: str, *args: object) -> int:
        address = ctypes.c_void_p()
        assert self._get(name.encode(), ctypes.byref(address), 13000, 0, None) == 0
        kinds = [type(item) if hasattr(item, "_type_") else ctypes.c_void_p for item in args]
        return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address.value or 0)(*args)


@pytest.fixture(scope="module")
def image() -> bytes:
    return nvidia_tools.assemble(PTX, "sm_90", DiskCache(), "")[0]


def launch(call: Caller, image: bytes, values: list, cluster: int = 0) -> int:
    """Load the kernel and launch 7 workgroups, as cuTile does: of (1, 1, 1) threads."""
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    data = ctypes.create_string_buffer(image, len(image) + 4096)
    zero, none = ctypes.c_uint(0), ctypes.c_void_p()
    status = call("cuLibraryLoadData", ctypes.byref(library), ctypes.addressof(data), none, none,
                  zero, none, none, zero)  # fmt: skip
    assert status == 0
    name = ctypes.create_string_buffer(b"scale")
    assert call("cuLibraryGetKernel", ctypes.byref(kernel), library, ctypes.addressof(name)) == 0
    attribute = Attribute(4, 0, (ctypes.c_uint * 16)(cluster, 1, 1))
    asked = Configuration(
        (ctypes.c_uint * 3)(7, 1, 1), (ctypes.c_uint * 3)(1, 1, 1), 16, None,
        ctypes.addressof(attribute), 1 if cluster else 0,
    )  # fmt: skip
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    return call("cuLaunchKernelEx", ctypes.byref(asked), kernel, ctypes.addressof(pointers), none)


def test_a_launch_has_its_code_and_arguments(image):
    asked: list[CudaLaunch] = []
    call = Caller(CudaDriver(SM_90, asked.append))
    values = [ctypes.c_uint64(0x1234), ctypes.c_uint32(5), ctypes.c_uint64(0x5678)]
    assert launch(call, image, values, cluster=2) == 0
    (found,) = asked
    assert (found.code.kernel, found.code.target) == ("scale", "sm_90")
    assert (found.grid, found.block, found.shared_bytes) == ((7, 1, 1), (128, 1, 1), 16)
    assert found.cluster == (2, 1, 1)
    assert found.parameters == ((0, 8), (8, 4), (16, 8))
    words = [
        int.from_bytes(found.segment[at : at + size], "little") for at, size in found.parameters
    ]
    assert words == [0x1234, 5, 0x5678]


def test_queries_are_of_the_gpu():
    call = Caller(CudaDriver(SM_90, lambda _: None))
    number = ctypes.c_int()
    for attribute, value in ((75, 9), (76, 0), (16, SM_90.multiprocessors)):
        arguments = ctypes.byref(number), ctypes.c_int(attribute), ctypes.c_int(0)
        assert call("cuDeviceGetAttribute", *arguments) == 0
        assert number.value == value
    assert call("cuDriverGetVersion", ctypes.byref(number)) == 0
    assert number.value >= 13000


def test_what_needs_a_gpu_is_named():
    driver = CudaDriver(SM_90, lambda _: None)
    assert Caller(driver)("cuMemAlloc", ctypes.c_void_p()) == 801
    with pytest.raises(CaptureError, match="cuMemAlloc"):
        driver.raise_failure()
    driver.raise_failure()  # once
    number = ctypes.c_int()
    asked = ctypes.byref(number), ctypes.c_int(12345), ctypes.c_int(0)
    assert Caller(driver)("cuDeviceGetAttribute", *asked) != 0
    with pytest.raises(CaptureError, match="attribute 12345"):
        driver.raise_failure()


def test_tensors_and_names_of_a_recorded_launch(image):
    recorder, tensors = Recorder("sm_90"), AddressedTensors()
    cuda = CudaLaunchRecorder(recorder, tensors)
    call = Caller(CudaDriver(SM_90, cuda.on_launch))
    x = torch.zeros(6, 4)
    tensors.add(x)
    values = [ctypes.c_uint64(x.data_ptr()), ctypes.c_uint32(5), ctypes.c_uint64(9)]
    cuda.on_names(["x", "count", "y"])
    assert launch(call, image, values) == 0
    (entry,) = recorder.launches
    assert [(item.name, item.kind) for item in entry.arguments] == [
        ("x", "tensor"), ("count", "scalar"), ("y", "scalar"),
    ]  # fmt: skip
    assert entry.arguments[0].shape == (6, 4)
    assert [parameter.name for parameter in entry.code.parameters] == ["x", "count", "y"]


def test_dlpack_says_that_tensors_are_on_the_gpu():
    export = exporting_to_cuda(torch._C._to_dlpack)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

    def device(tensor) -> int:
        capsule = export(tensor)
        return ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + 8).value

    assert device(torch.zeros(3)) == 1
    with emulated_cuda(SM_90, lambda text: None):
        assert device(torch.zeros(3)) == 2


def test_cutile_is_refused_on_amd():
    patches = Patches()
    try:
        refuse_cuda(patches, "gfx942")
        with pytest.raises(CaptureError, match="cuTile compiles for NVIDIA GPUs only"):
            import_of_cutile()
    finally:
        patches.restore()


def import_of_cutile() -> None:
    """What a program's `import cuda.tile` does first where there is such a module."""
    import sys

    finder = next(item for item in sys.meta_path if getattr(item, "_module", "") == "cuda.tile")
    finder._call()
