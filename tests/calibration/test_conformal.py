"""Intervals from residuals of left-out groups."""

from __future__ import annotations

import numpy as np
import pytest

from calibration import conformal

Groups = dict[str, tuple[np.ndarray, np.ndarray]]


def drawn(random: np.random.Generator, count: int) -> Groups:
    """Groups of residuals that differ in mean, in width and in their number."""
    found = {}
    for number in range(count):
        width = 0.08 * np.exp(random.normal(0, 0.5))
        values = random.normal(0, 0.15) + width * random.normal(size=random.integers(3, 60))
        found[str(number)] = values, np.ones(len(values))
    return found


@pytest.mark.parametrize("count", [8, 12, 30])
def test_a_new_group_is_covered(count: int) -> None:
    random = np.random.default_rng(1)
    covered = []
    for _ in range(150):
        groups = drawn(random, count + 1)
        new, _ = groups.pop("0")
        ends = conformal.interval(groups, 0.8)
        assert ends is not None
        covered.append(((ends[0] <= new) & (new <= ends[1])).mean())
    assert 0.75 <= np.mean(covered) <= 0.87  # few groups: rather too wide than too narrow


def test_groups_count_equally_however_many_residuals_they_have() -> None:
    groups = {str(n): (np.linspace(-0.1, 0.1, 20), np.ones(20)) for n in range(9)}
    many = {**groups, "many": (np.linspace(2.9, 3.1, 20_000), np.ones(20_000))}
    ends = conformal.interval(many, 0.8)
    assert ends is not None
    assert ends[1] < 0.2


def test_weights_are_counts_of_what_a_residual_represents() -> None:
    one = np.array([0.0, 1.0, 2.0])
    repeated = conformal.Weighted.of([np.array([0.0, 1.0, 1.0, 1.0, 2.0])], [np.ones(5)])
    weighted = conformal.Weighted.of([one], [np.array([1.0, 3.0, 1.0])])
    for share in (0.1, 0.5, 0.79, 0.81, 1.0):
        assert weighted.quantile(share) == repeated.quantile(share)
    assert weighted.share_below(one) == pytest.approx([0.1, 0.5, 0.9])


def test_ends_need_not_be_symmetric() -> None:
    random = np.random.default_rng(2)
    groups = {str(n): (random.exponential(0.3, 50) - 0.02, np.ones(50)) for n in range(20)}
    ends = conformal.interval(groups, 0.8)
    assert ends is not None
    assert ends[1] > 5 * abs(ends[0])


def test_few_groups_give_no_interval() -> None:
    assert (
        conformal.interval(drawn(np.random.default_rng(0), conformal.LEAST_GROUPS - 1), 0.8) is None
    )


def test_a_group_is_scored_by_groups_that_are_apart_from_it() -> None:
    """Two chips of a model resemble each other: only other models tell about a new one."""
    random = np.random.default_rng(3)
    groups = {}
    for model in range(9):
        bias = random.normal(0, 0.3)
        for chip in "abc":
            groups[f"{model} {chip}"] = bias + 0.01 * random.normal(size=20), np.ones(20)
    apart = conformal.interval(groups, 0.8, apart=lambda one, other: one[0] != other[0])
    alike = conformal.interval(groups, 0.8)
    assert apart is not None
    assert alike is not None
    assert apart[1] - apart[0] > alike[1] - alike[0]
    assert conformal.interval(groups, 0.8, apart=lambda one, other: False) is None
