"""The interval that a prediction must have, from the published residuals of its class."""

from __future__ import annotations

import math

from wavecast.arch import Device
from wavecast.perfmodel.distance import WIDER, DistanceClass, PredictionSubject, related_families
from wavecast.perfmodel.intervals import table
from wavecast.perfmodel.prediction import Prediction


def interval_of(
    prediction: Prediction, subject: PredictionSubject, device: Device
) -> tuple[float, float]:
    """Lower and upper end in seconds, of the narrowest row that describes the prediction. It reads
    the table itself, and does not share the search of `intervals`."""
    known = table()
    wide = related_families(subject.family, device)
    row = None
    own: DistanceClass | None = known.measured.distance(subject, device.id).distance_class
    while own is not None:
        described = {
            key: row
            for key, row in known.rows.items()
            if key[0] == own.value
            and key[1] in (("", *wide) if not key[2] and not key[3] else (subject.family,))
            and key[2] in ("", device.id)
            and key[3] in ("", subject.library or "best")
        }
        if described:
            narrow = max(
                described,
                key=lambda key: (
                    bool(key[1]),
                    key[1] == subject.family,
                    bool(key[2]),
                    bool(key[3]),
                ),
            )
            row = described[narrow]
            break
        own = WIDER[own]
    assert row is not None
    low, high = min(0.0, row.low), max(0.0, row.high)
    return prediction.seconds * math.exp(low), prediction.seconds * math.exp(high)
