"""Tasks on real nodes: lost, failing, on nodes of another version."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.tuning.ray.cluster import Nodes
from wavecast.errors import InputError, UnknownName
from wavecast.tuning import ray
from wavecast.tuning.ray import connect, versions

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("default")]


def _waiting(folder: str, known: int):
    """The node, then numbers from `known` on as soon as there is a file `go`."""
    import os

    yield int(os.environ["RAY_RAYLET_PID"])
    while not Path(folder, "go").exists():
        time.sleep(0.02)
    yield from range(known, 3)


def test_what_a_lost_node_had_found_is_kept(nodes: Nodes, tmp_path: Path, capfd) -> None:
    found: dict[str, list[int]] = {key: [] for key in "abc"}
    places: dict[str, list[int]] = {key: [] for key in "abc"}
    with connect(nodes.address) as cluster:
        assert cluster.processors == [1, 1, 1]
        arguments = lambda key: (str(tmp_path), len(found[key]))  # noqa: E731
        for key, number in cluster.results(_waiting, list("abc"), arguments):
            (found if number < 3 else places)[key].append(number)
            if sum(map(len, places.values())) == 3 and not (tmp_path / "go").exists():
                assert {place for one in places.values() for place in one} == set(nodes.running)
                nodes.kill(places["b"][0])
                (tmp_path / "go").touch()
        assert len(cluster.losses) == 1
    assert found == {"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1, 2]}
    assert len(places["b"]) == 2
    assert capfd.readouterr().out == ""


def test_errors_of_tasks_are_those_of_wavecast(nodes: Nodes) -> None:
    def failing():
        raise UnknownName("model", "lama", ["llama"])
        yield

    with connect(nodes.address) as cluster, pytest.raises(UnknownName) as raised:
        list(cluster.results(failing, [1], lambda _: ()))
    assert str(raised.value) == "unknown model 'lama' (nearest known: llama)"


def test_a_node_of_another_version_is_named(nodes: Nodes, tmp_path: Path) -> None:
    patch = 'import wavecast.version\nwavecast.version.__version__ = "0.0.1"\n'
    (tmp_path / "sitecustomize.py").write_text(patch)
    (tmp_path / "go").touch()
    other = nodes.add(PYTHONPATH=str(tmp_path))
    with connect(nodes.address) as cluster, pytest.raises(InputError) as raised:
        list(cluster.results(_waiting, range(8), lambda _: (str(tmp_path), 0)))
    assert " of the Ray cluster has wavecast 0.0.1, this machine " in str(raised.value)
    nodes.kill(other)


def test_a_node_with_another_triton_is_named(nodes: Nodes, tmp_path: Path) -> None:
    """Its Python reads the release from the metadata that it finds first."""
    metadata = tmp_path / "triton-3.5.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.5.0\n")
    (tmp_path / "go").touch()
    other = nodes.add(PYTHONPATH=str(tmp_path))
    with connect(nodes.address) as cluster, pytest.raises(InputError) as raised:
        list(cluster.results(_waiting, range(8), lambda _: (str(tmp_path), 0)))
    here = f"this machine {versions()['triton']}"
    assert f" of the Ray cluster has triton 3.5.0, {here}" in str(raised.value)
    nodes.kill(other)


def test_a_lost_head_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ray itself would end this process after a minute."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'wavecast[ray]'")
    monkeypatch.setattr(ray, "_HEAD_SECONDS", 1.0)
    nodes = Nodes(1)
    with connect(nodes.address) as cluster:
        results = cluster.results(_waiting, [1], lambda _: (str(tmp_path), 0))
        next(results)
        nodes.kill_head()
        with pytest.raises(InputError, match=r"^the head of the Ray cluster was lost: no Ray"):
            next(results)
    nodes.close()


def test_a_cluster_whose_last_node_is_lost_is_an_error(nodes: Nodes, tmp_path: Path) -> None:
    with connect(nodes.address) as cluster:
        found = cluster.results(_waiting, [1], lambda _: (str(tmp_path), 0))
        next(found)
        for number in nodes.running:
            nodes.kill(number)
        with pytest.raises(InputError, match="no node of the Ray cluster has a processor"):
            next(found)


def test_a_connection_of_the_program_stays(nodes: Nodes) -> None:
    from ray import init, is_initialized, shutdown

    init(address=nodes.address, log_to_driver=False)
    with connect("local") as cluster:
        assert len(cluster.processors) == 3
    assert is_initialized()
    shutdown()
