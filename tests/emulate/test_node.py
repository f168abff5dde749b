"""Queues of several GPUs: order, events, failures, and when a deadlock is certain."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.waiting import until
from wavecast import processes
from wavecast.emulate import engine
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.node import PATIENCE, GpuNode, patience
from wavecast.emulate.team import Team
from wavecast.errors import UsageError


@pytest.fixture
def node():
    found = GpuNode(3)
    yield found
    found.close(failed=True)


def test_work_of_a_queue_runs_in_order_and_that_of_others_at_once(node: GpuNode) -> None:
    met, done = threading.Barrier(2, timeout=300), []
    for gpu in (0, 1):
        node.queue(gpu).submit(met.wait)
        node.queue(gpu).submit(lambda gpu=gpu: done.append(gpu))
    node.synchronize()
    assert sorted(done) == [0, 1]


def test_a_queue_waits_for_a_marker_of_another_gpu(node: GpuNode) -> None:
    go, done = threading.Event(), []
    node.queue(0).submit(lambda: done.append(go.wait(10)))
    node.queue(1).wait_for(node.queue(0).marker())
    node.queue(1).submit(lambda: done.append("second"))
    go.set()
    node.synchronize(1)
    assert done == [True, "second"]


def test_a_failure_stops_its_gpu_and_is_raised_where_the_host_waits(node: GpuNode) -> None:
    def fail() -> None:
        raise ExecutionError("copy: no memory", hint="less")

    done: list[int] = []
    node.queue(1).submit(fail)
    with pytest.raises(ExecutionError, match=r"^GPU 1: copy: no memory \(less\)$"):
        node.synchronize()
    with pytest.raises(ExecutionError):
        node.queue(1).submit(lambda: done.append(1))
    node.queue(2).submit(lambda: done.append(2))
    node.synchronize(2)
    assert done == [2]
    node.close(failed=False)  # the program has been told


def test_a_failure_nobody_waited_for_is_raised_at_the_end() -> None:
    node = GpuNode(2)
    node.queue(1).submit(lambda: 1 // 0)
    with pytest.raises(ExecutionError, match="GPU 1: ZeroDivisionError"):
        node.close(failed=False)


def test_nothing_more_is_expected_once_every_host_thread_waits(node: GpuNode) -> None:
    assert node.team._expects_more(), "this thread may launch"
    with node.blocking():
        assert not node.team._expects_more()
        other = threading.Thread()
        node.add_host(other)
        assert node.team._expects_more()
        node.remove_host(other)
        release = threading.Event()
        node.queue(0).submit(lambda: release.wait(10) and None)
        assert node.team._expects_more(), "a queue is about to start"
        release.set()


def test_a_host_thread_that_launches_nothing_for_long_counts_as_waiting(
    node: GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wavecast.emulate.node.PATIENCE", 0.0)
    assert not node.team._expects_more()


def test_a_deadlock_needs_every_worker_of_every_launch() -> None:
    team = Team(conclude=lambda lines: [*lines, "GPU 2 runs nothing"])
    team.enter(1)
    team.enter(1)
    assert not team.deadlock(1, team.epoch, lambda: ["GPU 0 waits"])
    team.on_change()  # the other one has stored something
    assert not team.deadlock(2, team.epoch, lambda: ["GPU 1 waits"])
    found = team.deadlock(1, team.epoch, lambda: ["GPU 0 waits"])
    assert sorted(found) == ["GPU 0 waits", "GPU 1 waits", "GPU 2 runs nothing"]
    assert team.deadlock(2, team.epoch - 1, list) == found, "all get the same message"


@pytest.mark.parametrize("count", [0, 65])
def test_a_count_out_of_range(count: int) -> None:
    with pytest.raises(UsageError, match=f"count={count}"):
        GpuNode(count)


def test_a_fork_is_refused_instead_of_waiting_for_ever(node: GpuNode) -> None:
    go = threading.Event()

    def wait() -> None:
        go.wait(10)

    node.queue(0).submit(wait)
    marker = node.queue(0).marker()

    def child() -> None:
        for use in (
            lambda: node.wait(marker),
            lambda: node.queue(0).submit(child),
            lambda: node.synchronize(0),
        ):
            with pytest.raises(UsageError, match="a fork cannot use"):
                use()
        node.close(failed=False)

    started = processes.fork(child)
    ended: list[processes.Ended | None] = [None]

    def has_ended() -> bool:
        ended.append(processes.poll(started))
        return ended[-1] is not None

    try:
        until(has_ended)
    finally:
        processes.kill(started)
        go.set()
    assert ended[-1] == processes.Ended()


def test_a_launch_that_has_waited_long_sleeps_no_longer() -> None:
    slept: list[float] = []
    team = SimpleNamespace(
        idle=lambda *_: None, publications=0, rest=lambda _, seconds: slept.append(seconds)
    )
    for idle in (2, 8, 100_000):
        waiting: Any = SimpleNamespace(idle=idle, team=team, publications=0)
        engine._Worker._leave_the_host(waiting, 1)
    assert slept[0] < slept[1] == slept[2] < 0.1


def test_daemon_threads_that_sleep_are_waited_for_shortly() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, daemon=True)
    assert patience({threading.current_thread(), thread}) == PATIENCE
    thread.start()
    until(lambda: patience({thread}) < PATIENCE)
    ended.set()
    thread.join()
    assert patience({thread}) == PATIENCE
