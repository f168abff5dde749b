"""PyTorch's tensors on an emulated GPU, in DLPack: TVM asks a table of C functions where they are.

The table is `DLPackExchangeAPI` of dlpack.h, version 1.3. The functions of PyTorch describe the
memory; those here say that a tensor which calls itself CUDA's is on the ROCm device.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

_NAME: Final = b"dlpack_exchange_api"
ATTRIBUTE: Final = "__dlpack_c_exchange_api__"
"""The attribute of the class of tensors that has the table."""
_CPU, _CUDA, _ROCM = 1, 2, 10
"""`kDLCPU`, `kDLCUDA` and `kDLROCM`."""
_DTYPES: Final = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
    (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool",
    (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
}  # fmt: skip
"""`DLDataTypeCode` and bits -> the name in PyTorch."""


class _Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_SIGNATURES: Final = (
    (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),  # allocate
    (ctypes.py_object, ctypes.c_void_p),  # managed tensor of an object
    (ctypes.c_void_p, ctypes.c_void_p),  # object of a managed tensor
    (ctypes.py_object, ctypes.c_void_p),  # tensor of an object
    (ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p),  # stream
)
_SET_ERROR: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class _Table(ctypes.Structure):
    """`DLPackExchangeAPI`."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * len(_SIGNATURES)),
    )


class _ExchangeOnGpu:
    """A table whose functions call those of PyTorch's table."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._original = _Table.from_address(_address_of(getattr(torch.Tensor, ATTRIBUTE)))
        self._calls = [
            ctypes.PYFUNCTYPE(ctypes.c_int, *arguments)(address)
            for arguments, address in zip(_SIGNATURES, self._original.functions, strict=True)
        ]
        functions = (
            self._allocate, self._managed_of, self._object_of, self._tensor_of, self._stream,
        )  # fmt: skip
        self._callbacks = [
            ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(function)
            for arguments, function in zip(_SIGNATURES, functions, strict=True)
        ]
        self.table = _Table.from_buffer_copy(self._original)
        self.table.previous = None
        for number, callback in enumerate(self._callbacks):
            self.table.functions[number] = ctypes.cast(callback, ctypes.c_void_p).value

    def _allocate(self, prototype: int, out: int, context: int, set_error: int) -> int:
        """A new tensor, of a PyTorch tensor: its address is asked for as that of others."""
        like = _Tensor.from_address(prototype)
        if like.device_type != _ROCM:
            return self._calls[0](prototype, out, context, set_error)
        try:
            name = _DTYPES.get((like.code, like.bits * like.lanes))
            if name is None:
                raise TypeError(f"PyTorch has no dtype of DLPack's {like.code}, {like.bits} bits")
            tensor = self._torch.empty(
                tuple(like.shape[: like.ndim]),
                dtype=getattr(self._torch, name),
                device=f"cuda:{like.device_id}",
            )
            return self._managed_of(tensor, out)
        except Exception as error:
            kind, message = type(error).__name__.encode(), str(error).encode()
            _SET_ERROR(set_error)(context, kind, message)
            return -1

    def _managed_of(self, tensor: Any, out: int) -> int:
        status = self._calls[1](tensor, out)
        managed = ctypes.c_void_p.from_address(out).value
        if not status and managed is not None:
            _say_where(_Managed.from_address(managed).tensor, tensor)
        return status

    def _object_of(self, managed: int, out: int) -> int:
        tensor = _Managed.from_address(managed).tensor
        if tensor.device_type == _ROCM:
            tensor.device_type, tensor.device_id = _CPU, 0
        return self._calls[2](managed, out)

    def _tensor_of(self, tensor: Any, out: int) -> int:
        status = self._calls[3](tensor, out)
        if not status:
            _say_where(_Tensor.from_address(out), tensor)
        return status

    def _stream(self, device_type: int, device_id: int, out: int) -> int:
        if device_type != _ROCM:
            return self._calls[4](device_type, device_id, out)
        ctypes.c_void_p.from_address(out).value = None
        return 0


def _say_where(description: _Tensor, tensor: Any, gpu: int = _ROCM) -> None:
    """Say where a tensor says that it is, and tell of its address."""
    device = tensor.device
    if device.type == "cuda" and description.device_type == _CPU:
        tensor.data_ptr()
        description.device_type, description.device_id = gpu, device.index or 0


def exporting_to_cuda(export: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`torch._C._to_dlpack`, whose capsules say that tensors which call themselves CUDA's are on
    the CUDA device."""

    @functools.wraps(export)
    def to_dlpack(tensor: Any) -> Any:
        capsule = export(tensor)
        _say_where(_Tensor.from_address(_address_of(capsule, b"dltensor")), tensor, _CUDA)
        return capsule

    return to_dlpack


@functools.cache
def exchange_on_gpu() -> Any:
    """The capsule of a table of DLPack for PyTorch's tensors, as `Tensor.__dlpack_c_exchange_api__`
    has one: for the rest of the process, since its users keep addresses. Without an emulated GPU it
    is PyTorch's. Raises AttributeError where PyTorch, before 2.10, has none."""
    import torch

    exchange = _ExchangeOnGpu(torch)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = new(ctypes.addressof(exchange.table), _NAME, None)
    _kept.append(exchange)
    return capsule


_kept: list[_ExchangeOnGpu] = []


def _address_of(capsule: Any, name: bytes = _NAME) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return get(capsule, name)


__all__ = ["ATTRIBUTE", "exchange_on_gpu", "exporting_to_cuda"]
