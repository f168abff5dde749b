"""Arrays that a text or a file describes: their elements in blocks, made again at any time.

A launch changes its arrays. What one was before is made again for the comparison, block by block,
so that an array takes its size once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from wavecast import files
from wavecast.dtypes import Dtype, Spelling, lookup
from wavecast.errors import InputError, MissingTool, UnknownName, UsageError
from wavecast.extras import install_hint

BLOCK: Final = 1 << 20
"""Elements of a block. Random numbers are drawn in 64 bits, so it takes eight times as many
bytes."""

Numbers = list[float | int]
Blocks = Iterator[np.ndarray]
Content = Callable[[np.dtype, int, Numbers], Blocks]


@dataclass(frozen=True, slots=True)
class DescribedArray:
    """An array by its `dtype` (a name), `shape` and bytes. `blocks` makes its elements in order,
    in what numpy has for the dtype, or in float32; `zero` says whether all are 0, `stated` whether
    a text or file says what they are."""

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    blocks: Callable[[], Blocks]
    zero: bool = False
    stated: bool = True

    def array(self) -> Any:
        """A new array, or a tensor where numpy lacks the dtype."""
        array = _zeros(self.dtype, self.shape)
        if self.zero:
            return array
        flat, position = array.reshape(-1), 0
        for block in self.blocks():
            if not isinstance(array, np.ndarray):
                block = _torch().from_numpy(block)
            flat[position : position + len(block)] = block
            position += len(block)
        return array


def make_array(dtype: Dtype, shape: tuple[int, ...], content: str, call: Any) -> DescribedArray:
    """The array of a dtype and a content; `call` is the match of the content's name and
    arguments. Raises UnknownName, UsageError, and MissingTool without the library of a dtype."""
    entry = _CONTENTS.get(call["name"]) if call is not None else None
    if call is None or entry is None:
        raise UnknownName("content", content, _CONTENTS)
    make, count, usage = entry
    written = call["arguments"]
    numbers = [plain_number(part) for part in written.split(",")] if written else []
    if count is not None and len(numbers) != count:
        raise UsageError(f"{content!r} is not {usage}")
    size = math.prod(shape)
    if call["name"] == "values" and len(numbers) != size:
        raise UsageError(f"{len(numbers)} values for {size} elements")
    in_numpy = bool(dtype.spellings[Spelling.NUMPY])
    if not in_numpy:
        _torch(dtype.name)
    kind = np.dtype(dtype.name if in_numpy else "float32")

    def blocks() -> Blocks:
        try:
            with np.errstate(over="raise"):
                for block in make(kind, size, numbers):
                    yield block if in_numpy else _round_to_dtype(block, dtype.name)
        except (OverflowError, FloatingPointError):
            raise UsageError(f"{kind.name} cannot hold the numbers of {content!r}") from None

    return DescribedArray(
        dtype.name, shape, size * dtype.bits // 8, blocks, zero=call["name"] == "zeros"
    )


def of_file(path: Path) -> DescribedArray:
    """The array of a .npy file. Raises InputError."""
    files.check_regular(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError, OverflowError, SyntaxError) as error:
        raise InputError(f"{path} is not an array of numpy: {error}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} is an archive of arrays, not one array")
    if array.dtype.fields is not None:
        array = array.view(f"V{array.dtype.itemsize}")
    return DescribedArray(array.dtype.name, array.shape, array.nbytes, lambda: blocks_of(array))


def blocks_of(array: Any) -> Blocks:
    """The elements of an array or a tensor in order, as numpy has them: float32 for dtypes it
    lacks."""
    if isinstance(array, np.ndarray):
        flat = array.flat if not array.flags.c_contiguous else array.reshape(-1)
        for first, end in _parts(array.size):
            yield flat[first:end]
        return
    flat = array.detach().reshape(-1)
    for first, end in _parts(array.numel()):
        yield flat[first:end].to(_torch().float32).cpu().numpy()


def plain_number(text: str) -> int | float:
    """A number as a text has it. Raises UsageError."""
    text = text.strip()
    for read in (lambda word: int(word, 0), float):
        try:
            return read(text)
        except ValueError:
            continue
    raise UsageError(f"{text!r} is not a number")


def _torch(dtype: str = "") -> Any:
    try:
        import torch
    except ImportError:
        hint = install_hint("torch")
        raise MissingTool(f"{dtype} needs PyTorch", hint=hint) from None
    return torch


def _zeros(dtype: str, shape: tuple[int, ...]) -> Any:
    """A new array of zeros: pages that nobody touches take no memory. What numpy itself has not is
    a tensor, also where `ml_dtypes` has taught it more."""
    if lookup(dtype).spellings[Spelling.NUMPY]:
        return np.zeros(shape, np.dtype(dtype))
    torch = _torch(dtype)
    return torch.zeros(shape, dtype=getattr(torch, dtype))


def _round_to_dtype(block: np.ndarray, dtype: str) -> np.ndarray:
    torch = _torch(dtype)
    return torch.from_numpy(block).to(getattr(torch, dtype)).to(torch.float32).cpu().numpy()


def _parts(size: int) -> Iterator[tuple[int, int]]:
    yield from pairwise([*range(0, size, BLOCK), size])


def _sizes(size: int) -> Iterator[int]:
    yield from (end - first for first, end in _parts(size))


def _convert(dtype: np.dtype, numbers: Numbers) -> np.ndarray:
    if dtype.kind in "iub" and any(isinstance(number, float) for number in numbers):
        raise UsageError(f"{dtype.name} holds integers, not {numbers}")
    return np.array(numbers, dtype)


def _values(dtype: np.dtype, size: int, numbers: Numbers) -> Blocks:
    del size
    yield _convert(dtype, numbers)


def _same(dtype: np.dtype, size: int, numbers: Numbers) -> Blocks:
    (number,) = _convert(dtype, numbers)
    return (np.full(count, number, dtype) for count in _sizes(size))


def _arange(dtype: np.dtype, size: int, _: Numbers) -> Blocks:
    return (np.arange(first, end).astype(dtype) for first, end in _parts(size))


def _random(dtype: np.dtype, size: int, numbers: Numbers) -> Blocks:
    generator = _generator(numbers[0])
    if dtype.kind == "f":
        return (generator.standard_normal(count).astype(dtype) for count in _sizes(size))
    if dtype.kind == "b":
        return (generator.integers(0, 2, count).astype(dtype) for count in _sizes(size))
    bounds = np.iinfo(dtype)
    return _integers(generator, dtype, size, bounds.min, bounds.max)


def _uniform(dtype: np.dtype, size: int, numbers: Numbers) -> Blocks:
    seed, low, high = numbers
    if not low < high:
        raise UsageError(f"no numbers between {low} and {high}")
    generator = _generator(seed)
    if dtype.kind == "f":
        return (generator.uniform(low, high, count).astype(dtype) for count in _sizes(size))
    first, last = _convert(dtype, [low, high - 1])
    return _integers(generator, dtype, size, first, last)


def _integers(
    generator: np.random.Generator, dtype: np.dtype, size: int, first: Any, last: Any
) -> Blocks:
    return (generator.integers(first, last, count, dtype, endpoint=True) for count in _sizes(size))


def _generator(seed: float | int) -> np.random.Generator:
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"{seed} is not a seed", hint="give an integer from 0")
    return np.random.default_rng(seed)


_CONTENTS: Final[dict[str, tuple[Content, int | None, str]]] = {
    "zeros": (lambda dtype, size, _: _same(dtype, size, [0]), 0, "zeros"),
    "ones": (lambda dtype, size, _: _same(dtype, size, [1]), 0, "ones"),
    "arange": (_arange, 0, "arange"),
    "full": (_same, 1, "full(value)"),
    "values": (_values, None, "values(value, …)"),
    "random": (_random, 1, "random(seed)"),
    "uniform": (_uniform, 3, "uniform(seed, low, high)"),
}
"""Content -> (how it is made, how many arguments it takes, how it is written)."""


__all__ = ["BLOCK", "DescribedArray", "blocks_of", "make_array", "of_file", "plain_number"]
