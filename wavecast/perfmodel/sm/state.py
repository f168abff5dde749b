"""What the simulator of an SM reads and changes, as arrays of records."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np

from wavecast.perfmodel.sm.code import COUNTERS, PIPES, SmCode
from wavecast.perfmodel.sm.machine import Multiprocessor

Array = np.ndarray[Any, Any]

RING: Final = 64
"""Outstanding operations of a warp and counter whose ends are known."""
BARRIERS: Final = 16
"""Named barriers of a workgroup."""
MEMORY_BARRIERS: Final = 64
"""Memory barriers (`mbarrier`) of a workgroup that are followed."""
PHASES: Final = 32
"""Latest phases of a memory barrier whose ends are known."""

_INSTRUCTION: Final = np.dtype(
    [
        *((n, "i4") for n in ("pipe", "kind", "stall", "written", "read", "counter", "left")),
        *((n, "i4") for n in ("slots", "members", "barrier")),
        *((n, "f4") for n in ("issue", "lds_bytes")),
        ("waits", "i4", (6,)),
    ],
    align=True,
)
_MACHINE: Final = np.dtype([(field.name, "f8") for field in fields(Multiprocessor)])
_UNIT: Final = np.dtype([(n, "f8") for n in ("data", "l2", "hbm", "tensor", "stored")])
"""When each server that all warps share is free, and when the last store has ended."""
_SIMD: Final = np.dtype([("warps", "i8"), ("free", "f8", (PIPES,))])
"""How many warps a sub-partition has, and when its pipes are free."""
_GROUP: Final = np.dtype(
    [
        *(("number", "i8"), ("living", "i8"), ("freed", "f8"), ("arrived", "i8", (BARRIERS,))),
        *(("arrivals", "i8", (MEMORY_BARRIERS,)), ("complete", "i8", (MEMORY_BARRIERS,))),
    ]
)
"""A room for a workgroup: its number in the order of dispatch, -1 for none; warps that have not
ended; since when it is free; warps at each barrier; of memory barriers the arrivals in this phase
and the phases that are complete."""
_WARP: Final = np.dtype(
    [(name, "i8") for name in ("at", "end", "row", "cause", "waits", "copied_why")]
    + [(name, "f8") for name in ("after", "blocked", "charged", "copied")]
    + [("issued", "i8", (COUNTERS,))]
)
"""A warp: its next step, the end of its steps, the next row of its requests; the earliest time of
its next issue (`after`), until when it need not be looked at (`blocked`), up to when its time is
charged and to what the rest will be (`cause`); what of other warps it waits for; when its copies to
shared memory end; how many operations counted in each counter."""


class SmInstructions(NamedTuple):
    """A program: `records` of its instructions, and how many arrivals complete a phase of each
    memory barrier (`needed`)."""

    records: Array
    needed: Array

    @classmethod
    def of(cls, code: SmCode, arrivals: Array) -> SmInstructions:
        """The arrays of a program."""
        records = np.zeros(len(code.pipe), _INSTRUCTION)
        for name in _INSTRUCTION.names or ():
            records[name] = getattr(code, name)
        whole = np.ones(MEMORY_BARRIERS, np.int64)
        whole[: len(arrivals)] = arrivals
        return cls(records, whole)


class SmState(NamedTuple):
    """An SM: `machine` (one record of its numbers), `unit` (one record), `simds`, the warps of
    each, the oldest first (`order`), `groups` (rooms), `warps`. `done` and `reason` ([warps,
    COUNTERS, RING]) are when the last operations of a counter end, and why then; `phases` ([groups,
    MEMORY_BARRIERS, PHASES]) when phases do."""

    machine: Array
    unit: Array
    simds: Array
    order: Array
    groups: Array
    warps: Array
    done: Array
    reason: Array
    phases: Array

    @classmethod
    def idle(cls, machine: Multiprocessor, warps: int, resident: int) -> SmState:
        """An SM nothing runs on, with room for `resident` workgroups of `warps` warps."""
        slots = warps * resident
        groups = np.zeros(resident, _GROUP)
        groups["number"] = -1
        values = tuple(float(getattr(machine, name)) for name in _MACHINE.names or ())
        return cls(
            machine=np.array([values], _MACHINE),
            unit=np.zeros(1, _UNIT),
            simds=np.zeros(machine.simds, _SIMD),
            order=np.full((machine.simds, slots + 1), -1, np.int64),
            groups=groups,
            warps=np.zeros(slots, _WARP),
            done=np.zeros((slots, COUNTERS, RING)),
            reason=np.zeros((slots, COUNTERS, RING), np.int64),
            phases=np.zeros((resident, MEMORY_BARRIERS, PHASES)),
        )


__all__ = ["BARRIERS", "MEMORY_BARRIERS", "PHASES", "RING", "SmInstructions", "SmState"]
