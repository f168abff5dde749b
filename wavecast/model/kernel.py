"""The prediction for one launch of one kernel, from a simulation of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from wavecast.isa.program import Program
from wavecast.model.account import NONE, Place, account
from wavecast.model.intervals import bracketed
from wavecast.model.launch import Launched, Timing, timing
from wavecast.model.prediction import Prediction
from wavecast.model.whatif import Changes

NOT_MODELLED: Final = (
    "address translation (TLB) misses",
    "contention between units for one L2 channel",
    "instruction cache misses of code that runs once",
)
KERNEL: Final = "kernel"
"""Class of the residuals that give a kernel its interval."""


def predicted(
    launched: Launched,
    program: Program,
    fidelity: str,
    *,
    what_if: bool = False,
    notes: Sequence[str] = (),
    widen: float = 1.0,
    simulated: Timing | None = None,
    operations: Mapping[Place, Sequence[str]] = NONE,
) -> Prediction:
    """The prediction with its account; `what_if` simulates every change as well.

    `notes` say why the interval is `widen` times as wide as usual; `operations` names those of
    the kernel's higher IR by source place, for shares by operation.
    """
    now = timing(launched) if simulated is None else simulated
    device = launched.chip.device
    prediction = Prediction(
        device=device.id,
        seconds=now.seconds,
        low=now.seconds,
        high=now.seconds,
        limiter=now.limiter,
        fidelity=fidelity,
        bounds=dict(now.bounds),
        assumed={"clock_ghz": round(now.clock / 1e9, 3)},
        lines=account(now, program, operations),
        what_if=Changes(launched).all(now) if what_if else (),
        not_modelled=(*launched.notes, *NOT_MODELLED),
        notes=tuple(notes),
    )
    return bracketed(prediction, KERNEL, device, widen=widen)


__all__ = ["KERNEL", "NOT_MODELLED", "predicted"]
