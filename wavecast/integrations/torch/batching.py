"""`torch.vmap` of operators: in one call where the description says how (`Operator.batch`), else
one call for each and the results stacked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.operator import Batch, Operator


def rule(operator: Operator) -> Callable[..., Any]:
    """What `torch.library.register_vmap` takes."""
    names = tuple(inspect.signature(operator.call).parameters)

    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        call = getattr(torch.ops.wavecast, operator.name).default
        given = dict(zip(names, args, strict=False))
        batched = {
            name: value.movedim(dim, 0)
            for (name, value), dim in zip(given.items(), in_dims, strict=False)
            if isinstance(value, Tensor) and isinstance(dim, int)
        }
        if _at_once(operator.batch, given, batched):
            assert operator.batch is not None
            found = _one_call(call, operator.batch, given, batched, info.batch_size)
        else:
            found = _loop(call, given, batched, info.batch_size)
        return found, tuple(0 for _ in found) if isinstance(found, tuple) else 0

    return vmap


def _at_once(batch: Batch | None, given: dict[str, Any], batched: dict[str, Tensor]) -> bool:
    if batch is None or not set(batched) <= set(batch.along):
        return False
    first = {name: value[0] for name, value in batched.items()}
    return not batch.unless(**{**given, **first})


def _one_call(
    call: Any, batch: Batch, given: dict[str, Any], batched: dict[str, Tensor], size: int
) -> Any:
    whole = {
        name: batched[name] if name in batched else value.expand(size, *value.shape)
        for name, value in given.items()
        if name in batch.along and value is not None
    }
    if not batch.merged:
        return call(*{**given, **whole}.values())
    flat = {name: value.flatten(0, 1) for name, value in whole.items()}
    return _each(call(*{**given, **flat}.values()), lambda one: one.unflatten(0, (size, -1)))


def _loop(call: Any, given: dict[str, Any], batched: dict[str, Tensor], size: int) -> Any:
    found = []
    for number in range(size):
        own = {name: value[number] for name, value in batched.items()}
        found.append(call(*{**given, **own}.values()))
    if isinstance(found[0], Tensor):
        return torch.stack(found)
    return tuple(torch.stack(parts) for parts in zip(*found, strict=True))


def _each(found: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return change(found) if isinstance(found, Tensor) else tuple(map(change, found))


__all__ = ["rule"]
