"""Copies between devices that `torch.cuda.comm` and `DataParallel` ask of PyTorch's C++ side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wavecast.runtimes.patching import Patches

_HOST = -1


def install(patches: Patches) -> None:
    """Let `torch.cuda.comm` add without NCCL, whose absence it would warn of."""
    from torch.cuda import nccl

    patches.attribute(nccl, "is_available", lambda _: False)


def bindings() -> dict[str, Callable[..., Any]]:
    """Functions of `torch._C`, by name."""
    return {
        "_broadcast": lambda x, devices: [_copy(x, gpu) for gpu in devices],
        "_broadcast_out": _broadcast_out,
        "_broadcast_coalesced": lambda tensors, devices, _size=0: [
            [_copy(x, gpu) for x in tensors] for gpu in devices
        ],
        "_scatter": _scatter,
        "_scatter_out": _scatter_out,
        "_gather": _gather,
        "_gather_out": _gather_out,
    }


def _copy(x: Any, gpu: int) -> Any:
    return x.to(f"cuda:{gpu}")


def _broadcast_out(x: Any, outs: Sequence[Any]) -> list[Any]:
    for out in outs:
        out.copy_(x)
    return list(outs)


def _scatter(
    x: Any, devices: Sequence[int], sizes: Sequence[int] | None, dim: int, _streams: Any = None
) -> list[Any]:
    """Parts of a tensor on the devices."""
    parts = x.chunk(len(devices), dim) if sizes is None else x.split(list(sizes), dim)
    return [_copy(part, gpu) for part, gpu in zip(parts, devices, strict=False)]


def _scatter_out(x: Any, outs: Sequence[Any], dim: int, _streams: Any = None) -> list[Any]:
    parts = x.split([out.shape[dim] for out in outs], dim)
    for out, part in zip(outs, parts, strict=True):
        out.copy_(part)
    return list(outs)


def _gather(parts: Sequence[Any], dim: int, gpu: int | None) -> Any:
    """Parts as one tensor on a device, None for the current one, -1 for the host."""
    import torch

    device = "cpu" if gpu == _HOST else "cuda" if gpu is None else f"cuda:{gpu}"
    return torch.cat([part.to(device) for part in parts], dim)


def _gather_out(parts: Sequence[Any], out: Any, dim: int) -> Any:
    targets = out.split([part.shape[dim] for part in parts], dim)
    for target, part in zip(targets, parts, strict=True):
        target.copy_(part)
    return out


__all__ = ["bindings", "install"]
