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
        arguments = dict(zip(names, args, strict=False))
        batched = {
            name: value.movedim(dim, 0)
            for (name, value), dim in zip(arguments.items(), in_dims, strict=False)
            if isinstance(value, Tensor) and isinstance(dim, int)
        }
        if _at_once(operator.batch, arguments, batched):
            assert operator.batch is not None
            output = _one_call(call, operator.batch, arguments, batched, info.batch_size)
        else:
            output = _loop(call, arguments, batched, info.batch_size)
        return output, tuple(0 for _ in output) if isinstance(output, tuple) else 0

    return vmap


def _at_once(batch: Batch | None, arguments: dict[str, Any], batched: dict[str, Tensor]) -> bool:
    if batch is None or not set(batched) <= set(batch.along):
        return False
    first = {name: value[0] for name, value in batched.items()}
    return not batch.unless(**{**arguments, **first})


def _one_call(
    call: Any, batch: Batch, arguments: dict[str, Any], batched: dict[str, Tensor], size: int
) -> Any:
    whole = {
        name: batched[name] if name in batched else value.expand(size, *value.shape)
        for name, value in arguments.items()
        if name in batch.along and value is not None
    }
    if not batch.merged:
        return call(*{**arguments, **whole}.values())
    flat = {name: value.flatten(0, 1) for name, value in whole.items()}
    return _each(
        call(*{**arguments, **flat}.values()), lambda tensor: tensor.unflatten(0, (size, -1))
    )


def _loop(call: Any, arguments: dict[str, Any], batched: dict[str, Tensor], size: int) -> Any:
    outputs = []
    for number in range(size):
        slices = {name: value[number] for name, value in batched.items()}
        outputs.append(call(*{**arguments, **slices}.values()))
    if isinstance(outputs[0], Tensor):
        return torch.stack(outputs)
    return tuple(torch.stack(parts) for parts in zip(*outputs, strict=True))


def _each(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return change(output) if isinstance(output, Tensor) else tuple(map(change, output))


__all__ = ["rule"]
