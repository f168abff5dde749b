"""Which kernels `torch.compile` makes of a graph, by a rule instead of Inductor's scheduler.

Products, convolutions and attention stay kernels of libraries. Element-wise calls, reductions,
norms, softmaxes, lookups and copies are generated code: such a call joins the kernel of a call
whose result it reads, if both iterate over as many elements and it reads nothing newer.
Statistics of batch norm end a kernel, since they reduce another dimension than rows. A kernel reads
what comes from outside of it, once, and writes what others read or nobody reads in the graph; its
time is that of an element-wise kernel of these bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.systems.sources.calls import ModuleGraph, OperatorCall, TensorSizes
from wavecast.systems.sources.elements import ELEMENTS, POINTWISE, base
from wavecast.systems.sources.kernels import CallKernel, launches_nothing, parts_of
from wavecast.systems.sources.part import KernelPart, SameBytes

RULE: Final = (
    "torch.compile by a fusion rule: element-wise calls, norms and reductions over as many "
    "elements that read one another are one kernel, priced by its bytes"
)
_ENDS: Final = frozenset(
    f"aten.{name}"
    for name in (
        *("native_batch_norm", "_native_batch_norm_legit", "native_batch_norm_backward"),
        *("_native_batch_norm_legit_functional", "native_group_norm", "native_group_norm_backward"),
    )
)
"""Calls whose kernel nothing joins."""


@dataclass
class _Group:
    """A kernel in the making: its calls, the elements it iterates over, whether its code is
    generated, and whether other calls may join it."""

    number: int
    size: int
    calls: list[int]
    generated: bool
    open: bool


def is_generated(call: OperatorCall) -> bool:
    """Whether Inductor generates code for a call."""
    plain = base(call.name)
    return call.name in ELEMENTS or plain in POINTWISE or call.pointwise


def fuse_graph(graph: ModuleGraph) -> Iterator[CallKernel]:
    """The kernels of a graph by the rule, in order."""
    groups = _groups(graph)
    of = {number: group for group in groups for number in group.calls}
    readers: dict[int, set[int]] = defaultdict(set)
    for number, group in of.items():
        for producer in _producers(graph, number):
            if producer in of:
                readers[producer].add(group.number)
    for group in groups:
        last = graph.calls[group.calls[-1]]
        if not group.generated or len(group.calls) == 1:
            for number in group.calls:
                call = graph.calls[number]
                for part in parts_of(call):
                    yield CallKernel(part, number, call.name, call.module, call.phase)
            continue
        members = set(group.calls)
        storages = {spec.storage for number in members for spec in graph.calls[number].outputs}
        read: dict[int, TensorSizes] = {}
        written = 0.0
        for number in group.calls:
            call = graph.calls[number]
            outside = _producers(graph, number) - members
            for spec in call.inputs:
                if spec.storage not in storages or (outside and _updates(call, spec)):
                    read[spec.storage] = spec
            if not readers[number] or readers[number] - {group.number}:
                written += call.bytes_written
        size = sum(spec.bytes for spec in read.values())
        names = list(dict.fromkeys(base(graph.calls[number].name) for number in group.calls))
        name = "fused " + ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        part = KernelPart(name, SameBytes(name, size, written))
        yield CallKernel(part, group.calls[-1], "fused", last.module, last.phase)


def _updates(call: OperatorCall, spec: TensorSizes) -> bool:
    """Whether a call writes the memory that it reads."""
    return any(result.storage == spec.storage for result in call.outputs)


def _producers(graph: ModuleGraph, number: int) -> set[int]:
    """The calls with kernels whose results a call reads, also through views."""
    producers: set[int] = set()
    for before in graph.calls[number].after:
        if launches_nothing(graph.calls[before]):
            producers |= _producers(graph, before)
        else:
            producers.add(before)
    return producers


def _groups(graph: ModuleGraph) -> list[_Group]:
    """A call joins the youngest group that it reads from, so a group depends on older ones only."""
    groups: list[_Group] = []
    of: dict[int, int] = {}
    for number, call in enumerate(graph.calls):
        if launches_nothing(call):
            continue
        sources = [of[producer] for producer in _producers(graph, number)]
        size = max(spec.elements for spec in (*call.outputs, *call.inputs[:1]))
        generated = is_generated(call)
        target = groups[max(sources)] if sources else None
        if not (generated and target and target.open and target.size == size) or _ends(call):
            target = _Group(len(groups), size, [], generated, generated and not _ends(call))
            groups.append(target)
        target.calls.append(number)
        of[number] = target.number
    return groups


def _ends(call: OperatorCall) -> bool:
    """Whether nothing joins the kernel of a call: its statistics reduce a dimension that others
    do not; a batch norm with given statistics is element-wise."""
    training = call.arguments.get("training", call.arguments.get("train", True))
    return call.name in _ENDS and bool(training)


__all__ = ["RULE", "fuse_graph", "is_generated"]
