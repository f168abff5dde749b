"""One launch on one SM: the entry point of its simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavecast.errors import Unpredictable
from wavecast.perfmodel.simulation.run import Executed, Run, StallCounts
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.sm.machine import Multiprocessor
from wavecast.perfmodel.sm.simulate import simulate
from wavecast.perfmodel.sm.state import SmInstructions, SmState
from wavecast.perfmodel.streams import Streams

Array = np.ndarray[Any, Any]


def run(
    code: SmCode,
    streams: Streams,
    machine: Multiprocessor,
    *,
    arrivals: Array,
    template: Array,
    begins: Array,
    resident: int,
    events: int = 0,
) -> Run:
    """Run workgroups of templates `template` (i32[n]), none before its clock in `begins`.

    `arrivals` (i64[barriers]) are those that complete a phase of each memory barrier. Raises
    Unpredictable where warps wait for each other in an order that is not modelled.
    """
    log = np.zeros((events, 5))
    finish = np.zeros(len(template))
    account = StallCounts.empty(len(code.pipe))
    logged = simulate(
        SmInstructions.of(code, arrivals),
        Executed.of(streams),
        SmState.idle(machine, streams.waves, resident),
        account,
        np.asarray(template, np.int32),
        np.asarray(begins, float),
        finish,
        log,
    )
    if logged < 0:
        raise Unpredictable("its warps wait for memory barriers in an order that is not modelled")
    return Run.of(finish, account, log[:logged])


__all__ = ["run"]
