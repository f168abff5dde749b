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
        assert board.lines()[1:] == ["rank 1 has launched nothing"]
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
    until(lambda: "rank 1 has launched nothing" not in board.lines())
    until(lambda: board.launches == 1)
    assert all(board.may_change() for _ in range(10))
    assert board.lines()[1] == "rank 1 launches nothing (1 launch ended)"
    os.kill(ended[0], signal.SIGKILL)
    until(lambda: not is_alive(ended[0]))
    assert [board.may_change() for _ in range(3)] == [True, False, False]
    assert board.lines()[1] == "rank 1 has ended (1 launch ended)"


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
    until(lambda: any("waits in a launch" in line for line in board.lines()))
    assert all(board.may_change() for _ in range(2 * rank_board._LOOKS_EACH))


def test_all_that_wait_are_named_as_they_waited_whoever_ends_first(
    ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_board, "_STILL", 0.0)
    board = RankBoard(3, 1000.0)

    def other() -> None:
        board.join(2, 3)
        while board.may_change(lambda: ["GPU 2 waits"]):
            pass

    def leaves() -> None:
        board.join(1, 3)
        board.leave()

    ended.append(processes.fork(leaves))
    until(lambda: not is_alive(ended[0]))
    ended.append(forked(other))
    board.join(0, 3)
    until(lambda: not board.may_change(lambda: ["GPU 0 waits"]))
    told = board.conclude(["GPU 0 waits"])
    assert told == ["GPU 0 waits", "rank 1 has ended (0 launches ended)", "GPU 2 waits"]
    os.kill(ended[1], signal.SIGKILL)
    until(lambda: not is_alive(ended[1]))
    assert not board.may_change(list)
    assert board.conclude(["it ends"]) == told


def test_no_deadlock_before_all_that_wait_have_said_where(
    ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_board, "_STILL", 0.0)
    board = RankBoard(2, 1000.0)

    def other() -> None:
        board.join(1, 2)
        while True:
            board.may_change(lambda: None)  # a launch of it does not wait yet

    ended.append(forked(other))
    board.join(0, 2)
    until(lambda: any("rank 1 waits in a launch" in line for line in board.lines()))
    assert all(board.may_change(lambda: ["GPU 0 waits"]) for _ in range(2_000))


def test_what_was_concluded_can_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_board, "_STILL", 0.0)
    board = RankBoard(1, 1000.0)
    board.join(0, 1)
    until(lambda: not board.may_change(lambda: ["GPU 0 waits"]))
    assert board.conclude(["GPU 0 waits"]) == ["GPU 0 waits"]
    board.revoke()
    board.publish(1)
    assert board.may_change(lambda: ["GPU 0 waits here"])
    assert board.conclude(["GPU 0 waits here"]) == ["GPU 0 waits here"]


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
