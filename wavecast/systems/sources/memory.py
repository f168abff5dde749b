"""What a module needs of a GPU's memory: weights, gradients, states, and the peak of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.systems.sources.calls import ModuleGraph


@dataclass(frozen=True, slots=True)
class ModuleMemory:
    """Bytes by use, and `available` of the GPU (None: not known)."""

    parts: Mapping[str, float]
    available: float | None

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Whether all parts fit the GPU; True where its memory is not known."""
        return self.available is None or self.total <= self.available


def module_memory(graph: ModuleGraph, device: Device) -> ModuleMemory:
    """Weights and inputs, and the most that tensors made by the calls take at once. A tensor lives
    from the call that makes its memory to the last call that reads it; a gradient that nobody reads
    lives to the end."""
    capacity = device.get("mem_size")
    available = None if capacity is None else float(device.facts.integer("mem_size", "B"))
    parts = {"weights": graph.parameter_bytes, "inputs": graph.input_bytes, **_dynamic_parts(graph)}
    return ModuleMemory({name: size for name, size in parts.items() if size}, available)


def _dynamic_parts(graph: ModuleGraph) -> dict[str, float]:
    size: dict[int, float] = {}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, call in enumerate(graph.calls):
        for spec in call.inputs:
            if spec.storage in first:
                last[spec.storage] = number
        for spec in call.outputs:
            if spec.storage not in graph.stored:
                first.setdefault(spec.storage, number)
                last[spec.storage] = number
                size[spec.storage] = max(size.get(spec.storage, 0.0), spec.bytes)
    changes: dict[int, float] = {}
    for storage, number in first.items():
        if last[storage] == number and graph.calls[number].phase == "backward":
            last[storage] = len(graph.calls)
        changes[number] = changes.get(number, 0.0) + size[storage]
        end = last[storage] + 1
        changes[end] = changes.get(end, 0.0) - size[storage]
    running = peak = 0.0
    for number in sorted(changes):
        running += changes[number]
        peak = max(peak, running)
    return {"activations, gradients": peak, "optimizer states": graph.state_bytes}


__all__ = ["ModuleMemory", "module_memory"]
