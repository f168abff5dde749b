"""The interval that a prediction must have, from the published residuals of its class."""

from __future__ import annotations

import math

from wavecast.arch import Device
from wavecast.model.intervals import ANY, size_class, table
from wavecast.model.prediction import Prediction


def interval_of(prediction: Prediction, op_class: str, device: Device) -> tuple[float, float]:
    """Lower and upper end in seconds: the quantiles of the narrowest row that describes the
    prediction. It reads the table itself, and does not share the search of `intervals`."""
    own = (prediction.fidelity, device.target, prediction.limiter, size_class(prediction.seconds))
    rows = [
        (sum(part != "" for part in key), row)
        for key, row in table().items()
        if key[0] == op_class
        and all(part in ("", asked) for part, asked in zip(key[1:], own, strict=True))
        and (key[1] or not any(key[3:]))
        and (key[2] or not any(key[1:]))
    ]
    most = max((count for count, _ in rows), default=0)
    narrow = [row for count, row in rows if count == most] or [table()[ANY, "", "", "", ""]]
    if len(narrow) > 1:  # by limiter before by size
        own_limiter = (op_class, *own[:3], "")
        narrow = [table()[own_limiter]]
    low, high = min(0.0, narrow[0].low), max(0.0, narrow[0].high)
    return prediction.seconds * math.exp(low), prediction.seconds * math.exp(high)
