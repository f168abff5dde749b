"""The table of architectures in docs/vllm.md."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def architectures(vllm: Any) -> Any:
    """The module of the table, for which vLLM is imported once."""
    import vllm.v1.engine.core
    import vllm.v1.worker.gpu_model_runner  # noqa: F401

    from tests.frameworks.vllm import architectures

    return architectures


def test_the_page_has_every_architecture_once(architectures: Any) -> None:
    page = architectures.section(architectures.PAGE.read_text(encoding="utf-8"))
    names = re.findall(r"^\| (\w+) (?:\(\w+\) )?\|", page, re.MULTILINE)
    assert names[1:] == [one.name for one in architectures.MODELS]
    assert len(set(names)) == len(names) > 60


@pytest.mark.parametrize(
    "name",
    [
        "DeepseekV32",
        "Llama4",
        pytest.param("Gemma4", marks=pytest.mark.thorough),
        pytest.param("GlmMoeDsa", marks=pytest.mark.thorough),
        pytest.param("Jamba", marks=pytest.mark.thorough),
        pytest.param("KimiLinear", marks=pytest.mark.thorough),
        pytest.param("Lfm2Moe", marks=pytest.mark.thorough),
        pytest.param("Qwen3Next", marks=pytest.mark.thorough),
    ],
)
def test_a_row_of_the_page(architectures: Any, name: str) -> None:
    """Keys that an indexer chooses, heads of 512, weights of experts on their input, scans of
    Mamba's first version, kernels of vLLM."""
    chosen = next(one for one in architectures.MODELS if one.name == name)
    row = architectures.row(chosen)
    assert row.right, row
    page = architectures.PAGE.read_text(encoding="utf-8")
    written = next(line for line in page.splitlines() if line.startswith(f"| {name} "))
    assert written.split(" | ")[2:] == str(row).split(" | ")[2:]


@pytest.mark.thorough
def test_the_page_has_what_generates_tokens(architectures: Any) -> None:
    rows = [architectures.row(one) for one in architectures.MODELS]
    wrong = {one.name for one in rows if not one.right}
    assert wrong == set(architectures.REASONS)
