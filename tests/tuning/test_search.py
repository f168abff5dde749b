"""Spaces and searches, on a score that is known."""

from __future__ import annotations

import math
from random import Random

import pytest

from wavecast.arch import capabilities
from wavecast.compile.configuration import Configuration
from wavecast.errors import UnknownName, UsageError
from wavecast.tuning.budget import SearchBudget
from wavecast.tuning.search import STRATEGIES, strategy
from wavecast.tuning.space import SearchSpace, wide

OWN = (
    Configuration.of({"BLOCK_M": 32, "BLOCK_N": 64, "GROUP": 8, "num_warps": 4, "num_stages": 2}),
    Configuration.of({"BLOCK_M": 64, "BLOCK_N": 32, "GROUP": 4, "num_warps": 4, "num_stages": 2}),
)


def test_configurations_are_equal_in_any_order() -> None:
    one = Configuration.of({"num_warps": 4, "B": 1, "A": 2})
    assert one == Configuration.of({"A": 2, "B": 1, "num_warps": 4})
    assert str(one) == "A=2, B=1, num_warps=4"
    assert str(one.with_("num_ctas", 1)) == str(one)
    assert one.with_("A", 3).settings["A"] == 3 != one.settings["A"]


def test_shards_cover_all_configurations() -> None:
    space = wide(OWN, capabilities("gfx942"), matrix=True)
    counts = [0, 0, 0]
    for configuration in space.combinations():
        counts[configuration.shard(3)] += 1
    assert sum(counts) == space.size
    assert min(counts) > space.size / 4


def test_a_wide_space_has_neighbours_of_blocks_and_the_target_s_options() -> None:
    axes = wide(OWN, capabilities("gfx942"), matrix=True).axes
    assert axes["BLOCK_M"] == axes["BLOCK_N"] == (16, 32, 64, 128)
    assert axes["GROUP"] == (8, 4)  # no block: values as they appear
    assert axes["num_warps"] == (2, 4, 8)
    assert axes["matrix_instr_nonkdim"] == (16, 32)
    assert axes["kpack"] == (1, 2)
    assert "kpack" not in wide(OWN, capabilities("gfx950"), matrix=True).axes
    assert "matrix_instr_nonkdim" not in wide(OWN, capabilities("gfx942"), matrix=False).axes
    assert "matrix_instr_nonkdim" not in wide(OWN, capabilities("gfx1100"), matrix=True).axes


def _seconds(configuration: Configuration) -> float:
    """Smooth in the logarithms, least at 128 × 64, 8 warps, 3 stages; 16 does not run."""
    values = configuration.settings
    if values["BLOCK_M"] == 16:
        return math.inf
    best = {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8}
    far = sum(abs(math.log2(values[name] / at)) for name, at in best.items())
    return 1.0 + far + abs(values["num_stages"] - 3)


def _run(name: str, space: SearchSpace, most: int, seed: int = 0) -> dict[Configuration, float]:
    scores: dict[Configuration, float] = {}
    for batch in strategy(name)(space, scores, Random(seed)):
        for configuration in batch:
            assert configuration not in scores
            if len(scores) == most:
                return scores
            scores[configuration] = _seconds(configuration)
    return scores


def test_an_exhaustive_search_tries_all_once() -> None:
    space = wide(OWN, capabilities("gfx1100"), matrix=False)
    assert set(OWN) <= set(scores := _run("exhaustive", space, 10**6))
    assert len([c for c in scores if c not in OWN]) == space.size


@pytest.mark.parametrize("seed", range(4))
def test_evolution_finds_the_best_in_a_part_of_the_space(seed: int) -> None:
    space = wide(OWN, capabilities("gfx942"), matrix=True)
    assert space.size > 2000
    scores = _run("evolution", space, 250, seed)
    assert min(scores.values()) == 1.0
    assert list(scores)[: len(OWN)] == list(OWN)


@pytest.mark.parametrize("name", STRATEGIES)
def test_equal_seeds_try_equal_configurations(name: str) -> None:
    space = wide(OWN, capabilities("gfx942"), matrix=True)
    assert list(_run(name, space, 80, 3)) == list(_run(name, space, 80, 3))


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_search_ends_when_every_configuration_is_known(name: str) -> None:
    space = SearchSpace(
        OWN, {"BLOCK_M": (32, 64), "BLOCK_N": (64,), "num_warps": (4,), "num_stages": (2,)}
    )
    assert len(_run(name, space, 100)) == len(OWN) + space.size


def test_an_unknown_search_is_named() -> None:
    with pytest.raises(UnknownName, match="nearest known: evolution"):
        strategy("evolutoin")


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("300", SearchBudget(300)),
        ("90s", SearchBudget(seconds=90.0)),
        ("10m", SearchBudget(seconds=600.0)),
    ],
)
def test_budgets(text: str, budget: SearchBudget) -> None:
    assert SearchBudget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "0", "-3", "10 minutes", "1.5h", "m"])
def test_an_invalid_budget_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid budget"):
        SearchBudget.parse(text)


def test_parts_of_a_budget_cover_it() -> None:
    assert SearchBudget(10).part(3) == SearchBudget(4)
    assert SearchBudget(seconds=5.0).part(3) == SearchBudget(seconds=5.0)
    assert SearchBudget(10).sequential(3) == SearchBudget(10)
    assert SearchBudget(seconds=6.0).sequential(3) == SearchBudget(seconds=2.0)
