"""CUDA's driver for a GPU that is not there: what a language needs of it to compile and launch.

A language asks `cuGetProcAddress` for functions. Those here describe the GPU, load code objects and
give launches to a function; every other one says that it is not supported. Memory is not theirs:
tensors are PyTorch's. Names and signatures are those of `cuda.h`, CUDA 13.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from wavecast.compile import cubin
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.nvidia import load_cubin
from wavecast.errors import CaptureError
from wavecast.isa import elf
from wavecast.runtimes.devices import DeviceFacts

VERSION: Final = 13050
"""The release that the driver says it is."""
_NOT_SUPPORTED, _UNKNOWN = 801, 999
"""CUDA_ERROR_NOT_SUPPORTED and CUDA_ERROR_UNKNOWN."""
_CONTEXT: Final = 1
"""The only context: its handle and its id."""
_CLUSTER: Final = 4
"""CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION."""

_LARGEST_IMAGE: Final = 1 << 32
"""More bytes than any code object has: how many one has is in its header."""

Size = tuple[int, int, int]
_Integer = ctypes.c_int
_Word = ctypes.c_void_p
_Integers = ctypes.POINTER(ctypes.c_int)
_Words = ctypes.POINTER(ctypes.c_void_p)
_Name = ctypes.c_char_p


class _Attribute(ctypes.Structure):
    """`CUlaunchAttribute`."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint * 16))


class _LaunchConfiguration(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


@dataclass(frozen=True)
class CudaLaunch:
    """A launch as a program asks for it: `parameters` are (offset, size) in its `segment`."""

    code: CodeObject
    grid: Size
    block: Size
    shared_bytes: int
    cluster: Size
    parameters: tuple[tuple[int, int], ...]
    segment: bytes


@dataclass
class CudaDriver:
    """The functions, for the GPU of `facts`; `on_launch` gets launches. What a function fails with
    is in `failures`, the caller gets an error number."""

    facts: DeviceFacts
    on_launch: Callable[[CudaLaunch], None]
    failures: list[BaseException] = field(default_factory=list)
    _images: dict[int, bytes] = field(default_factory=dict)
    _kernels: dict[int, tuple[CodeObject, tuple[tuple[int, int], ...]]] = field(
        default_factory=dict
    )
    _functions: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        major, minor = self.facts.capability
        self._attributes = {
            1: 1024, 2: 1024, 3: 1024, 4: 64,  # threads of a block, and its dimensions
            5: 0x7FFFFFFF, 6: 65535, 7: 65535,  # of a grid
            8: 48 << 10, 10: 32, 16: self.facts.multiprocessors, 75: major, 76: minor,
            81: self.facts.shared_bytes, 97: self.facts.shared_bytes,
        }  # fmt: skip
        nothing: tuple[tuple[str, tuple[Any, ...]], ...] = (
            ("cuInit", (ctypes.c_uint,)),
            ("cuCtxPushCurrent", (_Word,)),
            ("cuCtxSetCurrent", (_Word,)),
            ("cuStreamSynchronize", (_Word,)),
            ("cuCtxSynchronize", ()),
            ("cuLibraryUnload", (_Word,)),  # also at the end of Python, when little is left
            ("cuModuleUnload", (_Word,)),
            ("cuFuncSetAttribute", (_Word, _Integer, _Integer)),
            ("cuKernelSetAttribute", (_Integer, _Integer, _Word, _Integer)),
        )
        for name, kinds in nothing:
            self._functions[name] = ctypes.CFUNCTYPE(_Integer, *kinds)(lambda *_: 0)
        address = ctypes.POINTER(ctypes.c_uint64)
        for name, kinds, function in (
            ("cuDriverGetVersion", (_Integers,), lambda to: _set(to, VERSION)),
            ("cuDeviceGet", (_Integers, _Integer), _set),
            ("cuDeviceGetCount", (_Integers,), lambda to: _set(to, 1)),
            ("cuDeviceGetAttribute", (_Integers, _Integer, _Integer), self._attribute),
            ("cuCtxGetCurrent", (_Words,), lambda to: _set(to, _CONTEXT)),
            ("cuCtxPopCurrent", (_Words,), lambda to: _set(to, _CONTEXT)),
            ("cuCtxGetDevice", (_Integers,), lambda to: _set(to, 0)),
            ("cuCtxGetId", (_Word, address), lambda _, to: _set(to, _CONTEXT)),
            ("cuStreamGetCtx", (_Word, _Words), lambda _, to: _set(to, _CONTEXT)),
            ("cuStreamGetId", (_Word, address), lambda _, to: _set(to, 1)),
            ("cuStreamIsCapturing", (_Word, _Integers), lambda _, to: _set(to, 0)),
            ("cuLibraryLoadData", (_Words, _Word, *[_Word] * 2, ctypes.c_uint, *[_Word] * 2,
                                   ctypes.c_uint), self._load),
            ("cuModuleLoadData", (_Words, _Word), self._load),
            ("cuLibraryGetKernel", (_Words, _Word, _Name), self._find),
            ("cuModuleGetFunction", (_Words, _Word, _Name), self._find),
            ("cuKernelGetFunction", (_Words, _Word), _set),
            ("cuLaunchKernelEx", (ctypes.POINTER(_LaunchConfiguration), _Word, _Words, _Words),
             self._launch),
            ("cuGetErrorString", (_Integer, ctypes.POINTER(_Name)), self._error),
            ("cuGetErrorName", (_Integer, ctypes.POINTER(_Name)), self._error),
            ("cuGetProcAddress_v2", (_Name, _Words, _Integer, ctypes.c_uint64, _Integers),
             self._function),
        ):  # fmt: skip
            self._functions[name] = ctypes.CFUNCTYPE(_Integer, *kinds)(self._guarded(function))

    @property
    def get_function(self) -> int:
        """The address of `cuGetProcAddress`."""
        return ctypes.cast(self._functions["cuGetProcAddress_v2"], ctypes.c_void_p).value or 0

    def raise_failure(self) -> None:
        """Raise what the last calls failed with."""
        if self.failures:
            failure = self.failures[0]
            self.failures.clear()
            raise failure

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., int]:
        """A function of C, which raises nothing."""

        def call(*args: Any) -> int:
            try:
                return function(*args) or 0
            except BaseException as error:
                self.failures.append(error)
                return _UNKNOWN

        return call

    def _attribute(self, to: Any, attribute: int, device: int) -> None:
        del device
        if attribute not in self._attributes:
            raise CaptureError(f"attribute {attribute} of CUDA devices is not known here")
        _set(to, self._attributes[attribute])

    def _error(self, number: int, to: Any) -> None:
        texts = {_NOT_SUPPORTED: b"not supported without a GPU"}
        to[0] = texts.get(number, b"the function failed")

    def _function(self, name: bytes, to: Any, version: int, flags: int, status: Any) -> None:
        del version, flags
        function = self._functions.get(name.decode())
        if function is None:
            function = self._functions[name.decode()] = self._missing(name.decode())
        _set(to, ctypes.cast(function, ctypes.c_void_p).value or 0)
        if status:
            _set(status, 0)

    def _missing(self, name: str) -> Any:
        def fail() -> int:
            self.failures.append(CaptureError(f"{name} of CUDA's driver needs a GPU"))
            return _NOT_SUPPORTED

        return ctypes.CFUNCTYPE(_Integer)(fail)

    def _load(self, to: Any, image: int, *_: Any) -> None:
        memory = (ctypes.c_char * _LARGEST_IMAGE).from_address(image)
        handle = len(self._images) + 1
        self._images[handle] = ctypes.string_at(image, elf.extent(memory, 0))  # type: ignore[arg-type]
        _set(to, handle)

    def _find(self, to: Any, library: int, name: bytes) -> None:
        data = self._images[library]
        infos = {info.name: info.parameters for info in cubin.kernels(elf.read(data))}
        for code in load_cubin(data, self.facts.target):
            if code.kernel == name.decode():
                handle = len(self._kernels) + 1
                self._kernels[handle] = code, infos[code.kernel]
                _set(to, handle)
                return
        raise CaptureError(f"the code object has no kernel {name.decode()}")

    def _launch(self, configuration: Any, kernel: int, values: Any, extra: Any) -> None:
        if extra:
            raise CaptureError("launches with an argument buffer are not captured")
        code, parameters = self._kernels[kernel]
        asked = configuration[0]
        segment = bytearray(max((offset + size for offset, size in parameters), default=0))
        for index, (offset, size) in enumerate(parameters):
            segment[offset : offset + size] = ctypes.string_at(values[index], size)
        cluster = (1, 1, 1)
        for attribute in asked.attributes[: asked.attribute_count]:
            if attribute.id == _CLUSTER:
                cluster = tuple(attribute.value[:3])
        block = tuple(asked.block)
        if code.workgroup_size and block == (1, 1, 1):  # a kernel of tiles says how many threads
            block = (code.workgroup_size, 1, 1)
        self.on_launch(
            CudaLaunch(
                code, tuple(asked.grid), block, asked.shared_bytes, cluster, parameters,
                bytes(segment),
            )  # type: ignore[arg-type]
        )  # fmt: skip


def _set(to: Any, value: int, *_: Any) -> None:
    to[0] = value


__all__ = ["VERSION", "CudaDriver", "CudaLaunch"]
