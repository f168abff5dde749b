"""`wavecast.jax`: the kernel library as functions on JAX arrays.

    import wavecast.jax as wj

    y = wj.rms_norm(x, weight)          # the reference, in PyTorch on the CPU
    with wj.device("gfx942"):
        y = wj.rms_norm(x, weight)      # the machine code of a GPU, executed

Functions are those of `wavecast.ops`; `names()` lists them. They work under `jax.jit`, `jax.vmap`,
`jax.grad` and `jax.shard_map`. A traced function keeps the device of its trace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from wavecast import arch
from wavecast.errors import MissingTool
from wavecast.kernels import registry

try:
    from wavecast.integrations.jax import functions
except ModuleNotFoundError as error:
    if error.name not in ("jax", "torch", "ml_dtypes"):
        raise
    raise MissingTool(
        f"{error.name} is not installed", hint="pip install 'wavecast[jax]'"
    ) from None


def names() -> tuple[str, ...]:
    """The names of all operators that take arrays."""
    return tuple(name for name in registry.operators() if _has_arrays(name))


@contextlib.contextmanager
def device(selector: str = "gfx942") -> Iterator[None]:
    """Calls that are traced in the block execute the machine code of this GPU on the CPU. Raises
    UnknownName for an unknown GPU."""
    token = functions.target.set(arch.load(selector).id)
    try:
        yield
    finally:
        functions.target.reset(token)


@cache
def _function(name: str) -> Callable[..., Any]:
    return functions.function(registry.operator(name))


def _has_arrays(name: str) -> bool:
    annotations = registry.operator(name).call.__annotations__
    return not any("list" in str(one) for one in annotations.values())


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in registry.operators():
        raise AttributeError(f"module 'wavecast.jax' has no operator {name!r}")
    return _function(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *names()])


__all__ = ["device", "names"]
