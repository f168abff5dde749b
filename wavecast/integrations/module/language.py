"""Arguments of a kernel written as text: `4096`, `f32[64x128]:random(0)`, `weights.npy`.

    value   = scalar | array | file
    scalar  = integer | number | "true" | "false" | "null" | dtype ":" number | "hex:" digits
    array   = dtype "[" size { "x" size } "]" [ ":" content ]
    content = "zeros" | "ones" | "arange" | "full(v)" | "values(v, …)" | "random(seed)"
            | "uniform(seed, low, high)"
    file    = path that ends in .npy

`docs/run.md` describes it for users.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from wavecast import files, limits
from wavecast.dtypes import Spelling, lookup
from wavecast.errors import InputError, MissingTool, UnknownName, UsageError
from wavecast.extras import install_hint

_DTYPES: Final = {
    name: lookup(name)
    for name in (
        *("f16", "f32", "f64", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
        *("bf16", "fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"),
    )
}
"""Arrays of a dtype that numpy lacks are tensors of PyTorch."""

_ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\](?::(?P<content>.*))?", re.DOTALL)
_TYPED = re.compile(r"(?P<dtype>[a-z]\w*):(?P<number>[^:]+)")
_CALL = re.compile(r"(?P<name>\w+)(?:\((?P<arguments>.*)\))?", re.DOTALL)
_DRAWN_BYTES: Final = 8
"""Bytes of an element while it is made: numbers are drawn in 64 bits."""
_DIMENSIONS: Final = 32
"""The most that every version of numpy has."""
_WORDS: Final = {"true": True, "false": False, "null": None}

Content = Callable[[np.dtype, tuple[int, ...], list[float | int]], np.ndarray]


def parse(text: str, folder: Path = Path()) -> Any:
    """The value of an argument: a Python or numpy scalar, None, bytes, an array or a tensor.

    Paths are relative to `folder`. Raises UsageError for text that does not describe a value,
    InputError for a file that is not an array, MissingTool for a dtype that needs PyTorch if
    PyTorch is not installed.
    """
    text = text.strip()
    if text.endswith(".npy"):
        return read_array(folder / text)
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("hex:"):
        try:
            return bytes.fromhex(text.removeprefix("hex:"))
        except ValueError:
            raise UsageError(f"{text!r} is not a sequence of pairs of hex digits") from None
    array = _ARRAY.fullmatch(text)
    if array is not None:
        return _array(array["dtype"], array["shape"], array["content"] or "zeros")
    typed = _TYPED.fullmatch(text)
    if typed is not None:
        (value,) = _made(typed["dtype"], (1,), f"values({typed['number']})")
        return value
    return _number(text)


def read_array(path: Path) -> np.ndarray:
    """The array of a .npy file. Raises InputError."""
    files.check_regular(path)
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(found, np.ndarray):
            raise InputError(f"{path} is an archive of arrays, not one array")
        limits.check_memory(2 * found.nbytes, str(path))
        return np.array(found)
    except (OSError, ValueError, EOFError, MemoryError, OverflowError, SyntaxError) as error:
        raise InputError(f"{path} is not an array of numpy: {error}") from None


def to_numpy(array: Any) -> np.ndarray:
    """An array numpy can hold: tensors of types it has none for become float32, exactly."""
    if isinstance(array, np.ndarray):
        return array
    import torch

    return array.detach().to(torch.float32).numpy()


def _array(dtype: str, shape: str, content: str) -> Any:
    try:
        sizes = tuple(int(size) for size in re.split(r"[x,]", shape))
    except ValueError:
        sizes = (-1,)
    if min(sizes) < 0 or len(sizes) > _DIMENSIONS:
        raise UsageError(f"{shape!r} is not a shape", hint="such as f32[64x128]")
    limits.check_memory(_DRAWN_BYTES * math.prod(sizes), f"{dtype}[{shape}]")
    return _made(dtype, sizes, content)


def _made(dtype: str, shape: tuple[int, ...], content: str) -> Any:
    """An array with its content."""
    known = _DTYPES.get(dtype)
    if known is None:
        raise UnknownName("dtype", dtype, _DTYPES)
    if known.spellings[Spelling.NUMPY]:
        return _filled(np.dtype(known.name), shape, content)
    try:
        import torch
    except ImportError:
        hint = install_hint("torch")
        raise MissingTool(f"{dtype} needs PyTorch", hint=hint) from None
    return torch.from_numpy(_filled(np.dtype("float32"), shape, content)).to(
        getattr(torch, known.name)
    )


def _filled(dtype: np.dtype, shape: tuple[int, ...], content: str) -> np.ndarray:
    call = _CALL.fullmatch(content.strip())
    entry = _CONTENTS.get(call["name"]) if call is not None else None
    if call is None or entry is None:
        raise UnknownName("content", content, _CONTENTS)
    make, count, usage = entry
    given = call["arguments"]
    arguments = [_plain_number(part) for part in given.split(",")] if given else []
    if count is not None and len(arguments) != count:
        raise UsageError(f"{content!r} is not {usage}")
    try:
        with np.errstate(over="raise"):
            return make(dtype, shape, arguments)
    except (OverflowError, FloatingPointError):
        raise UsageError(f"{dtype.name} cannot hold the numbers of {content!r}") from None


def _values(dtype: np.dtype, shape: tuple[int, ...], values: list[float | int]) -> np.ndarray:
    if dtype.kind in "iub" and any(isinstance(value, float) for value in values):
        raise UsageError(f"{dtype.name} holds integers, not {values}")
    found = np.array(values, dtype)
    if found.size != np.prod(shape):
        raise UsageError(f"{len(values)} values for {np.prod(shape)} elements")
    return found.reshape(shape)


def _full(dtype: np.dtype, shape: tuple[int, ...], values: list[float | int]) -> np.ndarray:
    return np.full(shape, _values(dtype, (1,), values)[0], dtype)


def _arange(dtype: np.dtype, shape: tuple[int, ...], _: list[float | int]) -> np.ndarray:
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


def _random(dtype: np.dtype, shape: tuple[int, ...], values: list[float | int]) -> np.ndarray:
    generator = _generator(values[0])
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def _uniform(dtype: np.dtype, shape: tuple[int, ...], values: list[float | int]) -> np.ndarray:
    seed, low, high = values
    if not low < high:
        raise UsageError(f"no numbers between {low} and {high}")
    if dtype.kind == "f":
        return _generator(seed).uniform(low, high, shape).astype(dtype)
    first, last = _values(dtype, (2,), [low, high - 1])
    return _generator(seed).integers(first, last, shape, dtype, endpoint=True)


def _generator(seed: float | int) -> np.random.Generator:
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"{seed} is not a seed", hint="give an integer from 0")
    return np.random.default_rng(seed)


_CONTENTS: Final[dict[str, tuple[Content, int | None, str]]] = {
    "zeros": (lambda dtype, shape, _: np.zeros(shape, dtype), 0, "zeros"),
    "ones": (lambda dtype, shape, _: np.ones(shape, dtype), 0, "ones"),
    "arange": (_arange, 0, "arange"),
    "full": (_full, 1, "full(value)"),
    "values": (_values, None, "values(value, …)"),
    "random": (_random, 1, "random(seed)"),
    "uniform": (_uniform, 3, "uniform(seed, low, high)"),
}
"""Content -> (how it is made, how many arguments it takes, how it is written)."""


def _number(text: str) -> int | float:
    try:
        return _plain_number(text)
    except UsageError:
        raise UsageError(
            f"{text!r} is not a value",
            hint="such as 4096, 1.5, null, f32[4096]:arange, f16[64x64]:random(0) or x.npy",
        ) from None


def _plain_number(text: str) -> int | float:
    text = text.strip()
    for read in (lambda word: int(word, 0), float):
        try:
            return read(text)
        except ValueError:
            continue
    raise UsageError(f"{text!r} is not a number")
