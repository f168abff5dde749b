"""Operators that PyTorch does not have, and whose kernels move their tensors once: the Triton
kernels of `torch.compile`, and vLLM's kernels between GEMMs and attention.

Inductor records the arguments of a kernel; outputs follow inputs, and which argument is changed in
place is not in the profile: each tensor is counted once, the last one as written. The arguments of
vLLM's operators are those of `csrc/torch_bindings.cpp` of vLLM.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

from wavecast.dtypes import Spelling, element_bytes, lookup
from wavecast.errors import UnknownName
from wavecast.perfmodel.ops.base import Op
from wavecast.profiles.profile import ProfiledOp
from wavecast.systems.sources.part import SameBytes

_INDUCTOR: Final = re.compile(r"triton_(poi|red|per)_fused")
_TENSORS: Final[dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "_C::rms_norm": ((1, 2), (0,)),
    "_C::fused_add_rms_norm": ((0, 1, 2), (0, 1)),
    "_C::silu_and_mul": ((1,), (0,)),
    "_C::gelu_and_mul": ((1,), (0,)),
    "_C::gelu_tanh_and_mul": ((1,), (0,)),
    "_C::static_scaled_fp8_quant": ((1,), (0,)),
    "_C::dynamic_scaled_fp8_quant": ((1,), (0,)),
    "_C::dynamic_per_token_scaled_fp8_quant": ((1,), (0,)),
    "_C::rms_norm_static_fp8_quant": ((1, 2), (0,)),
    "_C::fused_add_rms_norm_static_fp8_quant": ((1, 2, 3), (0, 2)),
    "_C::rotary_embedding": ((0, 1, 2), (1, 2)),
}
"""Numbers of the arguments that are read and written."""
_CACHES: Final = {"_C_cache_ops::reshape_and_cache_flash", "_C_cache_ops::reshape_and_cache"}
"""Keys and values (arguments 0 and 1) go to as many elements of caches (2 and 3)."""


def operation(op: ProfiledOp) -> Op | None:
    """What a call with these sizes moves; None for other operators, and without sizes."""
    if not (op.name in _TENSORS or op.name in _CACHES or _INDUCTOR.match(op.name)):
        return None
    try:
        tensors = _tensors(op)
        read, written = _tensor_traffic(op.name, tensors)
    except (ValueError, TypeError, IndexError, OverflowError, UnknownName, RecursionError):
        return None
    if not (read and written and math.isfinite(read + written)):
        return None
    return SameBytes(op.name, read, written)


def _tensor_traffic(name: str, tensors: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Bytes that are read and written of tensors (elements, bytes of an element)."""
    sizes = [count * size for count, size in tensors]
    if name in _TENSORS:
        read, written = _TENSORS[name]
        return sum(sizes[number] for number in read), sum(sizes[number] for number in written)
    if name in _CACHES:
        written = sum(tensors[number][0] * tensors[number + 2][1] for number in (0, 1))
        return sizes[0] + sizes[1], written
    nonzero = [size for size in sizes if size]
    return sum(nonzero[:-1]), nonzero[-1]


def _tensors(op: ProfiledOp) -> list[tuple[int, float]]:
    """(elements, bytes of one) of every argument; (0, 0) for what is not a tensor. Elements that
    a stride of 0 repeats count once."""
    shapes, types = json.loads(op.sizes), json.loads(op.dtypes)
    steps = json.loads(op.strides) if op.strides else [[] for _ in shapes]
    return [_tensor(*tensor) for tensor in zip(shapes, types, steps, strict=True)]


def _tensor(shape: Any, name: str, steps: Any) -> tuple[int, float]:
    if name in ("", "Scalar", "ScalarList") or "List" in name:
        return 0, 0.0
    if len(steps) == len(shape):
        shape = [size for size, step in zip(shape, steps, strict=True) if step]
    return math.prod(int(size) for size in shape), element_bytes(lookup(name, Spelling.CXX).short)


__all__ = ["operation"]
