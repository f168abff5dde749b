"""`wavecast model --search --ray`."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import wavecast
from wavecast.errors import InputError, MissingTool
from wavecast.tune.ray import on_cluster


class _Cluster:
    """The part of Ray's interface that a search uses; tasks run when they are waited for."""

    def __init__(self) -> None:
        self.open = False
        self.exceptions = SimpleNamespace(WorkerCrashedError=RuntimeError)

    def init(self, address: str, **_: object) -> None:
        if address != "local":
            raise ConnectionError(f"nothing at {address}\nand more")
        self.open = True

    def shutdown(self) -> None:
        self.open = False

    def remote(self, **_: object):
        return lambda function: SimpleNamespace(remote=lambda *a: _Task(function, a))

    def wait(self, waiting: list[_Task]) -> tuple[list[_Task], list[_Task]]:
        return waiting[-1:], waiting[:-1]

    def get(self, task: _Task):
        return task.function(*task.arguments)


class _Task:
    def __init__(self, function, arguments) -> None:
        self.function, self.arguments = function, arguments


@pytest.fixture
def cluster(monkeypatch) -> _Cluster:
    found = _Cluster()
    monkeypatch.setitem(sys.modules, "ray", found)  # type: ignore[arg-type]
    return found


def _search(**given):
    return wavecast.model(
        "Llama-3.1-8B", "2xmi300x", search="tp=1|2,dtype=bf16|fp8", concurrency=4, output=8,
        requests=4, **given,
    )  # fmt: skip


def test_a_cluster_finds_what_processes_find(cluster: _Cluster) -> None:
    assert _search(ray="local").to_dict() == _search().to_dict()
    assert not cluster.open


@pytest.mark.thorough
def test_ray_itself_finds_what_processes_find() -> None:
    """With the package, which no extra of the tests installs: its processes take a minute."""
    pytest.importorskip("ray")
    assert _search(ray="local").to_dict() == _search().to_dict()


def test_a_cluster_that_is_not_there_is_one_line(cluster: _Cluster) -> None:
    with pytest.raises(InputError, match=r"no Ray cluster at 'head:6379': nothing at head:6379$"):
        _search(ray="head:6379")


def test_a_lost_task_is_an_error_and_closes_the_cluster(cluster: _Cluster) -> None:
    def lost() -> None:
        raise RuntimeError("a node is gone")

    with pytest.raises(InputError, match="lost a task: a node is gone"):
        list(on_cluster("local", lost, [1], [()]))
    assert not cluster.open


def test_without_ray_the_tool_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingTool, match="Ray is not installed"):
        _search(ray="local")
