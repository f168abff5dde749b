"""One launch on one SM: the entry point of its simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavecast.errors import Unpredictable
from wavecast.perfmodel.cu.causes import BUSY
from wavecast.perfmodel.cu.run import Run
from wavecast.perfmodel.cu.state import Executed, StallCounts
from wavecast.perfmodel.cu.streams import Streams
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.sm.machine import Multiprocessor
from wavecast.perfmodel.sm.simulate import simulate
from wavecast.perfmodel.sm.state import SmInstructions, SmState

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


__all__ = ["run"]
