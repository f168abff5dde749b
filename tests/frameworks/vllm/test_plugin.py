"""The entry points of vLLM's plugins, without vLLM."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from wavecast.errors import MissingTool, UnknownName, UsageError
from wavecast.frameworks.vllm import plugin, versions


def installed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(versions, "version", lambda name: version)


@pytest.mark.parametrize("asked", ["", "local"])
def test_no_gpu_is_emulated_unless_one_is_named(
    monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """An installation changes nothing, and a GPU of this machine keeps vLLM's platform."""
    monkeypatch.setenv("WAVECAST_VLLM", asked)
    assert plugin.platform() is None


def test_emulated_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class is named, not imported."""
    monkeypatch.setenv("WAVECAST_VLLM", "gfx950")
    installed(monkeypatch, "0.33.1")
    assert plugin.platform() == "wavecast.frameworks.vllm.platform.WavecastPlatform"
    monkeypatch.setenv("WAVECAST_VLLM", "gfx000")
    with pytest.raises(UnknownName):
        plugin.platform()


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the versions."""
    monkeypatch.setenv("WAVECAST_VLLM", "gfx942")
    installed(monkeypatch, "0.30.2")
    with pytest.raises(UsageError, match=r"vLLM 0\.30\.2: wavecast works with 0\.33\.\*"):
        plugin.register()


def test_without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install is said."""

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", absent)
    with pytest.raises(MissingTool, match="vLLM is not installed"):
        versions.check()


def test_slots() -> None:
    """Positions of two sequences in blocks of 4, and padding."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from wavecast.frameworks.vllm.host_kernels import slot_mapping

    found = torch.zeros(7, dtype=torch.int64)
    slot_mapping(
        num_tokens=5,
        max_num_tokens=7,
        query_start_loc_ptr=torch.tensor([0, 2, 5], dtype=torch.int32),
        positions_ptr=torch.tensor([3, 4, 0, 1, 2]),
        block_table_ptr=torch.tensor([[9, 5], [2, 0]], dtype=torch.int32),
        block_table_stride=2,
        slot_mapping_ptr=found,
        KV_CACHE_BLOCK_SIZE=4,
        TOTAL_CP_WORLD_SIZE=1,
        TOTAL_CP_RANK=0,
        CP_KV_CACHE_INTERLEAVE_SIZE=1,
        PAD_ID=-1,
        BLOCK_SIZE=1024,
    )
    assert found.tolist() == [39, 20, 8, 9, 10, -1, -1]
