"""What the simulator of a compute unit reads and changes, as arrays of records: compiled functions
pass records around at no cost, which they do not for tuples of arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np

from wavecast.perfmodel.cu.code import COUNTERS, Code
from wavecast.perfmodel.cu.machine import ComputeUnit

Array = np.ndarray[Any, Any]

RING: Final = 64
"""Outstanding memory instructions of a wave and counter whose ends are known."""

_SPANS: Final = ("reads", "accumulators", "writes")
_INSTRUCTION: Final = np.dtype(
    [
        *((name, "i4") for name in ("pipe", "category", "kind", "slots", "priority", "size")),
        *((name, "f4") for name in ("issue", "latency", "chained", "idle", "lds_bytes", "moved")),
        *((name, "i4", (2,)) for name in (*_SPANS, "counters")),
        ("waits", "i4", (COUNTERS,)),
    ],
    align=True,
)
"""One instruction: the fields of `Code`, and of each kind of operands the rows of `spans`."""
_MACHINE: Final = np.dtype([(field.name, "f8") for field in fields(ComputeUnit)])
_UNIT: Final = np.dtype(
    [(name, "f8") for name in ("lds", "address", "scalar", "l2", "mall", "hbm", "fetch", "draws")]
    + [("prioritised", "i8")]
)
"""When each server that all waves share is free, how many latencies were drawn, and how many waves
have a priority."""
_SIMD: Final = np.dtype(
    [("waves", "i8"), *((name, "f8") for name in ("valu", "matrix", "trans", "port"))]
)
"""How many waves a SIMD has, and when its pipes are free; of an even one, when the LDS port is that
it shares with the next."""
_GROUP: Final = np.dtype([(n, "i8") for n in ("number", "living", "arrived")] + [("freed", "f8")])
"""A room for a workgroup: its number in the order of dispatch, -1 for none; waves that have not
ended, and of them those at the barrier; since when the room is free."""
_WAVE: Final = np.dtype(
    [(name, "i8") for name in ("at", "end", "row", "cause", "level")]
    + [(name, "f8") for name in ("after", "blocked", "charged")]
    + [("issued", "i8", (COUNTERS,))]
)
"""A wave: its next step, the end of its steps, the next row of its requests; the earliest time of
its next issue (`after`), and until when it need not be looked at (`blocked`); up to when its time
is charged, and to what the rest will be (`cause`); its priority (`level`); how many instructions
counted in each counter."""


class Instructions(NamedTuple):
    """A program: `records` of its instructions, `spans` of registers (i32[., 2]), and what each
    counter counts at most."""

    records: Array
    spans: Array
    limits: Array

    @classmethod
    def of(cls, code: Code) -> Instructions:
        """The arrays of a program."""
        records = np.zeros(len(code.pipe), _INSTRUCTION)
        for name in _INSTRUCTION.names or ():
            if name not in _SPANS:
                records[name] = getattr(code, name)
        spans, before = [getattr(code, name) for name in _SPANS], 0
        for name, operand_spans in zip(_SPANS, spans, strict=True):
            starts = getattr(code, f"{name}_start").astype(np.int64) + before
            records[name] = np.stack([starts[:-1], starts[1:]], axis=1)
            before += len(operand_spans)
        return cls(records, np.concatenate(spans).astype(np.int32), code.limits.astype(np.int64))


class State(NamedTuple):
    """A compute unit: `machine` (one record of its numbers), `unit` (one record), `simds`, the
    waves of each SIMD, the oldest first (`order`, i64[simds, slots]), `groups` (rooms), `waves`.

    `ready` (f64[slots, registers, 2]) is when a register's result is there, for all and for a
    matrix instruction that accumulates onto it. `done` and `reason` ([slots, COUNTERS, RING]) are
    when the last instructions that counted in a counter end, and why then.
    """

    machine: Array
    unit: Array
    simds: Array
    order: Array
    groups: Array
    waves: Array
    ready: Array
    done: Array
    reason: Array

    @classmethod
    def idle(cls, machine: ComputeUnit, waves: int, resident: int, registers: int) -> State:
        """A unit nothing runs on, with room for `resident` workgroups of `waves` waves."""
        slots = waves * resident
        groups = np.zeros(resident, _GROUP)
        groups["number"] = -1
        values = tuple(float(getattr(machine, name)) for name in _MACHINE.names or ())
        return cls(
            machine=np.array([values], _MACHINE),
            unit=np.zeros(1, _UNIT),
            simds=np.zeros(machine.simds, _SIMD),
            order=np.full((machine.simds, slots), -1, np.int64),
            groups=groups,
            waves=np.zeros(slots, _WAVE),
            ready=np.zeros((slots, registers, 2)),
            done=np.zeros((slots, COUNTERS, RING)),
            reason=np.zeros((slots, COUNTERS, RING), np.int64),
        )


__all__ = ["RING", "Instructions", "State"]
