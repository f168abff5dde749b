"""The expected times of configurations."""

from __future__ import annotations

import math
from dataclasses import replace

from wavecast.compile.configuration import Configuration
from wavecast.tuning.records import Result
from wavecast.tuning.search_state import SearchState


def _at(block: int, warps: int) -> Configuration:
    return Configuration.of({"BLOCK": block, "num_warps": warps})


def _learn(
    state: SearchState, configuration: Configuration, *seconds: float | None, fidelity="static"
):
    state.add(
        configuration, tuple(Result(configuration, seconds=s, fidelity=fidelity) for s in seconds)
    )


def test_samples_correct_the_estimates_of_their_tile() -> None:
    state = SearchState(1)
    for block in (32, 64, 128):
        for warps in (4, 8):
            _learn(state, _at(block, warps), block / 32 * warps)
    assert state.scores[_at(64, 8)] == 16.0
    _learn(state, _at(32, 4), 12.0, fidelity="executed")  # three times the estimate
    assert state.scores[_at(32, 8)] == 24.0
    assert state.scores[_at(64, 8)] == 16.0  # another tile: as estimated
    _learn(state, _at(64, 4), 8.0, fidelity="executed")
    assert state.scores[_at(64, 8)] == 16.0
    assert state.best() == _at(64, 4)


def test_the_best_of_each_tile_is_simulated_first_and_only_what_may_win() -> None:
    state = SearchState(1)
    for warps, seconds in ((2, 1.0), (4, 1.1), (8, 1.2)):
        _learn(state, _at(64, warps), seconds)
    _learn(state, _at(128, 4), 1.5)
    assert state.candidates(2) == [_at(64, 2), _at(128, 4)]
    assert state.candidates(3) == [_at(64, 2), _at(128, 4), _at(64, 4)]
    _learn(state, _at(128, 4), 1.5, fidelity="executed")
    _learn(state, _at(64, 2), 2.0, fidelity="executed")
    assert state.candidates(3) == []  # twice their estimates, 64 × 4 and 64 × 8 are slower


def test_a_configuration_must_run_on_every_device() -> None:
    state = SearchState(2)
    _learn(state, _at(32, 4), 1.0, 4.0)
    _learn(state, _at(64, 4), 1.0, None)
    assert state.scores == {_at(32, 4): 2.0, _at(64, 4): math.inf}
    assert state.best() in (_at(32, 4), _at(64, 4))


def test_what_cannot_run_is_never_a_candidate_nor_the_best() -> None:
    state = SearchState(1)
    _learn(state, _at(32, 4), None)
    assert state.best() is None
    assert state.scores == {_at(32, 4): math.inf}
    assert state.candidates(3) == []
    _learn(state, _at(64, 4), 2.0)
    assert state.best() == _at(64, 4)
    assert state.candidates(3) == [_at(64, 4)]


def test_a_configuration_that_could_not_be_simulated_is_not_tried_again() -> None:
    state = SearchState(1)
    _learn(state, _at(64, 4), 2.0)
    (estimate,) = state.results[_at(64, 4)]
    state.add(_at(64, 4), (replace(estimate, reason="not simulated: reads a file"),))
    assert state.candidates(3) == []
    assert state.scores[_at(64, 4)] == 2.0  # the estimate still counts
    assert state.best() == _at(64, 4)


def test_each_device_corrects_its_own_estimates() -> None:
    state = SearchState(2)
    _learn(state, _at(64, 4), 1.0, 1.0)
    _learn(state, _at(64, 8), 1.0, 1.0)
    samples = (4.0, "executed"), (1.0, "static")
    state.add(
        _at(64, 4),
        tuple(Result(_at(64, 4), seconds=s, fidelity=fidelity) for s, fidelity in samples),
    )
    assert state.scores[_at(64, 8)] == 2.0  # 4 on the first device, 1 on the second
    assert state.candidates(1) == [_at(64, 4)]  # only the second device lacks a sample


def test_estimates_and_samples_rank_apart() -> None:
    state = SearchState(1)
    _learn(state, _at(32, 4), 1.0)
    _learn(state, _at(64, 4), 2.0)
    _learn(state, _at(64, 4), 3.0, fidelity="executed")
    assert state.best() == _at(64, 4)  # a sample is more certain than a faster estimate
