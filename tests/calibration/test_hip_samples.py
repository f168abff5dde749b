"""Which measurements of the HIP suite a fit sees, and coefficients of one evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration import hip_suite, kernel
from calibration.hip_samples import DEVICE, Row, evenly, rows
from wavecast.perfmodel.chip import Chip


def test_rows_of_both_halves(tmp_path: Path) -> None:
    pd.DataFrame(
        [{"kernel_name": "fir", "problem_size": "1024_taps8", "avg_ms": 0.005}]
    ).to_parquet(tmp_path / "hip_kernels_mi300a.parquet")
    param = "problem_size=nodes1024,iterations=51,avg_us={}"
    bench = [{"device": "MI300A", "metric": "bfs", "param": param.format(n)} for n in (4, 3, 2, 1)]
    other = {"device": "MI300A restricted to 120 CU", "metric": "bfs", "param": param.format(5)}
    pd.DataFrame([*bench, other]).to_parquet(tmp_path / "microbench.parquet")
    assert rows(tmp_path) == [
        Row("fir", "1024_taps8", 5e-6, public=True),
        Row("bfs", "nodes1024_4", 4e-6, public=False),
        Row("bfs", "nodes1024_8", 3e-6, public=False),
        Row("bfs", "nodes1024_16", 2e-6, public=False),
        Row("bfs", "nodes1024_32", 1e-6, public=False),
    ]


def test_chosen_sizes_end_with_the_last() -> None:
    given = [Row("fir", str(n), 1.0, public=True) for n in range(20)]
    assert [row.size for row in evenly(given, 4)] == ["4", "9", "14", "19"]
    assert evenly(given[:3], 5) == given[:3]


def test_coefficients_are_overridden_for_one_evaluation() -> None:
    before = Chip.of(DEVICE).coefficient("kernel", "tag")
    with kernel.overridden({"kernel.tag": 7.0}):
        assert Chip.of(DEVICE).coefficient("kernel", "tag") == 7.0
    assert Chip.of(DEVICE).coefficient("kernel", "tag") == before
    with pytest.raises(ZeroDivisionError), kernel.overridden({"kernel.tag": 7.0}):
        raise ZeroDivisionError
    assert Chip.of(DEVICE).coefficient("kernel", "tag") == before


def test_few_distances_are_shortened_in_a_step() -> None:
    (found,) = [
        s for s in hip_suite.steps("floydwarshall", "64_nodes") if isinstance(s, hip_suite.Kernel)
    ]
    distances = found.values[0]
    shorter = distances[:, 32][:, None] + distances[32][None, :] < distances
    assert np.mean(shorter) == pytest.approx(np.sum(1 / np.arange(1, 65)) / 64, rel=0.3)
