"""`wavecast.ops`: the kernel library as functions on PyTorch tensors.

    from wavecast import ops

    y = ops.rms_norm(x, weight)                    # a GPU's tensors: Triton kernels
    with wavecast.device("gfx942"):
        y = ops.rms_norm(x, weight)                # the CPU's: the machine code of a GPU, executed

Every function is `torch.ops.wavecast.<name>` as well, with autograd and `torch.compile`. Importing
this module defines them. `names()` lists them, `register` adds one of your own
(docs/adding-an-op.md).
"""

from __future__ import annotations

from typing import Any

from wavecast.integrations.torch import library
from wavecast.integrations.torch.verify import verify
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.kernels.registry import operator, operators, register

library.install()


def names() -> tuple[str, ...]:
    """The names of all operators."""
    return tuple(operators())


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in operators():
        raise AttributeError(f"module 'wavecast.ops' has no operator {name!r}")
    return library.function(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *names()])


__all__ = ["Gradient", "Operator", "Tolerance", "names", "operator", "register", "verify"]
