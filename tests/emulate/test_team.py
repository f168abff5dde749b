"""Workers of launches that run at once wait for others that react to what they have stored."""

from __future__ import annotations

import threading
import time

from wavecast.emulate.team import Team

SHORT, LONG = 0.01, 5.0


def test_a_worker_continues_once_the_others_have_looked_again() -> None:
    team = Team()
    team.enter(2)
    seen: list[int] = []

    def other() -> None:
        publications = 0
        for _ in range(3):  # it looks, and waits
            team.idle(2, publications)
            team.rest(publications, LONG)
            publications = team.publications
            seen.append(publications)
            if seen[-1] == 2:
                break

    thread = threading.Thread(target=other)
    thread.start()
    assert team.let_others_react(LONG)
    assert seen == [1]
    thread_moves = threading.Thread(target=lambda: team.let_others_react(LONG))
    thread_moves.start()
    thread.join()
    team.left(2)
    thread_moves.join()
    assert seen == [1, 2]


def test_a_worker_that_computes_is_waited_for_no_longer_than_is_said() -> None:
    team = Team()
    team.enter(2)
    start = time.monotonic()
    assert not team.let_others_react(SHORT)
    assert time.monotonic() - start >= SHORT


def test_the_host_may_start_more() -> None:
    team = Team(more=lambda: True)
    team.enter(1)
    assert not team.let_others_react(SHORT)
    alone = Team(more=lambda: False)
    alone.enter(1)
    assert alone.let_others_react(LONG)


def test_of_two_that_wait_the_last_continues_first() -> None:
    team = Team()
    team.enter(2)
    order: list[str] = []

    def first() -> None:
        assert team.let_others_react(LONG)
        order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    while not team.publications:
        time.sleep(SHORT / 10)
    assert team.let_others_react(LONG)
    order.append("last")
    team.left(2)
    thread.join()
    assert order == ["last", "first"]
