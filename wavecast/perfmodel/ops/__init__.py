"""Operations whose time follows from a formula and tile configurations: kind -> class.

A module is imported when its kind is asked for, so that one op costs no more than itself.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from wavecast.errors import UnknownName
from wavecast.perfmodel.ops.base import Op

OPS: dict[str, tuple[str, str]] = {
    "attention": ("attention", "Attention"),
    "collective": ("collectives", "Collective"),
    "context_attention": ("collectives.context", "ContextAttention"),
    "conv": ("convolution", "Convolution"),
    "elementwise": ("elementwise", "Elementwise"),
    "gemm": ("gemm", "Gemm"),
    "gemm_collective": ("collectives.product", "GemmCollective"),
    "moe": ("moe", "FusedMoe"),
    "norm": ("norm", "Norm"),
    "reduction": ("reduction", "Reduction"),
    "softmax": ("softmax", "Softmax"),
}
"""Kind -> (module in this package, class)."""


@cache
def op(kind: str) -> type[Op]:
    """The class of a kind of operation. Raises UnknownName."""
    if kind not in OPS:
        raise UnknownName("operation", kind, OPS)
    module, name = OPS[kind]
    return getattr(import_module(f"{__package__}.{module}"), name)


__all__ = ["OPS", "Op", "op"]
