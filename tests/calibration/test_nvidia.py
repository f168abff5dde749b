"""The cells of NVIDIA kernels in the table of what was left out."""

from __future__ import annotations

import pytest

from calibration.nvidia import Scored, left_out, refusal, reported
from wavecast.perfmodel.distance import PredictionSubject


def row(series: str, device: str, size: int, ratio: float) -> Scored:
    subject = PredictionSubject("kernel", "Triton, predicted from code", sizes={"n": float(size)})
    return Scored(series, device, size, 2e-5 * ratio, 2e-5, 1e-5, subject)


ROWS = (
    row("norm", "h100_sxm", 100, 1.1),
    row("norm", "h100_sxm", 200, 1.2),
    row("embedding", "a100_80g_sxm", 150, 0.9),
    row("cross entropy", "a100_80g_sxm", 100, 1.0),
    row("cross entropy", "a100_80g_sxm", 180, 1.0),
)


def test_a_chip_is_left_out_of_the_others() -> None:
    table = left_out(ROWS)
    (norm,) = [cell for cell in table.cells if (cell.kind, cell.group) == ("chip", "h100_sxm")]
    assert (norm.distance, norm.n) == ("target not measured", 2)
    assert norm.logs == pytest.approx((0.0953, 0.1823))
    (own,) = [cell for cell in table.cells if (cell.kind, cell.group) == ("chip", "a100_80g_sxm")]
    assert own.n == 3


def test_a_kernel_is_left_out_of_the_others_on_its_chip() -> None:
    cells = [cell for cell in left_out(ROWS).cells if cell.kind == "model"]
    distances = {(cell.group, cell.distance): cell.n for cell in cells}
    assert distances == {
        ("norm", "target not measured"): 2,
        ("embedding", "measured"): 1,
        ("cross entropy", "other sizes or dtype"): 2,
    }
    assert {cell.command for cell in cells} == {"nvidia"}


def test_the_table_says_what_was_measured() -> None:
    (ranges,) = left_out(ROWS).measured.values()
    assert [(one.device, one.n) for one in ranges] == [("a100_80g_sxm", 3), ("h100_sxm", 2)]


def test_fewer_kernels_than_an_interval_needs_are_not_written() -> None:
    assert refusal(ROWS).startswith("not written: an interval needs 8 kernels, these rows have 3")
    assert not refusal([row(f"kernel {n}", "h100_sxm", 100, 1.0) for n in range(8)])


def test_reported_intervals_are_those_of_kernels_that_were_not_measured() -> None:
    """Their ends are a third below and half above the prediction."""
    assert reported(ROWS) == "5 of 5"
    assert reported([row("norm", "h100_sxm", 100, ratio) for ratio in (0.3, 1.0, 3.0)]) == "1 of 3"
