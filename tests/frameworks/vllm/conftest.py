"""Engines of vLLM in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

ENVIRONMENT = {
    "WAVECAST_VLLM": "gfx942",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


@pytest.fixture(scope="session")
def vllm() -> Any:
    """vLLM on an emulated MI300X: it reads the environment as it is imported."""
    pytest.importorskip("torch", reason="needs PyTorch")
    pytest.importorskip("transformers", reason="needs transformers")
    os.environ.update(ENVIRONMENT)
    return pytest.importorskip("vllm", reason="needs vLLM: pip install 'wavecast[vllm]'")


@pytest.fixture
def engine(vllm: Any, tmp_path: Any) -> Iterator[Callable[..., Any]]:
    """Makes a small model, its experts quantised if asked, and an engine that has loaded it. The
    engine ends with the test."""
    from tests.frameworks.vllm import models
    from wavecast.frameworks.vllm import served

    running = []

    def make(name: str, experts: str = "", **options: Any) -> tuple[Any, Any]:
        reference = models.saved(name, tmp_path)
        if experts:
            models.quantise_experts(reference, tmp_path, experts)
        given = {"max_model_len": 128, "max_num_seqs": 4, "enforce_eager": True, **options}
        running.append(vllm.LLM(str(tmp_path), skip_tokenizer_init=True, dtype="bfloat16", **given))
        return running[-1], reference

    served.calls.clear()
    yield make
    for one in running:
        one.llm_engine.engine_core.shutdown()
