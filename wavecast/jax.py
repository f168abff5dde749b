"""`wavecast.jax`: the kernel library as functions on JAX arrays.

    import wavecast.jax as wj

    y = wj.rms_norm(x, weight)          # the reference, in PyTorch on the CPU
    with wj.device("gfx942"):
        y = wj.rms_norm(x, weight)      # the machine code of a GPU, executed

Functions are those of `wavecast.ops`; `names()` lists them. They work under `jax.jit`, `jax.vmap`,
`jax.grad` and `jax.shard_map`. A traced function keeps the device of its trace.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from wavecast.errors import MissingTool
from wavecast.extras import install_hint
from wavecast.kernels import registry

try:
    from wavecast.frameworks.host_calls.binding import device, names
    from wavecast.frameworks.jax.functions import function
except ModuleNotFoundError as error:
    if error.name not in ("jax", "torch", "ml_dtypes"):
        raise
    hint = install_hint("jax")
    raise MissingTool(f"{error.name} is not installed", hint=hint) from None

_function = cache(function)


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or name not in registry.operators():
        raise AttributeError(f"module 'wavecast.jax' has no operator {name!r}")
    return _function(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *names()])


__all__ = ["device", "names"]
