"""Intervals from residuals of left-out groups, such that a new group is covered.

Residuals of one group (the rows of a chip, of a paper, of a model) resemble each other: a group
counts as one, however many residuals it has. For a residual r of a group, F is the distribution of
the residuals of the other groups, each group with equal weight. The score of r is the share of F
that the smallest central interval with r contains, |2 F(r) - 1| (Chernozhukov, Wüthrich and Zhu,
"Distributional conformal prediction", PNAS 2021). The interval is the central one of all groups
at the level that is the `coverage` quantile of the scores. Its ends need not be symmetric.

The scores are those of groups that F does not have: their quantile is that of a new group, but for
what one group more or less changes in F. A factor of 1 + 1/K on the coverage, for K groups (Lee,
Barber and Willett, "Distribution-free inference with hierarchical data", 2023), covers residuals
that are equal within a group; those of real groups vary, and it makes intervals too wide.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

LEAST_GROUPS: Final = 8
"""Left-out groups that residuals need: fewer say little about the tenth that is farthest off."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """Residuals (f64[n], sorted) with the share of the weight at or below each (f64[n])."""

    values: Array
    below: Array

    @classmethod
    def of(cls, groups: Sequence[Array], weights: Sequence[Array]) -> Weighted:
        """The residuals of groups (f64[n_g] each, not empty) with their weights. Every group gets
        the same weight in all. Raises ValueError without groups."""
        if not groups:
            raise ValueError("no groups")
        values = np.concatenate(groups)
        shares = np.concatenate([one / one.sum() for one in weights]) / len(groups)
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.cumsum(shares[order]))

    def share_below(self, values: Array) -> Array:
        """The share of the weight below each of `values`, half of what is equal (f64[m])."""
        known = np.concatenate([[0.0], self.below])
        left = known[np.searchsorted(self.values, values, "left")]
        right = known[np.searchsorted(self.values, values, "right")]
        return (left + right) / 2

    def quantile(self, share: float) -> float:
        """The smallest residual that at least `share` of the weight is at or below."""
        index = int(np.searchsorted(self.below, share - 1e-12))
        return float(self.values[min(index, len(self.values) - 1)])


def interval(
    groups: Mapping[str, tuple[Array, Array]],
    coverage: float,
    least: int = LEAST_GROUPS,
    apart: Callable[[str, str], bool] = operator.ne,
) -> tuple[float, float] | None:
    """The ends that contain `coverage` of the residuals of a new group; None with fewer than
    `least` groups. `groups` have residuals and weights (f64[n_g] each).

    `apart(group, other)` is whether the other group may tell about the group as known ones about a
    new one: a new model, say, has no runs on any chip. Groups without such others have no score;
    None without any score."""
    if len(groups) < least:
        return None
    scores, counts = [], []
    for name, (own, weight) in groups.items():
        others = [found for other, found in groups.items() if apart(name, other)]
        if others:
            known = Weighted.of([r for r, _ in others], [w for _, w in others])
            scores.append(np.abs(2 * known.share_below(own) - 1))
            counts.append(weight)
    if not scores:
        return None
    level = Weighted.of(scores, counts).quantile(coverage)
    every = Weighted.of([r for r, _ in groups.values()], [w for _, w in groups.values()])
    return every.quantile((1 - level) / 2), every.quantile((1 + level) / 2)


__all__ = ["LEAST_GROUPS", "Weighted", "interval"]
