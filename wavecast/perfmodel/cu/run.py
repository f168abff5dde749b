"""One launch on one compute unit: the entry point of its simulator."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.machine import ComputeUnit
from wavecast.perfmodel.cu.simulate import simulate
from wavecast.perfmodel.cu.state import Instructions, State
from wavecast.perfmodel.simulation.run import Executed, Run, StallCounts
from wavecast.perfmodel.streams import Streams

Array = np.ndarray[Any, Any]

EVENTS: Final = 0


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
    return Run.of(finish, account, log[:logged])


__all__ = ["run"]
