"""Operations as PyTorch runs them: tensors once, then a call to be timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wavecast.dtypes import lookup
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.ops import Op

Program = Callable[[], object]
_FLOATS = ("bf16", "fp16", "fp32", "fp64")


def program(op: Op, device: str = "cuda") -> Program:
    """A call that runs `op` once on `device`, its tensors already there.

    Raises UnknownName for a kind PyTorch has no single call for, UsageError for a dtype or an
    option it does not run.
    """
    if op.kind not in _MAKERS:
        raise UnknownName("operation of PyTorch", op.kind, _MAKERS)
    return _MAKERS[op.kind](op, device)


def _gemm(op: Any, device: str) -> Program:
    import torch

    dtype = _dtype(op.dtype)
    a = _random((op.batch, op.m, op.k), dtype, device)
    b = _random((op.batch, op.n, op.k), dtype, device).transpose(1, 2)
    if op.batch == 1:
        a, b = a[0], b[0]
    return lambda: torch.matmul(a, b)


def _attention(op: Any, device: str) -> Program:
    from torch.nn.functional import scaled_dot_product_attention as attention

    if op.backward or op.head != op.head_v or op.kv_dtype not in ("", op.dtype) or op.lengths:
        raise UsageError(f"{op}: not measured through PyTorch")
    dtype = _dtype(op.dtype)
    q = _random((op.batch, op.heads, op.seq_q, op.head), dtype, device)
    k, v = (_random((op.batch, op.kv_heads, op.seq_k, op.head), dtype, device) for _ in range(2))
    grouped = op.heads != op.kv_heads
    return lambda: attention(q, k, v, is_causal=op.causal, enable_gqa=grouped)


def _conv(op: Any, device: str) -> Program:
    import torch

    if op.direction != "forward" or op.layout != "nchw":
        raise UsageError(f"{op}: not measured through PyTorch")
    dtype = _dtype(op.dtype)
    x = _random((op.n, op.c, *op.image), dtype, device)
    w = _random((op.k, op.c // op.groups, *op.filter), dtype, device)
    call: Any = torch.conv2d if len(op.image) == 2 else torch.conv3d
    return lambda: call(x, w, None, op.stride, op.padding, op.dilation, op.groups)


def _softmax(op: Any, device: str) -> Program:
    import torch

    x = _random((op.rows, op.columns), _dtype(op.dtype), device)
    return lambda: torch.softmax(x, -1)


def _norm(op: Any, device: str) -> Program:
    from torch.nn import functional

    if op.function not in ("layer_norm", "rms_norm") or op.residual or op.dropout:
        raise UsageError(f"{op}: not measured through PyTorch")
    dtype = _dtype(op.dtype)
    x, w = (_random(shape, dtype, device) for shape in ((op.rows, op.columns), (op.columns,)))
    if op.function == "rms_norm":
        return lambda: functional.rms_norm(x, (op.columns,), w)
    return lambda: functional.layer_norm(x, (op.columns,), w, w)


def _elementwise(op: Any, device: str) -> Program:
    import torch
    from torch.nn import functional

    calls = {
        "add": torch.add,
        "mul": torch.mul,
        "exp": torch.exp,
        "tanh": torch.tanh,
        "gelu": functional.gelu,
        "silu": functional.silu,
    }
    if op.function not in calls or op.indexed or op.in_place:
        raise UsageError(f"{op}: not measured through PyTorch")
    inputs = [_random(shape, _dtype(dtype), device) for shape, dtype in op.operands]
    return lambda: calls[op.function](*inputs)


_MAKERS: dict[str, Callable[[Any, str], Program]] = {
    "gemm": _gemm,
    "attention": _attention,
    "conv": _conv,
    "softmax": _softmax,
    "norm": _norm,
    "elementwise": _elementwise,
}


def _dtype(name: str) -> Any:
    import torch

    if name not in _FLOATS:
        raise UsageError(f"{name} is not measured through PyTorch", hint=", ".join(_FLOATS))
    return getattr(torch, lookup(name).name)


def _random(shape: tuple[int, ...], dtype: Any, device: str) -> Any:
    import torch

    return torch.randn(shape, device=device, dtype=torch.float32).to(dtype)
