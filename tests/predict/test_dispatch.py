"""Which workgroups run first, and where."""

from __future__ import annotations

from wavecast.predict.dispatch import Dispatch


def test_dies_and_units_take_workgroups_in_turn() -> None:
    dispatch = Dispatch(workgroups=100, dies=4, units=3, resident=2)
    assert list(dispatch.of_die(1)) == list(range(1, 100, 4))
    assert list(dispatch.first_round()) == [0, 4, 8, 12, 16, 20]
    assert [dispatch.unit_of(number) for number in dispatch.first_round()] == [0, 1, 2, 0, 1, 2]
    assert dispatch.busiest() == (0, 12)


def test_a_launch_smaller_than_the_chip() -> None:
    dispatch = Dispatch(workgroups=2, dies=8, units=38, resident=8)
    assert list(dispatch.first_round()) == [0]
    assert dispatch.busiest() == (0,)
    assert dispatch.rounds == 1.0


def test_rounds_of_the_busiest_unit() -> None:
    assert Dispatch(workgroups=25, dies=1, units=4, resident=2).rounds == 3.5
