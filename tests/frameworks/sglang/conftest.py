"""SGLang in this process, and its engines in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

ENVIRONMENT = {"WAVECAST_SGLANG": "gfx942", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="session")
def sglang() -> Any:
    """SGLang on an emulated MI300X: it reads the environment as it is imported."""
    pytest.importorskip("torch", reason="needs PyTorch")
    pytest.importorskip("transformers", reason="needs transformers")
    os.environ.update(ENVIRONMENT)
    found = pytest.importorskip("sglang", reason="needs SGLang: pip install 'wavecast[sglang]'")
    from wavecast.frameworks.sglang import registration

    registration.register_layers()
    return found


@pytest.fixture
def engine(sglang: Any, tmp_path: Any) -> Iterator[Callable[..., Any]]:
    """Makes a small model, its linear layers or experts quantised if asked, and an engine that has
    loaded it, which ends with the test."""
    from tests.frameworks.vllm import models

    running = []

    def make(name: str, linear: str = "", experts: str = "", **options: Any) -> tuple[Any, Any]:
        reference = models.saved(name, tmp_path)
        if linear:
            models.quantise_linear(reference, tmp_path, linear)
        if experts:
            models.quantise_experts(reference, tmp_path, experts)
        given = {"context_length": 128, "max_running_requests": 4, "log_level": "error", **options}
        running.append(
            sglang.Engine(
                model_path=str(tmp_path), skip_tokenizer_init=True, dtype="bfloat16", **given
            )
        )
        return running[-1], reference

    yield make
    for one in running:
        one.shutdown()
