"""Results that depend on the order in which workgroups and waves run.

A launch is repeated from the same memory in other orders: the reverse one, and permutations from
fixed seeds. Memory that differs afterwards is reported, one report per tensor, by its first element
that differs and the instructions that write to it. The results of the launch itself stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.dtypes import is_dtype, lookup
from wavecast.emulate import engine
from wavecast.emulate.check.writers import WriterMode
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.engine import RunOrder
from wavecast.emulate.native import native_kernel
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import AddressInterval, LaunchTensor, bytes_at, tensors_of

SEEDS = (1, 2)
"""Seeds of the permutations after the reverse order."""

Snapshot = list[np.ndarray]
"""The bytes of every range."""


class OrderChecks:
    """Repeats launches; `found` is called with the reports of a launch that has any."""

    def __init__(self, report: Callable[[list[Report]], None]) -> None:
        self.found = report
        self._plain: dict[str, NativeKernel] = {}

    def snapshot(self, ranges: Sequence[AddressInterval]) -> Snapshot:
        """The memory of a launch before it runs."""
        return [bytes_at(*pair).copy() for pair in ranges]

    def compare(
        self, launch: Launch, ranges: Sequence[AddressInterval], before: Snapshot, budget: int
    ) -> None:
        """Repeat a launch that has ended. Memory is as it left it afterwards.

        Raises ExecutionError for a launch that breaks off in another order.
        """
        after = self.snapshot(ranges)
        native = self._native(launch.code)
        data = native.data.copy()
        reports: dict[str, Report] = {}
        try:
            for order in _orders(launch, native.layout.lanes):
                _restore(ranges, before)
                native.data[:] = data
                engine.run(native, launch, list(ranges), budget=budget, order=order)
                for tensor, number, values in self._differing(launch, native, ranges, after):
                    if tensor.name not in reports:
                        report = self._report(launch, ranges, before, tensor, number, values)
                        reports[tensor.name] = report
        finally:
            _restore(ranges, after)
            native.data[:] = data
        if reports:
            self.found(list(reports.values()))

    def _native(self, code: CodeObject) -> NativeKernel:
        if code.digest not in self._plain:
            self._plain[code.digest] = native_kernel(code)
        return self._plain[code.digest]

    def _differing(
        self,
        launch: Launch,
        native: NativeKernel,
        ranges: Sequence[AddressInterval],
        after: Snapshot,
    ) -> Iterator[tuple[LaunchTensor, int, tuple[str, str]]]:
        """Tensors that differ: the tensor, the address of the first element, both values."""
        tensors = tensors_of(launch, native.descriptor, ranges)
        for pair, reference in zip(ranges, after, strict=True):
            now = bytes_at(*pair)
            different = np.flatnonzero(now != reference)
            if not len(different):
                continue
            address = pair[0] + int(different[0])
            owners = [t for t in tensors if t.first <= address < t.end]
            whole = LaunchTensor(f"the memory at {pair[0]:#x}", *pair[:1], *pair)
            owner = min(owners, key=lambda t: t.end - t.first, default=whole)
            size = owner.element or 1
            start = address - (address - owner.pointer) % size
            offset = start - pair[0]
            values = [
                _element_text(part[offset : offset + size], owner.dtype)
                for part in (reference, now)
            ]
            yield owner, start, (values[0], values[1])

    def _report(
        self,
        launch: Launch,
        ranges: Sequence[AddressInterval],
        before: Snapshot,
        tensor: LaunchTensor,
        address: int,
        values: tuple[str, str],
    ) -> Report:
        """The report of one element, with the instructions that write to it."""
        _restore(ranges, before)
        mode = WriterMode(address, address + max(tensor.element, 1))
        native = native_kernel(launch.code, mode)
        engine.run(native, launch, list(ranges), mode=mode)
        program = native.kernel.program
        writers = [program.instructions[index] for index in np.flatnonzero(mode.counts)]
        first = writers[0] if writers else program.instructions[-1]
        second = next((w for w in writers[1:] if w.location != first.location), None)
        return Report(
            kind=Kind.ORDER_DEPENDENT,
            kernel=program.name,
            target=program.target,
            message=(
                f"makes {tensor.index(address)} {values[0]} or {values[1]}, by the order in which "
                f"workgroups and waves run; {_advice(first.decoded.opcode.memory_form.operation)}"
            ),
            instruction=first.index,
            text=first.decoded.text,
            location=first.location,
            addresses=(address,),
            other=second.index if second is not None else None,
            other_text=second.decoded.text if second is not None else "",
            other_location=second.location if second is not None else None,
            count=max(1, int(mode.counts.sum())),
        )


def _advice(operation: str) -> str:
    if operation:
        return "add partial results in a fixed order instead of atomically"
    return "let one workgroup write each element"


def _orders(launch: Launch, lanes: int) -> Iterator[RunOrder]:
    groups, waves = math.prod(launch.grid), -(-math.prod(launch.block) // lanes)
    yield RunOrder(
        np.arange(groups - 1, -1, -1, dtype=np.int64), np.arange(waves - 1, -1, -1, dtype=np.int64)
    )
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        order = random.permutation(groups), random.permutation(waves)
        yield RunOrder(*(numbers.astype(np.int64) for numbers in order))


def _restore(ranges: Sequence[AddressInterval], content: Snapshot) -> None:
    for pair, original in zip(ranges, content, strict=True):
        bytes_at(*pair)[:] = original


def _element_text(data: np.ndarray, dtype: str) -> str:
    """An element as a number where numpy has its dtype, else its bytes."""
    name = lookup(dtype).name if is_dtype(dtype) else ""
    if name in np.sctypeDict and np.dtype(name).itemsize == len(data):
        return str(data.view(name)[0])
    return f"0x{data[::-1].tobytes().hex()}"


__all__ = ["OrderChecks"]
