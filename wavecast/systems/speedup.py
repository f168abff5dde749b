"""Speedups of a load between two predictions of a deployed model, with intervals.

A speedup has an interval from the errors of the kernels. The same predictors are used before and
after, so an error of a module is in both times and partly cancels: with a factor f on the seconds
of one module, from the low to the high end of its interval,

    speedup(f) = (before + (f - 1) module before) / (after + (f - 1) module after)

and modules err independently. Where a change does not touch a module, its error only dilutes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from wavecast.json_objects import High, JsonObject, Low, NonNegative, doc
from wavecast.systems.answer import ServingAnswer
from wavecast.systems.step import LayerKernel, StepTime


class Speedup(JsonObject):
    """A time before over the time after a change."""

    value: Annotated[NonNegative, doc("the prediction")]
    low: Low
    high: High


@dataclass(frozen=True, slots=True)
class ChangedServing:
    """A load after a change: speedups of the times, and of the output tokens per second of one
    GPU."""

    before: ServingAnswer
    after: ServingAnswer
    ttft: Speedup
    tpot: Speedup
    rate_per_gpu: Speedup


def compare_serving(before: ServingAnswer, after: ServingAnswer, gpus: float) -> ChangedServing:
    """The speedups of a load; `gpus` is the number of GPUs before over that after."""
    decode = (before.decode, before.kernels), (after.decode, after.kernels)
    prefill = (before.prefill, before.prefill_kernels), (after.prefill, after.prefill_kernels)
    rate = _speedup(1 / before.output_rate.value, 1 / after.output_rate.value, *decode)
    return ChangedServing(
        before,
        after,
        ttft=_speedup(before.ttft.value, after.ttft.value, *prefill),
        tpot=_speedup(before.tpot.value, after.tpot.value, *decode),
        rate_per_gpu=Speedup(rate.value * gpus, rate.low * gpus, rate.high * gpus),
    )


_Steps = tuple[StepTime, Sequence[LayerKernel]]


def _speedup(before: float, after: float, old: _Steps, new: _Steps) -> Speedup:
    """The speedup of two times whose composition is that of a step each."""
    value = before / after
    was, now = _shares(*old), _shares(*new)
    below = above = 0.0
    for module, (share, low, high) in was.items():
        new_share = now.get(module, (0.0, 1.0, 1.0))[0]
        ends = []
        for factor in (low, high):
            top, bottom = 1 + (factor - 1) * share, 1 + (factor - 1) * new_share
            ends.append(math.log(top / bottom))
        below, above = math.hypot(below, min(0.0, *ends)), math.hypot(above, max(0.0, *ends))
    return Speedup(value, value * math.exp(-below), value * math.exp(above))


def _shares(step: StepTime, kernels: Sequence[LayerKernel]) -> Mapping[str, tuple[float, ...]]:
    """Module -> its share of a step, and the ends of its interval over its seconds."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for kernel in kernels:
        total = sums[kernel.priced.node.module]
        for index, name in enumerate(("seconds", "low", "high")):
            total[index] += getattr(kernel.priced, name) * kernel.count
    return {
        module: (min(1.0, seconds / step.seconds), low / seconds, high / seconds)
        for module, (seconds, low, high) in sums.items()
        if seconds
    }


__all__ = ["ChangedServing", "Speedup", "compare_serving"]
