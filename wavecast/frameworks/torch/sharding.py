"""Operators on DTensors: the placements that need no communication, from the descriptions.

PyTorch moves other placements to one of these. Importing this module registers all operators, now
and later; it is imported as soon as a program imports DTensor (`library.install`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

from wavecast.kernels import registry
from wavecast.kernels.operator import Operator
from wavecast.kernels.signature import TensorSpec

Strategy = tuple[list[Any], list[Any]]
"""Placements of the results and of the arguments; None for what is not a tensor."""


def register(operator: Operator) -> None:
    """Register the placements of an operator that returns its results."""
    if operator.mutates:
        return
    overload = getattr(torch.ops.wavecast, operator.name).default
    names = tuple(inspect.signature(operator.call).parameters)
    count = len(overload._schema.returns)

    def strategies(*args: Any, **kwargs: Any) -> list[Strategy]:
        arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        tensors = {name: value for name, value in arguments.items() if hasattr(value, "ndim")}
        placements = [
            ({}, [Replicate()] * count),
            *_batches(operator, tensors, arguments, count),
            *_dimensions(operator, tensors, arguments),
        ]
        return [
            (
                list(results),
                [placed.get(name, Replicate()) if name in tensors else None for name in arguments],
            )
            for placed, results in placements
        ]

    register_sharding(overload)(strategies)


Placed = tuple[Mapping[str, Any], Sequence[Any]]
"""Placements of arguments by name, those left out are replicated, and of the results."""


def _batches(
    operator: Operator, tensors: Mapping[str, Any], arguments: Mapping[str, Any], count: int
) -> Iterator[Placed]:
    """Shards of the dimensions over which the operator is a batch of calls."""
    batch = operator.batch
    if batch is None or batch.unless(**arguments):
        return
    along = [name for name in batch.along if name in tensors]
    if batch.merged:
        dimensions = 1
    elif operator.tensors is not None and operator.tensors.elementwise:
        shapes = {tuple(tensors[name].shape) for name in along}
        dimensions = tensors[along[0]].ndim if len(shapes) == 1 else 0
    else:
        specs = {spec.name: spec for spec in operator.tensors.arguments} if operator.tensors else {}
        dimensions = min(
            (_several(specs[name], tensors[name]) if name in specs else 0 for name in along),
            default=0,
        )
    for number in range(dimensions):
        yield dict.fromkeys(along, Shard(number)), [Shard(number)] * count


def _dimensions(
    operator: Operator, tensors: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[Placed]:
    """Shards of named dimensions whose elements are computed apart, or summed."""
    signature = operator.tensors
    if signature is None:
        return
    specs = {spec.name: spec for spec in signature.arguments if spec.name in tensors}
    leading = max((_several(spec, tensors[name]) for name, spec in specs.items()), default=0)
    for name in operator.independent:
        results = [_shard(name, spec, leading) for spec in signature.results]
        yield _along(name, specs, leading), results
    for name, unless in operator.summed.items():
        if not unless(**arguments):
            yield _along(name, specs, leading), [Partial() for _ in signature.results]


def _several(spec: TensorSpec, tensor: Any) -> int:
    """The number of dimensions that `...` covers, 0 where the signature has none."""
    fixed = sum(not dimension.leading for dimension in spec.dimensions)
    return tensor.ndim - fixed if fixed < len(spec.dimensions) else 0


def _along(name: str, specs: Mapping[str, TensorSpec], leading: int) -> Mapping[str, Any]:
    shards = {tensor: _shard(name, spec, leading) for tensor, spec in specs.items()}
    return {tensor: shard for tensor, shard in shards.items() if shard != Replicate()}


def _shard(name: str, spec: TensorSpec, leading: int) -> Any:
    """A shard of a named dimension; a replica of a tensor without it."""
    names = [dimension.name for dimension in spec.dimensions]
    if name not in names:
        return Replicate()
    position = names.index(name)
    after = any(dimension.leading for dimension in spec.dimensions[:position])
    return Shard(position - 1 + leading if after else position)


for _operator in registry.operators().values():
    register(_operator)
registry.listen(register)

__all__ = ["register"]
