"""Work in forks that crash, hang and come back."""

from __future__ import annotations

import os
import signal
import time

from tests.waiting import runs, until
from wavecast.tuning.pool import Died, Pool


def _work(task: int) -> int:
    if task == 13:
        os.write(2, b"LLVM ERROR: Cannot select\n")
        os.kill(os.getpid(), signal.SIGABRT)
    if task == 14:
        time.sleep(60)
    if task == 15:
        os._exit(3)
    return task * task


def test_all_tasks_are_answered_whatever_happens_to_forks() -> None:
    with Pool(2, _work, limit=1.0) as pool:
        answers = dict(pool.map(iter([1, 13, 2, 14, 15, 3])))
        assert {task: answers[task] for task in (1, 2, 3)} == {1: 1, 2: 4, 3: 9}
        crashed, hung, left = answers[13], answers[14], answers[15]
        assert crashed == Died("crashed (SIGABRT)", "LLVM ERROR: Cannot select\n")
        assert hung == Died("took longer than 1 s")
        assert isinstance(left, Died)
        assert left.reason == "ended early (exit code 3)"
        assert dict(pool.map(iter([5]))) == {5: 25}  # a pool goes on after its first tasks


def test_a_fork_that_died_while_idle_is_replaced() -> None:
    with Pool(1, lambda task: os.getpid(), limit=10.0) as pool:
        ((_, first),) = pool.map(iter([1]))
        assert isinstance(first, int)
        os.kill(first, signal.SIGKILL)
        until(lambda: not runs(first))
        ((_, second),) = pool.map(iter([1]))
        assert isinstance(second, int)
        assert second != first


def test_tasks_are_taken_only_when_a_fork_is_free() -> None:
    taken = []

    def tasks():
        for number in range(6):
            taken.append(number)
            yield number

    with Pool(2, _work, limit=10.0) as pool:
        for _ in pool.map(tasks()):
            assert len(taken) <= 4
            break


def test_forks_see_the_state_of_their_parent_and_keep_theirs() -> None:
    state = {"seen": 0}

    def work(task: int) -> int:
        state["seen"] += 1
        return state["seen"]

    state["seen"] = 10
    with Pool(1, work, limit=10.0) as pool:
        assert [answer for _, answer in pool.map(iter([1, 2, 3]))] == [11, 12, 13]
    assert state["seen"] == 10
