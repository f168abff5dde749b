from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavecast.report.kit import units


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.0, "1"), (1.236, "1.24"), (12.36, "12.4"), (999.7, "1,000"), (0.01234, "0.0123")],
)
def test_three_significant_digits(value, text):
    assert units.significant(value) == text


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.size(65536), "64 KiB"),
        (units.size(1000), "1,000 B"),
        (units.size(1.5 * 2**30), "1.5 GiB"),
        (units.seconds(12.34e-6), "12.3 µs"),
        (units.seconds(0.99999e-3), "1 ms"),
        (units.seconds(3e-12), "0.003 ns"),
        (units.si(1.3074e15, "FLOP/s"), "1.31 PFLOP/s"),
        (units.si(5.3e12, "B/s"), "5.3 TB/s"),
        (units.si(0, "FLOP"), "0 FLOP"),
        (units.cycles(512.4), "512"),
        (units.cycles(4.25), "4.2"),
        (units.count(1312), "1,312"),
        (units.count(0.5), "0.5"),
        (units.percent(1, 3), "33%"),
        (units.percent(1, 1000), "<1%"),
        (units.percent(1, 0), units.UNKNOWN),
        (units.plural(1, "finding"), "1 finding"),
        (units.plural(0, "finding"), "0 findings"),
    ],
)
def test_units(shown, text):
    assert shown == text


@pytest.mark.parametrize(
    "function", [units.size, units.seconds, units.si, units.cycles, units.count]
)
@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_unknown_is_a_dash(function, value):
    assert function(value) == units.UNKNOWN


@given(st.floats(min_value=1e-12, max_value=1e18))
def test_numbers_stay_short_and_true(value):
    text = units.significant(value).replace(",", "")
    assert "e" not in text
    assert abs(float(text) - value) <= 0.006 * value or value > 1e3
