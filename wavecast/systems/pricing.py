"""Times of the kernels of a step on a device, each predicted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from wavecast.arch import Device
from wavecast.errors import MissingFact, Unpredictable, UsageError
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.roofline import roofline
from wavecast.systems.graph import Node


@dataclass(frozen=True, slots=True)
class Priced:
    """A kernel and its time in seconds with an interval. `bounded` says why no predictor knows it:
    its time is then that of its bytes and FLOPs at sustained rates."""

    node: Node
    seconds: float
    low: float
    high: float
    limiter: str
    kernel: str
    bounded: str = ""


_DEVICES: Final = 16
_OPERATIONS: Final = 1 << 16
"""Devices, and operations of each, whose predictions a process keeps."""


@lru_cache(maxsize=_DEVICES)
def _predictions(device: Device) -> dict[Op, Prediction | Priced]:
    """What was predicted for a device so far, by all models and deployments of this process."""
    del device
    return {}


class Prices:
    """The times of operations on one device; equal ones are predicted once per process.

    `scale` has factors of times by the name of a kernel, else of its module. `bounded` says why
    the time of a kernel is only a bound, by its name: all that were asked for.
    """

    def __init__(self, device: Device, scale: Mapping[str, float] | None = None) -> None:
        self.device = device
        self.bounded: dict[str, str] = {}
        self._scale = scale or {}
        self._known = _predictions(device)

    def of(self, node: Node) -> Priced:
        """The time of a kernel. Raises MissingFact where not even its bound is known."""
        price = self._base_price(node)
        factor = self._scale.get(node.name, self._scale.get(node.module, 1.0))
        if factor == 1.0:
            return price
        ends = {name: factor * getattr(price, name) for name in ("seconds", "low", "high")}
        return replace(price, **ends)

    def _base_price(self, node: Node) -> Priced:
        prediction = self._known.get(node.op)
        if prediction is None:
            try:
                prediction = node.op.predict(self.device)
            except (MissingFact, Unpredictable, UsageError) as error:
                prediction = self._bound(node, error.message)
            if len(self._known) >= _OPERATIONS:
                self._known.clear()
            self._known[node.op] = prediction
        if isinstance(prediction, Priced):
            self.bounded[node.name] = prediction.bounded
            return Priced(
                node,
                prediction.seconds,
                prediction.low,
                prediction.high,
                prediction.limiter,
                prediction.kernel,
                prediction.bounded,
            )
        kernel = str(
            prediction.assumed.get("library") or prediction.assumed.get("kernel") or node.op.kind
        )
        return Priced(
            node, prediction.seconds, prediction.low, prediction.high, prediction.limiter, kernel
        )

    def _bound(self, node: Node, why: str) -> Priced:
        limit = roofline(node.op.work(), self.device)
        seconds = limit.sustained_seconds or limit.floor_seconds
        if seconds is None:
            raise MissingFact(why)
        return Priced(node, seconds, seconds, 4 * seconds, "bound", "not known", why)


__all__ = ["Priced", "Prices"]
