from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.compile import nvidia_tools, toolchain
from wavecast.errors import MissingTool

DATA = Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for every test."""
    root = tmp_path / "cache"
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(root))
    return root


@pytest.fixture
def saxpy() -> str:
    """Assembly of `data/saxpy.hip` for gfx942, as zig's clang 22 writes it, without debug data."""
    return (DATA / "saxpy.gfx942.s").read_text()


@pytest.fixture
def hip_compiler() -> toolchain.Toolchain:
    try:
        return toolchain.find()
    except MissingTool as error:
        pytest.skip(str(error))


@pytest.fixture
def ptxas() -> str:
    try:
        nvidia_tools.tool("nvdisasm"), nvidia_tools.tool("cuobjdump")
        return nvidia_tools.tool("ptxas")
    except MissingTool as error:
        pytest.skip(str(error))
