"""Operators of the library as layers of a serving engine, with a count of their calls."""

from __future__ import annotations

import atexit
import contextlib
import functools
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

import torch
from torch import Tensor

from wavecast.frameworks.torch.library import function
from wavecast.launch import gpu
from wavecast.runtimes.triton.device import PausedDevice

SQUARE: Final = 128
"""Rows and columns of weights that share a scale in `moe_experts_fp8` and `matmul_fp8_block`."""


class ServedCalls(Counter[tuple[str, str]]):
    """Calls by layer of an engine and operator of the library, since the process began, but for
    those in graphs of `torch.compile`: `traced` has how often each was traced into one."""

    def __init__(self) -> None:
        super().__init__()
        self.traced: Counter[tuple[str, str]] = Counter()

    def serve(self, layer: str, operator: str) -> Callable[..., Any]:
        """The operator, counted as called for `layer`."""
        call = function(operator)
        key = (layer, operator)

        @torch.compiler.assume_constant_result
        def trace() -> None:
            self.traced[key] += 1

        def run(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_dynamo_compiling():
                trace()  # run by Dynamo: a counter in its graph would be guarded, and change
            else:
                self[key] += 1
            return call(*args, **kwargs)

        return run


@functools.cache
def _engine_gpu(name: str) -> PausedDevice:
    device = PausedDevice(name)
    atexit.register(device.close)
    return device


def emulated_gpu(name: str) -> AbstractContextManager[Any]:
    """A GPU that executes the launches of an engine's step, unless one is emulated already. What
    was compiled for it stays for the next step. Raises UnknownName for an unknown GPU."""
    if gpu.emulated is not None:
        return contextlib.nullcontext()
    return _engine_gpu(name).running()


def by_square(weight: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Codes [experts, rows, columns] and scales by square, from scales [experts, parts] of equal
    parts of the rows. Codes whose scale is not the largest of the expert are rounded again."""
    most = scale.amax(dim=1, keepdim=True)
    if not torch.equal(scale, most.expand_as(scale)):
        each = (scale / most).repeat_interleave(weight.shape[1] // scale.shape[1], dim=1)
        weight = (weight.float() * each[..., None]).to(weight.dtype)
    squares = [-(-size // SQUARE) for size in weight.shape[1:]]
    return weight, most[..., None].expand(-1, *squares).contiguous()


def gather_tokens(cache: Tensor, pages: Tensor, lengths: Tensor) -> Tensor:
    """All tokens of sequences [tokens, columns], sequence by sequence, from a cache [pages, page
    size, columns]; `pages` [sequences, pages], `lengths` [sequences]."""
    lengths, size = lengths.long(), cache.shape[1]
    sequence = torch.repeat_interleave(lengths)
    position = torch.arange(len(sequence), device=lengths.device)
    position = position - (lengths.cumsum(0) - lengths)[sequence]
    return cache[pages[sequence, position // size].long(), position % size]


def starts_of(lengths: Tensor) -> Tensor:
    """Where sequences begin in their tokens, and the end: int32 [sequences + 1]."""
    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)


def apply_rotary(
    rope: Callable[..., Any], layer: Any, tables: Tensor, positions: Tensor, *inputs: Tensor
) -> list[Tensor]:
    """Queries and keys [tokens, heads · head] or [tokens, heads, head], rotated by the `tables`
    [positions, rotary] of a layer, cosines first. Queries alone are rotated as both."""
    cos, sin = tables.chunk(2, dim=-1)
    where = positions.flatten()
    heads = [tensor.reshape(where.numel(), -1, layer.head_size) for tensor in inputs]
    outputs = rope(heads[0], heads[-1], cos, sin, where, interleaved=not layer.is_neox_style)
    return [output.view(like.shape) for output, like in zip(outputs, inputs, strict=False)]


def parameter(value: Tensor) -> torch.nn.Parameter:
    """Weights as a layer has them that is not trained."""
    return torch.nn.Parameter(value, requires_grad=False)


__all__ = [
    "SQUARE",
    "ServedCalls",
    "apply_rotary",
    "by_square",
    "emulated_gpu",
    "gather_tokens",
    "parameter",
    "starts_of",
]
