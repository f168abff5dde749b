"""Devices in a compiled graph, followed from its inputs: dynamo sees tensors of one device only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from wavecast.runtimes.torch_cpu.gpus import HOST
from wavecast.runtimes.torch_cpu.same_device import check_operands

_INDEXED: Final = frozenset(
    {"index", "_unsafe_index", "index_put", "index_put_", "_unsafe_index_put"}
)
"""Operators of a tensor, of indices, which may be the host's, and of values."""
_COPY: Final = "copy_"


def output_devices(
    graph: GraphModule, inputs: Sequence[Any], index: Callable[[Any], int | None]
) -> list[int | None]:
    """The GPUs, or the host, of what a graph gives for some inputs, None for an unknown one.
    `index` gives that of a tensor. Raises RuntimeError as PyTorch does for the same calls."""
    devices: dict[Node, int | None] = {}
    values = iter(inputs)
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            value = next(values)
            devices[node] = index(value) if isinstance(value, torch.Tensor) else None
        elif node.op == "output":
            results = node.args[0]
            break
        else:
            devices[node] = _device(node, devices)
    else:
        results = ()
    return [devices.get(result) if isinstance(result, Node) else None for result in results]


def _device(node: Node, devices: dict[Node, int | None]) -> int | None:
    name = str(getattr(node.target, "_opname", getattr(node.target, "__name__", node.target)))
    operands = [(devices.get(operand), _dims(operand)) for operand in node.all_input_nodes]
    if name == _COPY or name in _INDEXED:
        own = devices.get(node.args[0]) if isinstance(node.args[0], Node) else None
        if name in _INDEXED:
            indices = [(device, dims) for device, dims in operands if device != HOST]
            values = [(devices.get(value), _dims(value)) for value in _nodes(node.args[2:3])]
            for others in (indices, values):
                check_operands(name, [(own, 1), *others])
        return own
    check_operands(name, operands)
    return max((device for device, _ in operands if device is not None), default=None)


def _nodes(values: Sequence[Any]) -> list[Node]:
    return [value for value in values if isinstance(value, Node)]


def _dims(node: Node) -> int:
    value = node.meta.get("val")
    return value.dim() if isinstance(value, torch.Tensor) else 0


__all__ = ["output_devices"]
