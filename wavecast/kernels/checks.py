"""Refusing bad arguments before a launch, in one clear line."""

from collections.abc import Sequence

import torch

from wavecast.errors import ArgumentError

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
"""The dtypes most operators take."""


def require(condition: bool | torch.SymBool, operator: str, message: str) -> None:
    """Raise ArgumentError unless `condition` holds. What only the run decides, because a size
    depends on data, holds in fakes."""
    if not _holds(condition):
        raise ArgumentError(f"{operator}: {message}")


def same_device(operator: str, **tensors: torch.Tensor | None) -> None:
    """All given tensors are on one device. Raises ArgumentError."""
    operands = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    devices = {str(tensor.device) for tensor in operands.values()}
    if len(devices) > 1:
        devices_of = ", ".join(f"{name} on {tensor.device}" for name, tensor in operands.items())
        raise ArgumentError(f"{operator}: tensors on several devices: {devices_of}")


def dtype_in(operator: str, name: str, tensor: torch.Tensor, dtypes: Sequence[torch.dtype]) -> None:
    """The dtype of a tensor is one of `dtypes`. Raises ArgumentError."""
    if tensor.dtype not in dtypes:
        dtype_names = ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        dtype = str(tensor.dtype).removeprefix("torch.")
        raise ArgumentError(f"{operator}: {name} is {dtype}; it takes {dtype_names}")


def shape_is(operator: str, name: str, tensor: torch.Tensor, shape: Sequence[int]) -> None:
    """The shape of a tensor is `shape`; -1 stands for any size. Raises ArgumentError."""
    fits = tensor.dim() == len(shape) and all(
        (isinstance(extent, int) and extent == -1) or _holds(size == extent)
        for size, extent in zip(tensor.shape, shape, strict=True)
    )
    if not fits:
        shape_text = "x".join("?" if size == -1 else str(size) for size in shape)
        got = "x".join(map(str, tensor.shape)) or "a scalar"
        raise ArgumentError(f"{operator}: {name} is {got}, expected {shape_text}")


def one_of(operator: str, name: str, value: str, values: Sequence[str]) -> None:
    """An option is one of `values`."""
    require(value in values, operator, f"{name} is {value!r}; it takes {', '.join(values)}")


def check_no_overlap(operator: str, name: str, tensor: torch.Tensor) -> None:
    """No two elements of a tensor that is written share an address, as those of an expanded tensor
    do. Raises ArgumentError."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    once = all(step or size <= 1 for size, step in steps)
    require(once, operator, f"{name} is expanded: elements of it share memory")


def wide(*tensors: torch.Tensor | None) -> bool:
    """Whether offsets into some tensor need 64 bits: it reaches 2**31 elements or more. Kernels
    take this as a constant, so that the usual code keeps 32-bit offsets (buffer loads need them).
    """
    return any(tensor is not None and _reach(tensor) >= 2**31 for tensor in tensors)


def _holds(condition: bool | torch.SymBool) -> bool:
    """Whether a condition is true, or may be: of sizes that depend on data a fake knows no more."""
    if isinstance(condition, torch.SymBool):
        from torch.fx.experimental.symbolic_shapes import guard_or_true

        return guard_or_true(condition)
    return condition


def _reach(tensor: torch.Tensor) -> int:
    """Elements from the first to the last, gaps included."""
    if tensor.numel() == 0:
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((size - 1) * abs(stride) for size, stride in steps)
