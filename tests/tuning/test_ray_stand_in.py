"""`--ray` with a stand-in for Ray; tests/tuning/ray has Ray itself."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

import wavecast
from wavecast.errors import InputError, MissingTool, UnknownName, UsageError
from wavecast.pipeline import select
from wavecast.tuning.ray import connect
from wavecast.tuning.run import tune
from wavecast.tuning.script import TuneScript
from wavecast.tuning.settings import TuneSettings


class _RayError(Exception):
    pass


class _TaskError(_RayError):
    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class _Cluster:
    """The part of Ray's interface that searches use; tasks run when they are waited for."""

    def __init__(self) -> None:
        self.open = False
        self.exceptions = SimpleNamespace(RayError=_RayError, RayTaskError=_TaskError)

    def init(self, address: str, **_: object) -> None:
        if address != "local":
            raise ConnectionError(f"nothing at {address}\nand more")
        self.open = True

    def is_initialized(self) -> bool:
        return self.open

    def shutdown(self) -> None:
        self.open = False

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(gcs_address="local")

    def nodes(self) -> list[dict[str, object]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {}}]

    def remote(self, **_: object):
        return lambda function: SimpleNamespace(remote=lambda *given: _Stream(function(*given)))

    def wait(self, waiting: list[_Stream], timeout: float) -> tuple[list[_Stream], list[_Stream]]:
        return waiting[-1:], waiting[:-1]

    def get(self, found):
        return found() if callable(found) else found


class _Stream:
    """What a task yields; its error is that of an item."""

    def __init__(self, generator) -> None:
        self.generator = generator

    def __next__(self):
        try:
            return next(self.generator)
        except StopIteration:
            raise
        except Exception as error:
            failed = error if isinstance(error, _RayError) else _TaskError(error)

            def fail() -> None:
                raise failed

            return fail


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


def test_a_cluster_that_is_not_there_is_one_line(cluster: _Cluster) -> None:
    with pytest.raises(InputError, match=r"no Ray cluster at 'auto': nothing at auto and more$"):
        _search(ray="auto")
    with pytest.raises(InputError, match=r"no Ray cluster at '127.0.0.1:1': Connection refused$"):
        _search(ray="127.0.0.1:1")
    with pytest.raises(InputError, match=r"no Ray cluster at '127.0.0.1:x': invalid literal"):
        _search(ray="127.0.0.1:x")
    with pytest.raises(UsageError, match="Ray Client is not supported"):
        _search(ray="ray://127.0.0.1:1")


def test_a_lost_task_starts_again_with_what_is_left(cluster: _Cluster) -> None:
    found = []

    def numbers(first: int):
        yield first
        if first < 2:
            raise _RayError("a node is gone\nlogs")

    with connect("local") as tasks:
        for key, number in tasks.results(numbers, ["a"], lambda _: (len(found),)):
            found.append((key, number))
        assert len(tasks.losses) == 2
        assert tasks.losses[0].endswith("started again: a node is gone")
    assert found == [("a", 0), ("a", 1), ("a", 2)]
    assert not cluster.open


def test_a_task_that_is_lost_again_and_again_is_an_error(cluster: _Cluster) -> None:
    def lost():
        raise _RayError("a node is gone")
        yield

    with (
        pytest.raises(InputError, match="lost a task 3 times: a node is gone"),
        connect("local") as tasks,
    ):
        list(tasks.results(lost, [1], lambda _: ()))
    assert not cluster.open


def test_the_error_of_a_task_is_that_of_wavecast(cluster: _Cluster) -> None:
    def failing():
        raise UnknownName("model", "lama", ["llama"])
        yield

    with pytest.raises(UnknownName, match="nearest known: llama"), connect("local") as tasks:
        list(tasks.results(failing, [1], lambda _: ()))


def test_without_ray_the_tool_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingTool, match="Ray is not installed"):
        _search(ray="local")


@pytest.mark.thorough
def test_a_table_is_that_of_a_run_without_a_cluster(cluster: _Cluster, script) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    source = TuneScript(script('scale(torch.ones(1 << 22, device="cuda"))'))
    settings = TuneSettings((), "", simulate=1, jobs=2)
    tuned = [tune(source, select(["mi300x"]), settings, ray=ray) for ray in ("", "local")]
    alone, shared = (json.dumps(one.table.to_json(), sort_keys=True) for one in tuned)
    assert shared == alone
    assert tuned[0].failures == tuned[1].failures == ()
    assert not cluster.open
