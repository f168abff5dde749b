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

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from wavecast import limits
from wavecast.dtypes import lookup
from wavecast.errors import UnknownName, UsageError
from wavecast.runtimes.module.described_array import (
    DescribedArray,
    make_array,
    of_file,
    plain_number,
)

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
_DIMENSIONS: Final = 32
"""The most that every version of numpy has."""
_WORDS: Final = {"true": True, "false": False, "null": None}


def parse(text: str, folder: Path = Path()) -> Any:
    """The value of an argument: a Python or numpy scalar, None, bytes, an array or a tensor.
    Raises what `read` raises, and UsageError for an array that does not fit into memory."""
    value = read(text, folder)
    if not isinstance(value, DescribedArray):
        return value
    limits.check_memory(value.nbytes, text)
    return value.array()


def read(text: str, folder: Path = Path()) -> Any:
    """What a text says: a Python or numpy scalar, None, bytes, or a `DescribedArray`.

    Paths are relative to `folder`. Raises UsageError for text that does not describe a value,
    InputError for a file that is not an array, MissingTool for a dtype that needs PyTorch if
    PyTorch is not installed.
    """
    text = text.strip()
    if text.endswith(".npy"):
        return of_file(folder / text)
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("hex:"):
        try:
            return bytes.fromhex(text.removeprefix("hex:"))
        except ValueError:
            raise UsageError(f"{text!r} is not a sequence of pairs of hex digits") from None
    array = _ARRAY.fullmatch(text)
    if array is not None:
        described = _array(array["dtype"], array["shape"], array["content"] or "zeros")
        return described if array["content"] else replace(described, stated=False)
    typed = _TYPED.fullmatch(text)
    if typed is not None:
        (value,) = _array(typed["dtype"], "1", f"values({typed['number']})").array()
        return value
    return _number(text)


def to_numpy(array: Any) -> np.ndarray:
    """An array numpy can hold: tensors of types it has none for become float32, exactly."""
    if isinstance(array, np.ndarray):
        return array
    import torch

    return array.detach().to(torch.float32).cpu().numpy()


def _array(dtype: str, shape: str, content: str) -> DescribedArray:
    try:
        sizes = tuple(int(size) for size in re.split(r"[x,]", shape))
    except ValueError:
        sizes = (-1,)
    if min(sizes) < 0 or len(sizes) > _DIMENSIONS:
        raise UsageError(f"{shape!r} is not a shape", hint="such as f32[64x128]")
    kind = _DTYPES.get(dtype)
    if kind is None:
        raise UnknownName("dtype", dtype, _DTYPES)
    return make_array(kind, sizes, content, _CALL.fullmatch(content.strip()))


def _number(text: str) -> int | float:
    try:
        return plain_number(text)
    except UsageError:
        raise UsageError(
            f"{text!r} is not a value",
            hint="such as 4096, 1.5, null, f32[4096]:arange, f16[64x64]:random(0) or x.npy",
        ) from None


__all__ = ["parse", "read", "to_numpy"]
