"""What the descriptions of the attention operators have in common: sizes, work, test calls."""

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wavecast.dtypes import lookup
from wavecast.kernels.describe import Make, Signature, Work, uniform
from wavecast.kernels.signature import Values

_ABSENT = ("sinks", "alibi", "dlse", "mask")


def signatures(q: str, k: str, lse: str, *more: str) -> tuple[Signature, Signature]:
    """The tensors of a forward and of a backward operator, where q, k and lse have these
    dimensions; `more` are lines of both."""
    operands = f"q: [{q}, hq, d] float", f"k: [{k}, hkv, d] =q", f"v: [{k}, hkv, dv] =q", *more
    of_heads = "sinks?: [hq] float", "alibi?: [hq] float"
    results = f"out: [{q}, hq, dv] =q", f"lse: [{lse}] float32"
    grads = f"dq: [{q}, hq, d] =q", f"dk: [{k}, hkv, d] =q", f"dv: [{k}, hkv, dv] =q"
    of_results = f"dout: [{q}, hq, dv] =q", f"dlse?: [{lse}] float32"
    backward = Signature(*operands, *of_results, *results, *of_heads, returns=grads)
    return Signature(*operands, *of_heads, returns=results), backward


def scores(queries: int, keys: int, left: int, right: int) -> int:
    """Pairs of one head that the window lets through, exactly; -1: no such side."""
    position = np.arange(queries, dtype=np.int64) + (keys - queries)
    last = np.full_like(position, keys - 1) if right < 0 else np.minimum(position + right, keys - 1)
    first = np.zeros_like(position) if left < 0 else np.maximum(position - left, 0)
    return int(np.maximum(last - first + 1, 0).sum())


def forward_flops(**sizes: Any) -> dict[str, float]:
    """Two products of the pairs of all heads."""
    d, dv, rope = sizes["d"], sizes["dv"], sizes.get("rope", 0)
    return {lookup(sizes["dtype"]).rate: 2.0 * _pairs(**sizes) * (d + rope + dv)}


def backward_flops(**sizes: Any) -> dict[str, float]:
    """Five products of the pairs of all heads."""
    return {lookup(sizes["dtype"]).rate: 2.0 * _pairs(**sizes) * (3 * sizes["d"] + 2 * sizes["dv"])}


def _pairs(
    *, causal: bool = False, left: int = -1, right: int = -1, q: Any = None, k: Any = None,
    **sizes: Any,
) -> int:  # fmt: skip
    """Pairs of queries and keys that see each other, in all heads and sequences."""
    right = 0 if causal else right
    heads = sizes["hq"] if "hq" in sizes else sizes["h"]
    if q is None:
        return sizes["b"] * heads * scores(sizes["s"], sizes["t"], left, right)
    return heads * sum(scores(s, t, left, right) for s, t in zip(q, k, strict=True))


def expand_sizes(**sizes: Any) -> dict[str, Any]:
    """Sizes of a case, with those that signatures name and those that follow from others."""
    case = {**sizes, "dv": sizes.get("dv") or sizes["d"]}
    if sizes.get("mask"):
        case = {"mask_b": sizes["b"], "mask_h": 1, **case}
    if "q" in sizes:  # lengths of packed sequences
        q, k = sizes["q"], sizes["k"]
        case |= {"rows_q": sum(q), "rows_k": sum(k), "starts": len(q) + 1}
        case |= {"max_q": max(q), "max_k": max(k)}
    if sizes.get("dropout"):
        case["seed"] = 12345
    return case


def _starts(sequences: str) -> Values:
    """Where sequences start, whose lengths are the size called `sequences`."""
    return lambda make, shape, dtype, sizes: make.tensor([0, *accumulate(sizes[sequences])], dtype)


def _mask(
    make: Make, shape: tuple[int, ...], dtype: torch.dtype, sizes: Mapping[str, Any]
) -> Tensor:
    """Three keys of four are seen, and by the last query none."""
    mask = make.integers(shape, 0, 4, torch.int8) > 0
    mask[..., -1, :] = False
    return mask.to(dtype)


def inputs(signature: Signature) -> Callable[..., dict[str, Any]]:
    """`Operator.inputs` of a forward operator."""
    make_inputs = signature.inputs(
        absent=_ABSENT, alibi=uniform(0.02, 0.5), cu_seqlens_q=_starts("q"),
        cu_seqlens_k=_starts("k"), mask=_mask,
    )  # fmt: skip

    def without_lengths(make: Make, **sizes: Any) -> dict[str, Any]:
        arguments = make_inputs(make, **expand_sizes(**sizes))
        return {name: value for name, value in arguments.items() if not isinstance(value, tuple)}

    return without_lengths


def backward_inputs(
    signature: Signature, reference: Callable[..., Any]
) -> Callable[..., dict[str, Any]]:
    """`Operator.inputs` of a backward operator, with results of the forward `reference`. Calls with
    sinks have a gradient of lse."""
    forward = inputs(signature)

    def make_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
        arguments = forward(make, dlse=bool(sizes.get("sinks")), **sizes)
        if make.values:
            results = ("dout", "dlse", "out", "lse")
            out, lse = reference(**{n: x for n, x in arguments.items() if n not in results})
            arguments |= {"out": out, "lse": lse}
        return arguments

    return make_inputs


def gradient(*packed: str) -> dict[str, Any]:
    """What `derivative.by_operator` needs of a forward operator; `packed` are its arguments that
    say where sequences are."""
    options = ("causal", "scale", "left", "right", "sinks", "alibi", "soft_cap", "dropout", "seed")
    return {
        "grads": ("dout", "dlse"),
        "saved": ("q", "k", "v", "out", "lse", *packed, *options),
        "of": ("q", "k", "v", "sinks"),
        "outputs": ("out", "lse"),
        "optional": ("dlse",),
    }


def work(signature: Signature, flops: Callable[..., Any]) -> Callable[..., Work]:
    """`Operator.work`: every operand and result once."""
    work_of = signature.work(flops, absent=_ABSENT)
    return lambda **sizes: work_of(**expand_sizes(dlse=bool(sizes.get("sinks")), **sizes))
