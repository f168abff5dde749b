"""Where tensors of an emulated GPU say that they are in DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import wavecast
from wavecast.runtimes.languages import dlpack
from wavecast.runtimes.languages.dlpack import exchange_on_gpu

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

CPU, ROCM = 1, 10


@pytest.fixture(scope="module")
def functions() -> list:
    """The functions of the table, as a library calls them that has the interpreter's lock."""
    if not hasattr(torch.Tensor, dlpack.ATTRIBUTE):
        pytest.skip("needs PyTorch 2.10")
    table = dlpack._Table.from_address(dlpack._address_of(exchange_on_gpu()))
    return [
        ctypes.PYFUNCTYPE(ctypes.c_int, *arguments)(address)
        for arguments, address in zip(dlpack._SIGNATURES, table.functions, strict=True)
    ]


def described(functions: list, tensor: Any) -> dlpack._Tensor:
    out = dlpack._Tensor()
    assert functions[3](tensor, ctypes.addressof(out)) == 0
    return out


def test_tensors_are_on_the_gpu_while_one_is_emulated(functions: list) -> None:
    tensor = torch.arange(6.0).reshape(2, 3)[:, 1:]
    outside = described(functions, tensor)
    with wavecast.device("gfx942"):
        inside = described(functions, torch.nn.Parameter(tensor).detach())
    assert (outside.device_type, inside.device_type) == (CPU, ROCM)
    assert inside.data == tensor.data_ptr()
    assert (inside.shape[:2], inside.strides[:2]) == ([2, 2], [3, 1])


def test_tensors_that_a_library_allocates_are_pytorchs(functions: list) -> None:
    allocate, _, as_object = functions[:3]
    managed, tensor = ctypes.c_void_p(), ctypes.py_object()
    shape = (ctypes.c_int64 * 2)(3, 5)
    like = dlpack._Tensor(device_type=ROCM, ndim=2, code=4, bits=16, lanes=1, shape=shape)
    with wavecast.device("gfx942") as device:
        assert not allocate(ctypes.addressof(like), ctypes.addressof(managed), None, None)
        made = dlpack._Managed.from_address(managed.value or 0).tensor
        assert (made.device_type, made.code, made.bits) == (ROCM, 4, 16)
        assert device.tensors.at(made.data or 0) is not None  # kernels may use it
        assert not as_object(managed, ctypes.addressof(tensor))
        assert (tensor.value.dtype, tensor.value.shape) == (torch.bfloat16, (3, 5))
        assert tensor.value.device == torch.device("cuda", 0)


def test_what_cannot_be_allocated_is_told(functions: list) -> None:
    told = []

    @dlpack._SET_ERROR
    def set_error(_context: int, kind: bytes, message: bytes) -> None:
        told.append((kind, message))

    managed = ctypes.c_void_p()
    like = dlpack._Tensor(device_type=ROCM, ndim=0, code=17, bits=4, lanes=1)
    address = ctypes.cast(set_error, ctypes.c_void_p).value
    assert functions[0](ctypes.addressof(like), ctypes.addressof(managed), None, address) == -1
    assert told == [(b"TypeError", b"PyTorch has no dtype of DLPack's 17, 4 bits")]


def test_work_on_the_gpu_has_the_default_stream(functions: list) -> None:
    stream = ctypes.c_void_p(1)
    assert functions[4](ROCM, 0, ctypes.addressof(stream)) == 0
    assert stream.value is None
