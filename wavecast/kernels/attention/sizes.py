"""What the attention operators have in common besides their calls: how much work one is, and
arguments for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from wavecast.kernels.inputs import Make
from wavecast.model.bounds import Work

FLOPS = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
}
"""What the rates of a device call a dtype."""


def scores(queries: int, keys: int, left: int, right: int) -> int:
    """Pairs of one head that the window lets through, exactly; -1: no such side."""
    place = np.arange(queries, dtype=np.int64) + (keys - queries)
    last = np.full_like(place, keys - 1) if right < 0 else np.minimum(place + right, keys - 1)
    first = np.zeros_like(place) if left < 0 else np.maximum(place - left, 0)
    return int(np.maximum(last - first + 1, 0).sum())


def forward_work(
    *, pairs: float, queries: int, keys: int, hq: int, hkv: int, d: int, dv: int, dtype: str,
    rope: int = 0, out_bytes: int = 0,
) -> Work:  # fmt: skip
    """Two products of `pairs` in all heads; every operand once. `queries` and `keys` are rows of
    all sequences; `rope` elements of a head of q have one key for all heads."""
    size = getattr(torch, dtype).itemsize
    read = (queries * hq * (d + rope) + keys * (hkv * (d + dv) + rope)) * size
    written = queries * hq * (dv * (out_bytes or size) + 4)
    return Work({FLOPS[dtype]: 2.0 * pairs * (d + rope + dv)}, read, written, "formula", "formula")


def backward_work(forward: Work, d: int, dv: int) -> Work:
    """Five products; q, k, v, out and their gradients once."""
    flops = {n: f * (3 * d + 2 * dv) / (d + dv) for n, f in (forward.flops or {}).items()}
    read, written = forward.bytes_read or 0.0, forward.bytes_written or 0.0
    return Work(flops, read + 2 * written, read, "formula", "formula")


def options(
    make: Make, hq: int, dtype: str, causal: bool = False, left: int = -1, right: int = -1,
    sinks: bool = False, alibi: bool = False, soft_cap: float = 0.0, dropout: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """The arguments of `call.Options`, where not left out."""
    return {
        "causal": causal,
        "left": left,
        "right": right,
        "sinks": make.normal((hq,), dtype) if sinks else None,
        "alibi": make.uniform((hq,), dtype, 0.02, 0.5) if alibi else None,
        "soft_cap": soft_cap,
        "dropout": dropout,
        "seed": 12345 if dropout else 0,
    }


def gradients(
    make: Make, given: dict[str, Any], results: tuple[torch.Tensor, torch.Tensor]
) -> dict[str, Any]:
    """The arguments of a backward operator, from those of its forward one and its results."""
    out, lse = results
    dlse = None if given["sinks"] is None else make.normal(lse.shape, lse.dtype)
    return {
        "dout": make.normal(out.shape, out.dtype),
        "dlse": dlse,
        **given,
        "out": out,
        "lse": lse,
    }


__all__ = ["FLOPS", "backward_work", "forward_work", "gradients", "options", "scores"]
