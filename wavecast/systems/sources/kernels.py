"""The kernels of a graph of operator calls, as PyTorch launches them one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.dtypes import lookup
from wavecast.errors import UsageError
from wavecast.systems.sources.calls import ModuleGraph, OperatorCall
from wavecast.systems.sources.elements import ELEMENTS, POINTWISE, base, foreach, pointwise
from wavecast.systems.sources.part import KernelPart, UnknownOperator
from wavecast.systems.sources.products import PRODUCTS

NO_KERNEL: Final = frozenset(
    f"aten.{name}"
    for name in (
        *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach"),
        *("_unsafe_view", "lift_fresh", "alias", "resize_", "_local_scalar_dense", "set_"),
        *("_reshape_alias", "is_same_size", "_version", "requires_grad_", "result_type"),
        *("_assert_async", "_assert_tensor_metadata", "sym_size", "record_stream", "_has_any_zero"),
    )
)
"""Operators that launch nothing besides views."""


@dataclass(frozen=True, slots=True)
class CallKernel:
    """A kernel of the call number `call`."""

    part: KernelPart
    call: int
    operator: str
    module: str
    phase: str


def launches_nothing(call: OperatorCall) -> bool:
    """Whether a call only makes another view of memory, or touches no element."""
    if call.view or call.name in NO_KERNEL:
        return True
    return not any(spec.elements for spec in call.outputs)


def parts_of(call: OperatorCall) -> tuple[KernelPart, ...]:
    """The kernels of a call; one of unknown time for an operator or a form without an entry."""
    if launches_nothing(call):
        return ()
    plain = base(call.name)
    rule = PRODUCTS.get(call.name) or ELEMENTS.get(call.name)
    if rule is None and plain.startswith("_foreach_"):
        rule = foreach
    if rule is None and call.name.startswith("aten.") and (plain in POINTWISE or call.pointwise):
        rule = pointwise
    if rule is None:
        return (_unknown(call),)
    try:
        return tuple(rule(call))
    except (LookupError, UsageError):
        return (_unknown(call),)


def kernels(graph: ModuleGraph) -> Iterator[CallKernel]:
    """Every kernel of a graph, in order."""
    for number, call in enumerate(graph.calls):
        for part in parts_of(call):
            yield CallKernel(part, number, call.name, call.module, call.phase)


def _unknown(call: OperatorCall) -> KernelPart:
    spec = (call.outputs or call.inputs)[0]
    rate = lookup(spec.dtype).rate or "fp32"
    op = UnknownOperator(call.name, rate, call.flops, call.bytes_read, call.bytes_written)
    return KernelPart("unknown", op)


__all__ = ["NO_KERNEL", "CallKernel", "kernels", "launches_nothing", "parts_of"]
