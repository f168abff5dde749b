"""Operations of kernels whose names and grids give their sizes, for launches without operators.

PyTorch's element-wise kernels have the elements of a thread in their template arguments, so the
grid gives the elements of the launch to within one workgroup. FlashAttention has a workgroup per
block of queries, sequence and head; keys are taken to be as many as queries, heads of keys as many
as heads. What a GEMM reduces over is neither in its name nor in its grid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from wavecast.dtypes import Spelling, element_bytes, lookup
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.ops.attention import Attention
from wavecast.perfmodel.ops.base import Op
from wavecast.profiles.kernel_forms import KernelForm, form
from wavecast.profiles.profile import ProfiledKernel
from wavecast.systems.sources.part import SameBytes

_ELEMENTWISE: Final = re.compile(
    r"at::native::(?:vectorized_elementwise_kernel<(?P<vector>\d+),"
    r"|elementwise_kernel(?:_manual_unroll)?<(?P<threads>\d+), (?P<each>\d+),"
    r"|unrolled_elementwise_kernel<.*, (?P<unrolled>\d+), TrivialOffset)"
)
_TENSORS: Final = re.compile(r"(?:std::array|at::detail::Array)<char\*, (\d+)(?:ul)?>")
_TYPES: Final = re.compile(
    r"c10::BFloat16|c10::Half|c10::Float8_\w+|\b(?:float|double|long|int|short|bool|signed char|"
    r"unsigned char)\b(?! (?:long|int))"
)
_LEAST_PER_THREAD: Final = 4
"""Elements that a thread of a vectorised kernel computes at least (`thread_work_size`)."""


def operation(kernel: ProfiledKernel) -> Op | None:
    """What a launch of this name and grid computes; None where they do not give its sizes."""
    if not all(kernel.blocks):
        return None
    for build in _BUILDERS:
        try:
            op = build(kernel, form(kernel.name))
        except (UnknownName, UsageError):
            continue
        if op is not None:
            return op
    return None


def _elementwise(kernel: ProfiledKernel, kernel_form: KernelForm) -> Op | None:
    """The tensors that a kernel reads and writes, as if all had the type of most of them."""
    shape = _ELEMENTWISE.search(kernel.name)
    types = _TYPES.findall(kernel.name.split("(at::TensorIteratorBase&, ")[0])
    if shape is None or not types:
        return None
    if shape["threads"]:
        each = int(shape["threads"]) * int(shape["each"])
    else:
        vector = int(shape["vector"] or shape["unrolled"])
        each = math.prod(kernel.threads) * max(_LEAST_PER_THREAD, vector)
    if not each:
        return None
    dtype = lookup(max(types, key=types.count), Spelling.CXX).short
    size = math.prod(kernel.blocks) * each * element_bytes(dtype)
    tensors = _tensors(kernel.name)
    return SameBytes(f"{kernel_form.dtype} element-wise", (tensors - 1) * size, size)


def _tensors(name: str) -> int:
    """The tensors that a kernel reads and writes."""
    match = _TENSORS.search(name)
    if match:
        return int(match[1])
    return 3 if "BinaryFunctor" in name or "CUDAFunctor_add" in name else 2


def _attention(kernel: ProfiledKernel, kernel_form: KernelForm) -> Op | None:
    if "flash_fwd_kernel" not in kernel.name or not (kernel_form.head and kernel_form.tile):
        return None
    blocks, batch, heads = kernel.blocks
    length = blocks * kernel_form.tile[0]
    return Attention(
        batch=batch,
        heads=heads,
        kv_heads=heads,
        seq_q=length,
        seq_k=length,
        head=kernel_form.head,
        head_v=kernel_form.head,
        dtype=kernel_form.dtype,
        causal=bool(kernel_form.causal),
    )


_BUILDERS: Final[tuple[Callable[[ProfiledKernel, KernelForm], Op | None], ...]] = (
    _elementwise,
    _attention,
)

__all__ = ["operation"]
