"""What kernels over elements have in common: their configurations, sizes and work.

A program takes `ROWS` x `BLOCK` elements. What it reads and writes per element, and the vector
instructions that takes, are enough to rank the configurations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import triton

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

WIDEST = 2048
"""Elements of a row a program takes at most."""
_LARGE = 1 << 21
_PER_LANE = (4, 64)
"""Elements of a program per lane, at least (16 bytes of float32) and at most."""


def flat_space(
    kernel: str, *, operations: float, held: float, widest: int = 8192, narrowest: int = 256
) -> Space:
    """The space of a kernel over `problem["count"]` elements in `BLOCK`s, which moves
    `problem["read"]` and `problem["written"]` bytes per element (`problem["mixed"]`: of tensors
    with several dtypes), does `operations` vector
    instructions on each and holds `held` registers for it."""

    def axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
        del device
        most = max(narrowest, triton.next_power_of_2(problem["count"]))
        blocks = tuple(b for b in _powers(narrowest, widest) if b <= most)
        return {"BLOCK": blocks, "num_warps": _warps(problem["count"]), "num_stages": (1,)}

    def fits(problem: Problem, settings: Settings, device: Device) -> bool:
        if problem.get("mixed") and settings["BLOCK"] > 4 * _lanes(settings, device):
            return False  # tensors of several dtypes have one layout only where lanes take 4 each
        return _sensible(settings["BLOCK"], settings, device, held)

    def seconds(problem: Problem, settings: Settings, device: Device) -> float:
        count = problem["count"]
        return estimates.streaming(
            device,
            settings,
            workgroups=triton.cdiv(count, settings["BLOCK"]),
            read=count * problem["read"],
            written=count * problem["written"],
            elements=settings["BLOCK"],
            operations=operations,
            held=held,
        )

    return Space(kernel=kernel, axes=axes, seconds=seconds, fits=fits, classes=("count",))


def row_space(kernel: str, *, operations: float, held: float) -> Space:
    """As `flat_space`, over `rows` x `columns` elements in tiles of `ROWS` x `BLOCK`."""

    def axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
        del device
        columns = triton.next_power_of_2(problem["columns"])
        blocks = tuple(b for b in _powers(64, WIDEST) if b <= columns) or (columns,)
        return {
            "BLOCK": blocks[-4:],
            "ROWS": (1, 2, 4, 8, 16) if blocks[-1] < WIDEST else (1, 2, 4),
            "num_warps": _warps(problem["rows"] * problem["columns"]),
            "num_stages": (1,),
        }

    def fits(problem: Problem, settings: Settings, device: Device) -> bool:
        del problem
        return _sensible(settings["ROWS"] * settings["BLOCK"], settings, device, held)

    def seconds(problem: Problem, settings: Settings, device: Device) -> float:
        rows, columns = problem["rows"], problem["columns"]
        down = triton.cdiv(rows, settings["ROWS"])
        across = triton.cdiv(columns, settings["BLOCK"])
        return estimates.streaming(
            device,
            settings,
            workgroups=down * across,
            read=rows * columns * problem["read"],
            written=rows * columns * problem["written"],
            elements=settings["ROWS"] * settings["BLOCK"],
            operations=operations,
            held=held,
        )

    return Space(kernel=kernel, axes=axes, seconds=seconds, fits=fits, classes=("rows",))


def _warps(elements: int) -> tuple[int, ...]:
    """Workgroups of one wave spread small tensors; for large ones they are too many to start."""
    return (1, 2, 4) if elements < _LARGE else (4, 8)


def _powers(low: int, high: int) -> list[int]:
    return [1 << power for power in range(low.bit_length() - 1, high.bit_length())]


def _sensible(elements: int, settings: Settings, device: Device, held: float) -> bool:
    lanes = _lanes(settings, device)
    low, high = _PER_LANE
    return elements < 256 or low * lanes <= elements <= min(high, 96 / held) * lanes


def _lanes(settings: Settings, device: Device) -> int:
    return settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """A tensor as rows of its last dimension, whose elements lie side by side."""
    flat = x.reshape(-1, x.shape[-1])
    return flat if flat.stride(1) == 1 or flat.shape[1] == 1 else flat.contiguous()


def bytes_of(*tensors: torch.Tensor | None) -> int:
    """Bytes per element of these tensors together."""
    return sum(tensor.element_size() for tensor in tensors if tensor is not None)


def work(
    elements: Callable[..., float], read: float, written: float, operations: float
) -> Callable[..., Work]:
    """The work of an operator that, for each of `elements(**sizes)`, reads and writes so many
    elements of the dtype in its sizes."""

    def found(**sizes: Any) -> Work:
        count = elements(**sizes)
        size = getattr(torch, sizes["dtype"]).itemsize
        flops = {"vector_fp32": operations * count}
        return Work(flops, count * read * size, count * written * size, "formula", "formula")

    return found


__all__ = ["WIDEST", "bytes_of", "flat_space", "row_space", "rows_of", "work"]
