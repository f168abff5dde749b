"""Sequences of launches and copies: the interval of the sum."""

from __future__ import annotations

import math

import pytest

from wavecast import arch
from wavecast.errors import UsageError
from wavecast.perfmodel import intervals
from wavecast.perfmodel.distance import PredictionSubject
from wavecast.perfmodel.prediction import IntervalBasis, Prediction
from wavecast.perfmodel.queue import Copy, HostWait
from wavecast.perfmodel.stream import QUEUE, PredictedLaunch, predict_stream

DEVICE = arch.load("mi300a")
GEMM = IntervalBasis("measured", 100, 9, "gemm", "")
CONV = IntervalBasis("measured", 100, 9, "conv", "")


def launch(basis: IntervalBasis, seconds: float = 1e-2, count: int = 1) -> PredictedLaunch:
    ends = 0.8 * seconds, 1.5 * seconds
    found = Prediction("mi300a", seconds, *ends, "hbm", "formula", {}, basis=basis)
    return PredictedLaunch(found, count)


def reach(*steps: PredictedLaunch | Copy) -> tuple[float, float]:
    found = predict_stream(DEVICE, steps)
    return 1 - found.low / found.seconds, found.high / found.seconds - 1


def test_errors_of_one_kind_add_up_and_those_of_two_kinds_partly_cancel() -> None:
    assert reach(launch(GEMM), launch(GEMM)) == pytest.approx((0.2, 0.5), rel=0.01)
    assert reach(launch(GEMM, count=7)) == pytest.approx((0.2, 0.5), rel=0.01)
    root = 2**-0.5
    assert reach(launch(GEMM), launch(CONV)) == pytest.approx((0.2 * root, 0.5 * root), rel=0.01)


def test_parts_add_up_to_the_time_and_every_basis_is_listed() -> None:
    found = predict_stream(DEVICE, [Copy("h2d", 1 << 20), launch(GEMM), launch(CONV), HostWait()])
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    assert set(found.parts) == {str(GEMM), str(CONV), QUEUE}
    assert found.bases[:2] == (GEMM, CONV)
    assert found.bases[2].distance == "chip and library not measured"
    launches = math.hypot(*(0.5 * found.parts[str(basis)] for basis in (GEMM, CONV)))
    assert launches < found.high - found.seconds < 1.1 * launches


def test_a_copy_alone_has_the_interval_of_the_queue() -> None:
    found = predict_stream(DEVICE, [Copy("d2h", 1 << 26)])
    row, _ = intervals.residuals(intervals.table(), PredictionSubject(QUEUE), DEVICE)
    ends = found.seconds * math.exp(min(0, row.low)), found.seconds * math.exp(max(0, row.high))
    assert (found.low, found.high) == pytest.approx(ends)
    assert ends[0] < ends[1]


@pytest.mark.parametrize(
    ("device", "step", "message"),
    [
        ("mi300x", launch(GEMM), "a prediction for mi300a"),
        ("mi300a", launch(GEMM, count=0), "0 la"),
    ],
)
def test_what_does_not_belong_to_the_device_is_refused(
    device: str, step: PredictedLaunch, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        predict_stream(arch.load(device), [step])
