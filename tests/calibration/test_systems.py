"""Errors of ratios of systems, from pairs of runs."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from calibration import systems  # noqa: E402


def pairs_of(*models: float) -> pd.DataFrame:
    """20 pairs per model, which differ by its value with either sign, around a common error."""
    rows = []
    for number, apart in enumerate(models):
        for index in range(20):
            common, sign = 0.1 * index, 1 if index % 2 else -1
            rows.append(("tpot", "engine", f"model {number}", common, common + sign * apart))
    return pd.DataFrame(rows, columns=["metric", "kind", "model", "one", "two"])


def test_what_both_systems_have_wrong_is_not_in_the_ratio() -> None:
    equal = pairs_of(0.0, 0.0, 0.0, 0.0)
    assert systems.ratio_half(equal) == 0.0
    assert systems.correlation(equal) == pytest.approx(1.0)
    assert systems.ratio_half(pairs_of(0.1, 0.1, 0.1)) == pytest.approx(0.1)


def test_the_interval_of_a_ratio_is_of_models_that_were_left_out() -> None:
    found = pairs_of(0.1, 0.2, 0.2, 0.4)
    assert systems.ratio_half(found) == pytest.approx(0.4)
    # Of the four, only the last is outside of the interval from the others.
    assert systems.ratio_coverage(found) == pytest.approx(0.75)


def test_two_models_are_too_few() -> None:
    assert systems.ratio_half(pairs_of(0.1, 0.2)) is None
    assert np.isnan(systems.ratio_coverage(pairs_of(0.1, 0.2, 0.3)))
