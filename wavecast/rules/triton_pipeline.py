"""Which loops of a TTGIR module load tiles for a dot, and whether Triton pipelined them."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.compile.ttgir import DOTS, IrModule, Operation, tensors
from wavecast.rules.triton_slice import uses

LOADS = ("tt.load", "amdg.buffer_load")

_ASYNC = ("async", "to_local", "tma", "tdm")
"""Parts of names of operations that copy to shared memory on their own."""


@dataclass(frozen=True, slots=True)
class DotLoop:
    """A loop with a dot. `loads` are its loads of whole tiles into registers."""

    loop: Operation
    loads: tuple[Operation, ...]
    pipelined: bool


def dot_loops(ir_module: IrModule) -> list[DotLoop]:
    """The loops whose own body (inner loops apart) holds a dot, in order. A loop around a pipelined
    one is none: its dot and its loads are the ends of the pipeline."""
    result: list[DotLoop] = []
    for loop in ir_module.operations_named("scf.for"):
        body = [
            operation
            for operation in ir_module.within(loop)
            if ir_module.loop_of(operation) is loop
        ]
        if not any(operation.name in DOTS for operation in body):
            continue
        loads = tuple(
            operation for operation in body if operation.name in LOADS and _is_tile(operation)
        )
        result.append(DotLoop(loop, loads, _is_pipelined(loop, body, loads)))
    pipelined = {id(found.loop) for found in result if found.pipelined}
    return [
        found
        for found in result
        if not any(id(inner) in pipelined for inner in ir_module.within(found.loop))
    ]


def _is_tile(load: Operation) -> bool:
    """Whether a load is of a whole tile, not of one value or a row of them."""
    return any(len(tensor.shape) > 1 for tensor in tensors(load.types))


def _is_pipelined(loop: Operation, body: list[Operation], loads: tuple[Operation, ...]) -> bool:
    """Whether the loop carries tiles from one iteration to the next, or copies asynchronously."""
    if "!ttg.memdesc<" in loop.text:
        return True
    if any(word in operation.name for operation in body for word in _ASYNC):
        return True
    loaded = {name for load in loads for name in load.results}
    return any(
        operation.name == "scf.yield" and loaded & set(uses(operation)) for operation in body
    )
