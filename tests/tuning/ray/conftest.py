"""A cluster of three nodes for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tuning.conftest import script
from tests.tuning.ray.cluster import Nodes


@pytest.fixture(scope="session")
def _started() -> Iterator[Nodes]:
    pytest.importorskip("ray", reason="needs Ray: pip install 'wavecast[ray]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
        nodes = Nodes(3)
        yield nodes
        nodes.close()


@pytest.fixture
def nodes(_started: Nodes, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    """Three nodes; those that a test killed are replaced."""
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    while len(_started.running) < 3:
        _started.add()
    return _started


__all__ = ["nodes", "script"]
