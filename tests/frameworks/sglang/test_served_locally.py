"""Which functions serve SGLang's layers on a platform that SGLang has itself, by the SGLang that is
installed."""

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
    pytest.mark.skipif(find_spec("sglang") is None, reason="needs SGLang: see docs/sglang.md"),
]
OTHERS = {"QuickGELU", "awq"}
"""What the library does not have."""


def served(gpu: str) -> dict[str, str]:
    child = subprocess.run(
        [sys.executable, "-m", "tests.frameworks.sglang.served_locally"],
        cwd=ROOT, env={**os.environ, "WAVECAST_SGLANG": gpu}, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout.splitlines()[-1])


def test_layers_and_formats_are_the_library_s() -> None:
    found = served("local")
    assert found.pop("platform") == "SRTPlatform"
    assert found.pop("choices") == found.pop("backends") == "True"
    others = {name for name, place in found.items() if not place.startswith("wavecast.")}
    assert others == OTHERS
    assert len(found) == 10


def test_without_the_variable_sglang_is_as_it_was() -> None:
    assert "wavecast" not in json.dumps(served(""))
