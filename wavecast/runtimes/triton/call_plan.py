"""Record one call of an operator as a `CallPlan`: what it launches, on which buffers, and what it
fills in between."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from wavecast.arch import Device
from wavecast.compile.call_plan import (
    Buffer,
    BufferRole,
    CallPlan,
    FillStep,
    KernelStep,
    PointerArgument,
)
from wavecast.compile.codeobject import Launch
from wavecast.errors import UsageError
from wavecast.kernels.operator import Operator, Sizes
from wavecast.launch.inputs import Make
from wavecast.runtimes.triton.session import capture

_METADATA_ONLY: Final = frozenset(
    f"aten::{name}"
    for factory in ("empty", "zeros", "ones", "full")
    for name in (f"new_{factory}", f"{factory}_like", "new_empty_strided")
)
"""Operators that read only sizes and dtype of their tensors."""
_EMPTY: Final = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided")
)
_FILLS: Final = frozenset({"aten::fill_", "aten::zero_"})
_USUAL: Final = {
    "num_ctas": 1,
    "global_scratch_size": 0,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
}
"""Options of Triton's compiler whose other values need more than a plain launch."""
_PATTERNS: Final = (1, 2, 4)
"""Bytes of the patterns that drivers of GPUs fill memory with."""


class _Content(Enum):
    """What is known of a storage. `KNOWN` bytes were computed by the host from sizes alone."""

    ARGUMENT = auto()
    EMPTY = auto()
    KNOWN = auto()
    WRITTEN = auto()


@dataclass(slots=True)
class _Storage:
    """A storage, which is kept so that its address stays its own."""

    tensor: torch.Tensor
    content: _Content
    argument: str = ""
    buffer: int | None = None

    @property
    def first(self) -> int:
        return self.tensor.untyped_storage().data_ptr()

    @property
    def bytes(self) -> int:
        return self.tensor.untyped_storage().nbytes()


def record_call(operator: Operator, sizes: Sizes, device: Device) -> CallPlan:
    """The steps of `operator` with arguments of `sizes`, compiled for `device`; nothing is run.

    Raises CompileError when a kernel does not compile, UsageError where the call does more than
    launch kernels and fill memory, or needs a hardware descriptor, a cluster or scratch memory.
    """
    inputs = operator.call_inputs(Make(values=False), sizes)
    recording = _Recording(operator, inputs)
    with capture(device, on_launch=recording.on_launch), _Watch(recording):
        results = operator.call(**inputs)
    return recording.plan(sizes, device, results)


class _Watch(TorchDispatchMode):
    """Tells a recording what PyTorch computes."""

    def __init__(self, recording: _Recording) -> None:
        super().__init__()
        self._recording = recording

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        kwargs = dict(kwargs or {})
        self._recording.calls(func._schema, args, kwargs)
        result = func(*args, **kwargs)
        self._recording.on_result(func._schema, result)
        return result


@dataclass
class _Recording:
    """Storages by address, and the steps so far."""

    operator: Operator
    inputs: Mapping[str, Any]
    storages: dict[int, _Storage] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    steps: list[KernelStep | FillStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, tensor in _named_tensors(self.inputs):
            if tensor.numel():
                alias = self.storages.get(tensor.untyped_storage().data_ptr())
                if alias is not None:
                    raise self._export_error(f"{name} and {alias.argument} share memory")
                updated = name.split(".")[0] in self.operator.mutates
                role = BufferRole.UPDATED if updated else BufferRole.INPUT
                storage = self._add(tensor, _Content.ARGUMENT, name)
                storage.buffer = len(self.buffers)
                self.buffers.append(_make_buffer(name, role, tensor))

    def calls(self, schema: Any, args: tuple, kwargs: Mapping[str, Any]) -> None:
        """Before PyTorch computes. Raises UsageError for what a plan cannot repeat."""
        if schema.name in _METADATA_ONLY:
            return
        tensors = [
            tensor for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, torch.Tensor)
        ]
        if schema.name in _FILLS and self._content(tensors[0]) is not _Content.KNOWN:
            self._fill(tensors[0], kwargs.get("value", args[1] if len(args) > 1 else 0))
            return
        if schema.is_mutable or not _is_view(schema):
            unknown = [tensor for tensor in tensors if self._content(tensor) is not _Content.KNOWN]
            if unknown:
                label = self._label(unknown[0])
                raise self._export_error(f"it computes {schema.name} of {label} on the host")

    def on_result(self, schema: Any, result: Any) -> None:
        """After PyTorch computed `result`."""
        content = _Content.EMPTY if schema.name in _EMPTY else _Content.KNOWN
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.numel() and self._storage_of(leaf) is None:
                self._add(leaf, content)

    def on_launch(self, launch: Launch) -> None:
        """A launch; its pointers are looked up among the storages."""
        code = launch.code
        for option, usual in _USUAL.items():
            value = code.options.get(option, usual)
            if value != usual:
                raise self._export_error(f"{code.kernel} is compiled with {option}={value}")
        pointers = []
        for parameter in code.parameters:
            if parameter.offset is None or not parameter.type.startswith(("*", "tensordesc")):
                continue
            if parameter.type.startswith("tensordesc") and not code.is_amd:
                raise self._export_error(
                    f"{code.kernel} takes the hardware descriptor {parameter.name}"
                )
            data = launch.kernarg[parameter.offset : parameter.offset + 8]
            address = int.from_bytes(data, "little")
            if address:
                buffer, distance = self._pointer(address, code.kernel, parameter.name)
                pointers.append(PointerArgument(parameter.offset, buffer, distance))
        self.steps.append(KernelStep(launch, tuple(pointers)))

    def plan(self, sizes: Sizes, device: Device, results: Any) -> CallPlan:
        """The plan, with the results of the call as outputs."""
        outputs = [leaf for leaf in tree_leaves(results) if isinstance(leaf, torch.Tensor)]
        for number, tensor in enumerate(outputs):
            if tensor.numel():
                self._result(f"out{number}" if len(outputs) > 1 else "out", tensor)
        steps, operator = tuple(self.steps), self.operator.name
        buffers = tuple(self.buffers)
        return CallPlan(operator, dict(sizes), device.id, device.target, buffers, steps)

    def _result(self, name: str, tensor: torch.Tensor) -> None:
        storage = self._storage_of(tensor)
        if storage is None or storage.buffer is None:
            raise self._export_error(f"no kernel writes its result {name}")
        buffer = self.buffers[storage.buffer]
        if buffer.role is BufferRole.UPDATED:
            return
        if buffer.role is not BufferRole.WORKSPACE:
            raise self._export_error(f"its result {name} is its {buffer.role} {buffer.name}")
        if tensor.data_ptr() != storage.first or _extent(tensor) != storage.bytes:
            raise self._export_error(f"its result {name} is part of a larger buffer")
        self.buffers[storage.buffer] = _make_buffer(name, BufferRole.OUTPUT, tensor)

    def _pointer(self, address: int, kernel: str, name: str) -> tuple[int, int]:
        """The buffer of an address, and its distance from the first element in bytes."""
        for storage in self.storages.values():
            if storage.first <= address < storage.first + storage.bytes:
                if storage.buffer is None:
                    self._assign(storage)
                assert storage.buffer is not None
                start = storage.tensor.data_ptr() if storage.argument else storage.first
                if address < start:
                    raise self._export_error(f"{kernel} takes memory before {storage.argument}")
                return storage.buffer, address - start
        raise self._export_error(f"{kernel} takes {name}, memory of nobody")

    def _assign(self, storage: _Storage) -> None:
        """Gives a storage that a launch uses its buffer: a constant if the host computed it."""
        is_constant = storage.content is _Content.KNOWN
        content = ctypes.string_at(storage.first, storage.bytes) if is_constant else b""
        pattern = _pattern(content)
        if is_constant and not pattern:
            if self._has_addresses(content):
                raise self._export_error("it passes a table of addresses")
            storage.buffer = self._memory("table", BufferRole.CONSTANT, content)
            return
        storage.content = _Content.WRITTEN
        storage.buffer = self._memory("workspace", BufferRole.WORKSPACE, b"", storage.bytes)
        if pattern:
            count = storage.bytes // len(pattern)
            self.steps.append(FillStep(storage.buffer, 0, count, pattern))

    def _memory(self, name: str, role: BufferRole, content: bytes, size: int = 0) -> int:
        """Adds a buffer of bytes, numbered among those of its role."""
        number = sum(buffer.role is role for buffer in self.buffers)
        size = size or len(content)
        self.buffers.append(Buffer(f"{name}{number}", role, "uint8", (size,), (1,), size, content))
        return len(self.buffers) - 1

    def _fill(self, tensor: torch.Tensor, value: Any) -> None:
        storage = self._storage_of(tensor)
        if storage is None or not tensor.is_contiguous():
            raise self._export_error(f"it fills {self._label(tensor)}, which is not contiguous")
        element = torch.full((1,), value, dtype=tensor.dtype)
        pattern = _pattern(_bytes(element))
        if not pattern:
            raise self._export_error(f"it fills {tensor.dtype} with {value}")
        if storage.buffer is None:
            self._assign(storage)
        assert storage.buffer is not None
        start = storage.tensor.data_ptr() if storage.argument else storage.first
        count = tensor.numel() * tensor.element_size() // len(pattern)
        self.steps.append(FillStep(storage.buffer, tensor.data_ptr() - start, count, pattern))

    def _has_addresses(self, content: bytes) -> bool:
        words = np.frombuffer(content[: len(content) // 8 * 8], np.uint64)
        return any(
            bool(((words >= storage.first) & (words < storage.first + storage.bytes)).any())
            for storage in self.storages.values()
        )

    def _add(self, tensor: torch.Tensor, content: _Content, argument: str = "") -> _Storage:
        storage = _Storage(tensor, content, argument)
        self.storages[storage.first] = storage
        return storage

    def _storage_of(self, tensor: torch.Tensor) -> _Storage | None:
        return self.storages.get(tensor.untyped_storage().data_ptr())

    def _content(self, tensor: torch.Tensor) -> _Content:
        """The host knows the bytes of tensors from before the call, except arguments."""
        storage = self._storage_of(tensor) if tensor.numel() else None
        return _Content.KNOWN if storage is None else storage.content

    def _label(self, tensor: torch.Tensor) -> str:
        storage = self._storage_of(tensor)
        return f"{storage.argument}" if storage and storage.argument else "memory of the call"

    def _export_error(self, why: str) -> UsageError:
        return UsageError(f"{self.operator.name} cannot be exported: {why}")


def _named_tensors(inputs: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors among the arguments, those of lists as `name.0`."""
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from _named_tensors(
                {f"{name}.{number}": element for number, element in enumerate(value)}
            )


def _is_view(schema: Any) -> bool:
    returns: Iterable[Any] = schema.returns
    return any(result.alias_info is not None for result in returns)


def _extent(tensor: torch.Tensor) -> int:
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    return reach * tensor.element_size()


def _make_buffer(name: str, role: BufferRole, tensor: torch.Tensor) -> Buffer:
    dtype = str(tensor.dtype).removeprefix("torch.")
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    return Buffer(name, role, dtype, shape, strides, _extent(tensor))


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().flatten().view(torch.uint8).cpu().numpy().tobytes()


def _pattern(content: bytes) -> bytes:
    """The shortest pattern of which the bytes consist; b"" without one."""
    for size in _PATTERNS:
        if content and content == content[:size] * (len(content) // size):
            return content[:size]
    return b""


__all__ = ["record_call"]
