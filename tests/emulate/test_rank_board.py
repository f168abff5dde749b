"""What the processes of ranks know of each other."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import pytest

from tests.waiting import until
from wavecast import processes
from wavecast.emulate import rank_board
from wavecast.emulate.rank_board import ProcessLock, RankBoard, is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory of forks: Linux")


def forked(work: Callable[[], object]) -> int:
    """A fork that does `work` and waits to be killed."""

    def stay() -> None:
        work()
        time.sleep(1000)

    return processes.fork(stay)


@pytest.fixture
def ended():
    """Processes that the test kills, or the end of the test."""
    started: list[int] = []
    yield started
    for process in started:
        if is_alive(process):
            os.kill(process, signal.SIGKILL)
        processes.wait(process)


def test_ranks_that_have_not_started_may_change_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_board, "_STILL", 0.0)
    patient, impatient = RankBoard(2, 1000.0), RankBoard(2, 0.0)
    for board in (patient, impatient):
        board.join(0, 2)
        assert board.absent() == ["rank 1 has launched nothing"]
    assert all(patient.may_change() for _ in range(rank_board._LOOKS_EACH + 2))
    looks = [impatient.may_change() for _ in range(rank_board._LOOKS_EACH + 1)]
    assert looks == [True] * (len(looks) - 1) + [False]  # looks are counted from the first on


def test_a_process_that_runs_may_change_memory_until_it_waits_or_dies(
    ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_board, "_STILL", 0.0)
    monkeypatch.setattr(rank_board, "_LOOKS_EACH", 1)
    board = RankBoard(2, 1000.0)

    def other() -> None:
        board.join(1, 2)
        board.on_launch_end()

    ended.append(forked(other))
    board.join(0, 2)
    until(lambda: "rank 1 has launched nothing" not in board.absent())
    until(lambda: board.launches == 1)
    assert all(board.may_change() for _ in range(10))
    assert board.absent() == [f"rank 1 (process {ended[0]}) launches nothing (1 launch ended)"]
    os.kill(ended[0], signal.SIGKILL)
    until(lambda: not is_alive(ended[0]))
    assert [board.may_change() for _ in range(3)] == [True, False, False]
    assert board.absent() == [f"rank 1 (process {ended[0]}) has ended (1 launch ended)"]


def test_all_must_have_looked_again_for_a_deadlock(
    ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_board, "_STILL", 0.0)
    board = RankBoard(2, 1000.0)

    def other() -> None:
        board.join(1, 2)
        board.may_change()  # it has looked once, and then no more

    ended.append(forked(other))
    board.join(0, 2)
    until(lambda: any("waits in a launch" in line for line in board.absent()))
    assert all(board.may_change() for _ in range(2 * rank_board._LOOKS_EACH))


def test_a_lock_is_free_when_its_process_dies(ended: list[int]) -> None:
    lock, reader_writer = ProcessLock(), os.pipe()

    def hold() -> None:
        with lock.exclusive():
            os.write(reader_writer[1], b"x")
            time.sleep(1000)

    ended.append(processes.fork(hold))
    os.read(reader_writer[0], 1)
    os.kill(ended[0], signal.SIGKILL)
    with lock.exclusive():
        pass
    for file in reader_writer:
        os.close(file)


def test_a_zombie_is_not_alive() -> None:
    process = processes.fork(lambda: None)
    until(lambda: not is_alive(process))
    processes.wait(process)
    assert is_alive(os.getpid())
    assert not is_alive(0)
