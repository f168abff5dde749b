"""What the time would be with one thing of the machine changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from wavecast.perfmodel.ops.attention.machine import AttentionRates

_SOFTMAX = ("_forward", "_backward", "_decode")


def changes(machine: AttentionRates) -> Iterator[tuple[str, AttentionRates]]:
    """The change in words, and the changed machine."""
    hidden = _scale_coefficients(
        machine,
        lambda name: (
            name.startswith("vector_")
            and name.endswith(_SOFTMAX)
            and not name.startswith("vector_work_")
        ),
        0.0,
    )
    yield "softmax hidden behind the products", replace(hidden, exponentials=math.inf)
    yield (
        "launched without a call each (graph)",
        _scale_coefficients(
            machine, lambda name: name.startswith("call_") and name != "call_decode", 0.0
        ),
    )
    fast = replace(machine.chip, hbm=machine.chip.hbm_peak)
    shares = {name: 1.0 for name in machine.k if name.startswith("bandwidth_")}
    yield (
        "memory at the datasheet's bandwidth",
        replace(machine, chip=fast, k={**machine.k, **shares}),
    )


def _scale_coefficients(
    machine: AttentionRates, predicate: Callable[[str], bool], factor: float
) -> AttentionRates:
    constants = {name: v * factor if predicate(name) else v for name, v in machine.k.items()}
    return replace(machine, k=constants)


__all__ = ["changes"]
