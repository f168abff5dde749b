"""One launch on one compute unit: the simulator's door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.perfmodel.cu.causes import BUSY, CAUSES
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.machine import ComputeUnit
from wavecast.perfmodel.cu.simulate import simulate
from wavecast.perfmodel.cu.state import Executed, Instructions, StallCounts, State
from wavecast.perfmodel.cu.streams import Streams
from wavecast.perfmodel.sm.machine import Multiprocessor

Array = np.ndarray[Any, Any]

EVENTS: Final = 0


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a compute unit did, in clocks.

    `clocks` is the time until its last workgroup ended, as if loops had run in full; `finish`
    (f64[n]) when each did. `stalls` (f64[instructions, causes]) are wave-clocks charged to an
    instruction and a cause of `CAUSES`, `counts` executions per instruction; `busy` the clocks of
    work of each of `BUSY`, over all SIMDs. `events` are the first issues (time, SIMD, wave slot,
    instruction, clocks), where asked for. `stretch` is the full time over the simulated one.
    """

    machine: ComputeUnit | Multiprocessor
    clocks: float
    finish: Array
    stalls: Array
    counts: Array
    busy: dict[str, float]
    events: Array
    stretch: float


def run(
    code: Code,
    streams: Streams,
    machine: ComputeUnit,
    *,
    template: Array,
    begins: Array,
    resident: int,
    events: int = EVENTS,
) -> Run:
    """Run workgroups of templates `template` (i32[n]), none before its clock in `begins`."""
    log = np.zeros((events, 5))
    finish = np.zeros(len(template))
    account = StallCounts.empty(len(code.pipe))
    logged = simulate(
        Instructions.of(code),
        Executed.of(streams),
        State.idle(machine, streams.waves, resident, code.registers),
        account,
        np.asarray(template, np.int32),
        np.asarray(begins, float),
        finish,
        log,
    )
    stretch = float(account.stalls.sum() / account.plain[0]) if account.plain[0] else 1.0
    return Run(
        machine=machine,
        clocks=float(finish.max(initial=0.0)) * stretch,
        finish=finish * stretch,
        stalls=account.stalls,
        counts=account.counts,
        busy=dict(zip(BUSY, account.busy.tolist(), strict=True)),
        events=log[:logged],
        stretch=stretch,
    )


__all__ = ["CAUSES", "Run", "run"]
