"""Which class serves which operator on the GPU that vLLM finds, by the configuration of the vLLM
that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: see docs/vllm.md"),
]


def served(*arguments: str, gpu: str = "local") -> tuple[dict[str, str], str]:
    """What the script prints, and what vLLM says meanwhile."""
    environment = {
        "WAVECAST_VLLM": gpu,
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
    }
    child = subprocess.run(
        [sys.executable, "-m", "tests.frameworks.vllm.served_on_rocm", *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout), child.stderr


def test_the_default_configuration_is_served_by_the_library() -> None:
    """Inductor, `custom_ops=["none"]`, no backend of attention selected."""
    found, said = served()
    assert found.pop("platform") == "RocmPlatform"
    assert (found.pop("mode"), found.pop("backend")) == ("VLLM_COMPILE", "inductor")
    assert found.pop("custom_ops").split()[-1] == "none"
    assert found.pop("Attention, head of 1024") == ""
    assert found.pop("in one graph").split() == ["rms_norm_residual", "rope", "silu_mul"]
    assert "attention stays vLLM's: head_size not supported" in said
    others = {name: place for name, place in found.items() if not place.startswith("wavecast.")}
    assert not others
    assert len(found) == 19


def test_what_the_command_line_says_comes_first() -> None:
    found, _ = served("-rms_norm", "-SiluAndMul", "attention=TRITON_ATTN")
    places = {name: place.partition(".")[0] for name, place in found.items()}
    assert places["RMSNorm"] == places["SiluAndMul"] == "vllm"
    assert places["GemmaRMSNorm"] == places["RotaryEmbedding"] == "wavecast"
    assert not places["Attention"].startswith("wavecast")


def test_without_the_variable_vllm_is_as_it_was() -> None:
    found, said = served(gpu="")
    assert found["RMSNorm"] == "vllm.model_executor.layers.layernorm.RMSNorm.forward_native"
    assert "wavecast" not in json.dumps(found)
    assert "wavecast" not in said
